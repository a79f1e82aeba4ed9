//! The sizes of a model.

/// What the layers of an architecture have beside those of a llama.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arch {
    Llama,
    /// Norms of all queries and all keys of a token.
    Olmoe,
    /// Norms of each head's queries and keys.
    Qwen3Moe,
    /// Biases everywhere, attention sinks and a window.
    GptOss,
}

impl Arch {
    /// GGUF's `general.architecture`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Arch::Llama => "llama",
            Arch::Olmoe => "olmoe",
            Arch::Qwen3Moe => "qwen3moe",
            Arch::GptOss => "gpt-oss",
        }
    }
}

/// The sizes of a model.
#[derive(Debug)]
pub struct ModelDims {
    /// The model's name.
    pub name: &'static str,
    pub(super) arch: Arch,
    /// The experts of each layer, in place of one feed-forward block.
    pub(super) experts: Option<ExpertDims>,
    pub dim: u64,
    pub n_layers: u64,
    pub ffn: u64,
    pub n_heads: u64,
    pub n_kv_heads: u64,
    pub head_dim: u64,
    pub n_vocab: u64,
    /// Whether the embedding is the output layer too.
    pub tied: bool,
    pub context: u32,
    pub rope_base: f32,
}

/// The experts of a layer.
#[derive(Debug)]
pub(super) struct ExpertDims {
    pub(super) count: u64,
    pub(super) used: u64,
    /// Elements between the products of an expert.
    pub(super) ffn: u64,
}
