//! What the choice of types asks a model.

use akunu_gguf::{GgufFile, Metadata, TensorInfo, Value};

/// Properties of the whole model that decide about single tensors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Layers.
    pub n_layers: usize,
    /// Tensors that compute values of the attention.
    pub n_values: usize,
    /// Query heads that share a key and value head.
    pub n_sharing: u64,
    /// Experts of a layer; 0 without.
    pub n_experts: u64,
    /// Whether this is a Llama or Qwen 2 model of 70 billion weights.
    pub is_70b: bool,
    /// Whether the token embedding is the output matrix too.
    pub is_tied: bool,
}

impl Facts {
    /// The facts of a file.
    pub fn of(file: &GgufFile) -> Facts {
        let metadata = file.metadata();
        let arch = match metadata.get("general.architecture") {
            Some(Value::Str(arch)) => arch,
            _ => "",
        };
        let number = |key: &str| first_integer(metadata, &format!("{arch}.{key}"));
        let heads = number("attention.head_count").unwrap_or(0);
        let kv_heads = number("attention.head_count_kv").unwrap_or(heads);
        let n_layers = number("block_count").unwrap_or(0);
        Facts {
            n_layers: n_layers as usize,
            n_sharing: heads.checked_div(kv_heads).unwrap_or(0),
            n_experts: number("expert_count").unwrap_or(0),
            is_70b: n_layers == 80 && (arch == "qwen2" || arch == "llama" && heads != kv_heads),
            ..Facts::default()
        }
        .with_tensors(file.tensors())
    }

    /// The same with what the list of tensors tells.
    pub fn with_tensors(self, tensors: &[TensorInfo]) -> Facts {
        let computes_values = |tensor: &&TensorInfo| super::choice::computes_values(&tensor.name);
        Facts {
            n_values: tensors.iter().filter(computes_values).count(),
            is_tied: !tensors.iter().any(|tensor| tensor.name == "output.weight"),
            ..self
        }
    }
}

/// An integer; of a list with one for each layer the first.
fn first_integer(metadata: &Metadata, key: &str) -> Option<u64> {
    let value = match metadata.get(key)? {
        Value::Array(array) => array.iter().next()?,
        value => value,
    };
    u64::try_from(value.as_integer()?).ok()
}
