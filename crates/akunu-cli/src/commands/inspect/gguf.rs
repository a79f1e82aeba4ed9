//! The description of a GGUF model, from its metadata.

use super::attention::Attention;
use super::report::{Description, Tokenizer};
use akunu_gguf::{GgufError, Metadata, Value};

/// The architecture of a vision tower, and how the keys of its numbers begin.
pub const TOWER: &str = "clip";
const TOWER_KEYS: &str = "clip.vision";

/// What the metadata says. Keys of another type than expected are errors that name them.
pub fn describe(metadata: &Metadata) -> Result<Description, GgufError> {
    let architecture = metadata.string("general.architecture")?;
    let keys = Keys {
        metadata,
        architecture: match architecture {
            Some(TOWER) => TOWER_KEYS,
            other => other.unwrap_or_default(),
        },
    };
    Ok(Description {
        architecture: architecture.map(str::to_string),
        name: metadata.string("general.name")?.map(str::to_string),
        context_length: keys.number("context_length")?,
        layers: keys.number("block_count")?,
        embedding_length: keys.number("embedding_length")?,
        feed_forward_length: keys.largest("feed_forward_length"),
        attention: attention(&keys)?,
        tokenizer: tokenizer(metadata)?,
    })
}

/// Metadata keys that begin with the architecture's name, or with that of a tower.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn number(&self, key: &str) -> Result<Option<u64>, GgufError> {
        self.metadata.u64(&self.name(key))
    }

    /// A number that may be one for all layers or one for each: the largest.
    fn largest(&self, key: &str) -> Option<u64> {
        let natural = |value: &Value| value.as_integer().and_then(|n| u64::try_from(n).ok());
        match self.metadata.get(&self.name(key))? {
            Value::Array(array) => array.iter().filter_map(|value| natural(&value)).max(),
            value => natural(&value),
        }
    }
}

/// The shape of the attention; `None` when a number is missing without which nothing can be said.
fn attention(keys: &Keys<'_>) -> Result<Option<Attention>, GgufError> {
    let Some(heads) = keys.largest("attention.head_count") else {
        return Ok(None);
    };
    let even_share = keys
        .number("embedding_length")?
        .and_then(|dim| dim.checked_div(heads));
    let key_length = keys.number("attention.key_length")?.or(even_share);
    let Some(key_length) = key_length else {
        return Ok(None);
    };
    Ok(Some(Attention {
        heads,
        kv_heads: keys.largest("attention.head_count_kv").unwrap_or(heads),
        key_length,
        value_length: keys.number("attention.value_length")?.unwrap_or(key_length),
        window: keys
            .number("attention.sliding_window")?
            .filter(|&window| window > 0),
        windowed_layers: None,
        bias_distance: None,
    }))
}

fn tokenizer(metadata: &Metadata) -> Result<Option<Tokenizer>, GgufError> {
    let model = metadata.string("tokenizer.ggml.model")?;
    let tokens = metadata.array("tokenizer.ggml.tokens")?;
    if model.is_none() && tokens.is_none() {
        return Ok(None);
    }
    Ok(Some(Tokenizer {
        model: model.map(str::to_string),
        pre: metadata.string("tokenizer.ggml.pre")?.map(str::to_string),
        vocab_size: tokens.map(|tokens| tokens.len() as u64),
        chat_template: metadata.get("tokenizer.chat_template").is_some(),
    }))
}
