//! Families of kernels.

/// A family: a folder of `kernels/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each variant is the name of a folder")]
pub enum Family {
    Activation,
    Attention,
    Common,
    Convert,
    Embedding,
    Experts,
    Fused,
    KvCache,
    Matmul,
    Norm,
    Nvidia,
    Rope,
    Sampling,
    State,
}

impl Family {
    /// Whether Metal can compile its kernels.
    pub const fn is_metal(self) -> bool {
        !matches!(self, Family::Nvidia)
    }

    /// The folder below `kernels/`.
    pub const fn folder(self) -> &'static str {
        match self {
            Family::Activation => "activation",
            Family::Attention => "attention",
            Family::Common => "common",
            Family::Convert => "convert",
            Family::Embedding => "embedding",
            Family::Experts => "experts",
            Family::Fused => "fused",
            Family::KvCache => "kv_cache",
            Family::Matmul => "matmul",
            Family::Norm => "norm",
            Family::Nvidia => "nvidia",
            Family::Rope => "rope",
            Family::Sampling => "sampling",
            Family::State => "state",
        }
    }
}
