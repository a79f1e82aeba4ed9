//! A speech model, as `inspect` describes it.

use crate::failure::Failure;
use crate::units::bytes;
use akunu_arch::{ArchError, SpeechConfig};
use akunu_gguf::SpeechFolder;
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Writes what it is, one fact a line or as JSON.
pub fn write(path: &Path, as_json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let folder =
        SpeechFolder::open(path).map_err(|e| akunu::EngineError::from(ArchError::from(e)))?;
    let config = SpeechConfig::from_folder(&folder).map_err(akunu::EngineError::from)?;
    let is_multilingual = config.vocab_size >= 51_865;
    let weights = weight_bytes(path);
    if as_json {
        let report = json!({
            "path": path.display().to_string(),
            "format": folder.container(),
            "description": {
                "architecture": "whisper",
                "multilingual": is_multilingual,
                "encoder_layers": config.n_encoder_layers,
                "decoder_layers": config.n_decoder_layers,
                "embedding_length": config.dim,
                "heads": config.n_heads,
                "mel_filters": config.n_mels,
                "vocab_size": config.vocab_size,
            },
            "file_bytes": weights,
        });
        serde_json::to_writer_pretty(&mut *out, &report)?;
        return Ok(writeln!(out)?);
    }
    let languages = if is_multilingual {
        "several languages"
    } else {
        "English"
    };
    let mut fact = |name: &str, value: String| writeln!(out, "{name:<16}{value}");
    fact("folder", path.display().to_string())?;
    fact("format", folder.container().to_string())?;
    fact("architecture", format!("whisper, for {languages}"))?;
    fact(
        "layers",
        format!(
            "{} of the encoder, {} of the decoder",
            config.n_encoder_layers, config.n_decoder_layers
        ),
    )?;
    fact("dimension", config.dim.to_string())?;
    fact("attention", format!("{} heads", config.n_heads))?;
    fact("window", format!("30 s, {} mel filters", config.n_mels))?;
    fact("vocabulary", format!("{} tokens", config.vocab_size))?;
    fact("weights", bytes(weights))?;
    let words = if config.alignment_heads.is_empty() {
        "not told: no heads are named for it".to_string()
    } else {
        format!("from {} heads", config.alignment_heads.len())
    };
    Ok(fact("word times", words)?)
}

/// Bytes of the files with weights.
fn weight_bytes(path: &Path) -> u64 {
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    let is_weights = |name: &str| name == "model.bin" || name.ends_with(".safetensors");
    files
        .filter(|file| is_weights(&file.file_name().to_string_lossy()))
        .filter_map(|file| Some(file.metadata().ok()?.len()))
        .sum()
}
