//! The description of a GGUF model, from its metadata.

use super::attention::{Attention, every_nth_is_global, known_windows};
use super::report::{Description, Tokenizer};
use akunu_gguf::{GgufError, Metadata, Value};

/// Layers beyond this are not believed: lists as long as the count are made.
const MAX_LAYERS: u64 = 100_000;

/// What the metadata says. Keys of another type than expected are errors that name them.
pub fn describe(metadata: &Metadata) -> Result<Description, GgufError> {
    let architecture = metadata.string("general.architecture")?;
    let keys = Keys {
        metadata,
        architecture: architecture.unwrap_or_default(),
    };
    Ok(Description {
        architecture: architecture.map(str::to_string),
        name: metadata.string("general.name")?.map(str::to_string),
        context_length: keys.number("context_length")?,
        layers: keys.number("block_count")?,
        embedding_length: keys.number("embedding_length")?,
        feed_forward_length: keys
            .per_layer("feed_forward_length", 1)
            .iter()
            .copied()
            .max(),
        attention: attention(&keys)?,
        tokenizer: tokenizer(metadata)?,
    })
}

/// Metadata keys that begin with the architecture's name.
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

    /// A number that may be one for all layers, or one for each. Empty when there is none.
    fn per_layer(&self, key: &str, layers: usize) -> Vec<u64> {
        let natural = |value: &Value| value.as_integer().and_then(|n| u64::try_from(n).ok());
        match self.metadata.get(&self.name(key)) {
            Some(Value::Array(array)) => {
                let numbers = array.iter().map(|value| natural(&value));
                numbers.collect::<Option<_>>().unwrap_or_default()
            }
            Some(value) => natural(&value).map(|n| vec![n; layers]).unwrap_or_default(),
            None => Vec::new(),
        }
    }
}

/// The shape of the attention; `None` when a number is missing without which nothing can be said.
fn attention(keys: &Keys<'_>) -> Result<Option<Attention>, GgufError> {
    let layers = keys.number("block_count")?.filter(|&n| n <= MAX_LAYERS);
    let Some(layers) = layers.and_then(|n| usize::try_from(n).ok()) else {
        return Ok(None);
    };
    let heads = keys.per_layer("attention.head_count", layers);
    let Some(&most_heads) = heads.iter().max() else {
        return Ok(None);
    };
    let mut kv_heads = keys.per_layer("attention.head_count_kv", layers);
    if kv_heads.is_empty() {
        kv_heads = heads;
    }
    let even_share = keys
        .number("embedding_length")?
        .and_then(|dim| dim.checked_div(most_heads));
    let key_length = keys.number("attention.key_length")?.or(even_share);
    let Some(key_length) = key_length else {
        return Ok(None);
    };
    Ok(Some(Attention {
        heads: most_heads,
        kv_heads,
        key_length,
        value_length: keys.number("attention.value_length")?.unwrap_or(key_length),
        causal: keys
            .metadata
            .bool(&keys.name("attention.causal"))?
            .unwrap_or(true),
        window: keys
            .number("attention.sliding_window")?
            .filter(|&window| window > 0),
        windowed: windowed_layers(keys, layers),
    }))
}

/// A list of flags, the distance of the global layers, or what we know of the architecture.
fn windowed_layers(keys: &Keys<'_>, layers: usize) -> Vec<bool> {
    match keys
        .metadata
        .get(&keys.name("attention.sliding_window_pattern"))
    {
        Some(Value::Array(flags)) => flags.iter().map(|flag| flag == Value::Bool(true)).collect(),
        Some(value) => {
            let pattern = value.as_integer().and_then(|n| usize::try_from(n).ok());
            pattern
                .map(|n| every_nth_is_global(n, layers))
                .unwrap_or_default()
        }
        None => known_windows(keys.architecture, layers),
    }
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
