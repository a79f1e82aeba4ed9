//! A speech model, as `inspect` describes it.

use crate::failure::Failure;
use crate::units::bytes;
use akunu_arch::{ArchError, Speech};
use akunu_gguf::SpeechFolder;
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Writes what it is, one fact a line or as JSON.
pub fn write(path: &Path, as_json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let folder =
        SpeechFolder::open(path).map_err(|e| akunu::EngineError::from(ArchError::from(e)))?;
    let config = Speech::from_folder(&folder).map_err(akunu::EngineError::from)?;
    let (encoder, decoder) = (&config.encoder, &config.decoder);
    let is_multilingual = decoder.vocab_size >= 51_865;
    let weights = weight_bytes(path);
    if as_json {
        let report = json!({
            "path": path.display().to_string(),
            "format": folder.container(),
            "description": {
                "architecture": "whisper",
                "multilingual": is_multilingual,
                "encoder_layers": encoder.layers.len(),
                "decoder_layers": decoder.layers.len(),
                "embedding_length": decoder.dim,
                "heads": config.n_heads(),
                "mel_filters": encoder.n_mels,
                "vocab_size": decoder.vocab_size,
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
            encoder.layers.len(),
            decoder.layers.len()
        ),
    )?;
    fact("dimension", decoder.dim.to_string())?;
    fact("attention", format!("{} heads", config.n_heads()))?;
    fact("window", format!("30 s, {} mel filters", encoder.n_mels))?;
    fact("vocabulary", format!("{} tokens", decoder.vocab_size))?;
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
