//! The shape of a speech model, from the shapes of its weights.

use akunu_gguf::{SpeechError, SpeechFolder};
use serde_json::Value;

use crate::config::MAX_HEAD_LENGTH;
use crate::error::ArchError;

/// The shape of one Whisper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeechConfig {
    /// Filters of the spectrogram.
    pub n_mels: u32,
    /// Width of the residual streams.
    pub dim: u32,
    /// Heads of all attention.
    pub n_heads: u32,
    /// Width of the feed-forward blocks.
    pub ffn_dim: u32,
    /// Layers of the encoder.
    pub n_encoder_layers: u32,
    /// Layers of the decoder.
    pub n_decoder_layers: u32,
    /// Positions of the encoder: two frames of the spectrogram each.
    pub n_audio_positions: u32,
    /// Positions of the decoder.
    pub n_text_positions: u32,
    /// Rows of the token embedding.
    pub vocab_size: u32,
    /// Tokens that are never said.
    pub suppressed: Vec<u32>,
    /// Tokens that are not said first.
    pub suppressed_first: Vec<u32>,
    /// The heads of the decoder whose attention gives the times of words, as (layer, head); empty if they are not known.
    pub alignment_heads: Vec<(u32, u32)>,
}

/// More layers than any Whisper has.
const MAX_LAYERS: u32 = 256;

impl SpeechConfig {
    /// Elements of a head.
    pub fn head_dim(&self) -> u32 {
        self.dim / self.n_heads
    }

    /// Reads the shapes of the weights, and what `config.json` or `generation_config.json` says of tokens and heads.
    pub fn from_folder(folder: &SpeechFolder) -> Result<SpeechConfig, ArchError> {
        let [dim, n_mels, taps] = dims(folder, "encoder.conv1.weight")?;
        let [n_audio_positions, _] = dims(folder, "encoder.embed_positions.weight")?;
        let [n_text_positions, _] = dims(folder, "decoder.embed_positions.weight")?;
        let [vocab_size, _] = dims(folder, "decoder.embed_tokens.weight")?;
        let [ffn_dim, _] = dims(folder, "encoder.layers.0.fc1.weight")?;
        let invalid = |key: &str, found: String, wanted| ArchError::Invalid {
            path: folder.path().to_path_buf(),
            key: key.to_string(),
            found,
            wanted,
        };
        let missing = || ArchError::Missing {
            path: folder.path().join("config.json"),
            key: "encoder_attention_heads".to_string(),
        };
        let n_heads = folder.n_heads().ok_or_else(missing)?;
        let head_dim = dim.checked_div(n_heads).unwrap_or(0);
        let is_whole = head_dim > 0 && dim.is_multiple_of(n_heads) && head_dim.is_multiple_of(8);
        if !is_whole || head_dim > MAX_HEAD_LENGTH {
            let found = format!("{n_heads} for a width of {dim}");
            let wanted = "so many that each has a multiple of 8 numbers, at most 256";
            return Err(invalid("heads", found, wanted));
        }
        let [n_encoder_layers, n_decoder_layers] =
            ["encoder", "decoder"].map(|of| n_layers(folder, of));
        if n_decoder_layers == 0 {
            let found = n_decoder_layers.to_string();
            return Err(invalid("decoder layers", found, "at least one"));
        }
        if taps != 3 || n_mels > 128 || n_audio_positions > 1 << 14 || n_text_positions > 1 << 14 {
            let found = format!("{n_mels} filters, {taps} taps, {n_audio_positions} positions");
            return Err(invalid("encoder", found, "of a size that Whisper can have"));
        }
        let said = folder.generation_config()?;
        // Distilled models come with the list of the larger one that they learned from, which says nothing of their own heads.
        let alignment_heads = heads(&said["alignment_heads"]);
        let is_own = |&(layer, head): &(u32, u32)| layer < n_decoder_layers && head < n_heads;
        let is_known = alignment_heads.iter().all(is_own);
        Ok(SpeechConfig {
            n_mels,
            dim,
            n_heads,
            ffn_dim,
            n_encoder_layers,
            n_decoder_layers,
            n_audio_positions,
            n_text_positions,
            vocab_size,
            suppressed: ids(&said, &["suppress_ids", "suppress_tokens"]),
            suppressed_first: ids(&said, &["suppress_ids_begin", "begin_suppress_tokens"]),
            alignment_heads: if is_known {
                alignment_heads
            } else {
                Vec::new()
            },
        })
    }
}

/// The dimensions of a weight, of which there must be as many, each of a size that fits our numbers.
fn dims<const N: usize>(folder: &SpeechFolder, name: &str) -> Result<[u32; N], ArchError> {
    let found = folder.tensor(name)?.dims;
    let sizes = found.iter().map(|&dim| u32::try_from(dim).ok());
    let sizes: Option<Vec<u32>> = sizes.collect();
    let sizes = sizes.and_then(|sizes| <[u32; N]>::try_from(sizes).ok());
    sizes.ok_or_else(|| ArchError::Invalid {
        path: folder.path().to_path_buf(),
        key: name.to_string(),
        found: format!("of the shape {found:?}"),
        wanted: "of the shape that Whisper has",
    })
}

/// How many layers of a stack are there, one after the other.
fn n_layers(folder: &SpeechFolder, stack: &str) -> u32 {
    let is_there = |layer: &u32| {
        let name = format!("{stack}.layers.{layer}.fc1.weight");
        folder.tensor(&name).is_ok()
    };
    (0..MAX_LAYERS).take_while(is_there).count() as u32
}

/// A list of tokens, under the first of these keys that is there.
fn ids(config: &Value, keys: &[&str]) -> Vec<u32> {
    let list = keys.iter().find_map(|key| config[*key].as_array());
    let ids = list.into_iter().flatten();
    ids.filter_map(|id| u32::try_from(id.as_u64()?).ok())
        .collect()
}

fn heads(list: &Value) -> Vec<(u32, u32)> {
    let pair = |pair: &Value| {
        let number = |at: usize| u32::try_from(pair[at].as_u64()?).ok();
        Some((number(0)?, number(1)?))
    };
    let heads = list.as_array().into_iter().flatten();
    heads.filter_map(pair).collect()
}

impl From<SpeechError> for ArchError {
    fn from(error: SpeechError) -> ArchError {
        ArchError::Speech(Box::new(error))
    }
}
