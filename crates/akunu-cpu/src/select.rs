//! Which function runs a kernel of the table: a pure function of the kernel and the instructions.

use akunu_kernels::KernelId;
use half::f16;

use crate::body::kernel as simd;
use crate::call::Kernel;
use crate::isa::Isa;
use crate::kernel::{attention, elementwise, embedding, kv_cache, norm, rope, sampling, texts};
use crate::{matmul, twin};

/// The kernel to run; the twin where there is no fast one.
pub(crate) fn select(kernel: KernelId, isa: Isa) -> Kernel {
    if isa == Isa::Scalar {
        return twin::run;
    }
    match kernel {
        KernelId::AdvanceRows => sampling::advance_rows,
        KernelId::Argmax => simd::<sampling::Argmax>(isa),
        KernelId::ArgmaxPartial => simd::<sampling::ArgmaxPartial>(isa),
        KernelId::BiasAdd => simd::<elementwise::BiasAdd>(isa),
        KernelId::Copy => elementwise::copy,
        KernelId::CrossAttention => simd::<attention::RowAttention<f16, false>>(isa),
        KernelId::Draw => simd::<sampling::Draw>(isa),
        KernelId::EmbeddingLookup(_) => embedding::lookup,
        kernel if attention::is_attention(kernel) => simd::<attention::Attention>(isa),
        KernelId::GatherRows => elementwise::gather_rows,
        KernelId::GeluErf => simd::<elementwise::GeluErf>(isa),
        KernelId::GeluErfGate => simd::<elementwise::Gate<elementwise::GeluErf>>(isa),
        KernelId::GeluGate => simd::<elementwise::Gate<elementwise::Gelu>>(isa),
        KernelId::GrammarBitmask => sampling::grammar_bitmask,
        KernelId::Halves => simd::<elementwise::Halves>(isa),
        KernelId::HeadNormRopeNeoxStore => simd::<rope::RopeStore<true, true>>(isa),
        KernelId::KvShift => simd::<kv_cache::Shift<false>>(isa),
        KernelId::KvShiftNeox => simd::<kv_cache::Shift<true>>(isa),
        KernelId::LayerNorm => simd::<norm::LayerNorm>(isa),
        KernelId::LogitSoftcap => simd::<elementwise::Softcap>(isa),
        KernelId::MeanRows => simd::<texts::MeanRows>(isa),
        KernelId::Penalties => sampling::penalties,
        KernelId::PosEmbedAdd => simd::<texts::AddLearned>(isa),
        KernelId::RmsNorm => simd::<norm::RmsNorm>(isa),
        KernelId::RmsNormResidual => simd::<norm::RmsNormResidual>(isa),
        KernelId::Rope => simd::<texts::Rope<false>>(isa),
        KernelId::RopeNeox => simd::<texts::Rope<true>>(isa),
        KernelId::RopeNeoxStore => simd::<rope::RopeStore<true, false>>(isa),
        KernelId::RopeStore => simd::<rope::RopeStore<false, false>>(isa),
        KernelId::RowAttention => simd::<attention::RowAttention<f32, false>>(isa),
        KernelId::RowAttentionBias => simd::<attention::RowAttention<f32, true>>(isa),
        KernelId::SiluGate => simd::<elementwise::Gate<elementwise::Silu>>(isa),
        KernelId::SpeechRules => simd::<sampling::SpeechRules>(isa),
        KernelId::EmbeddingScale => simd::<elementwise::Scale>(isa),
        KernelId::TokenScores => simd::<sampling::TokenScores>(isa),
        _ => matmul::select(kernel, isa).unwrap_or(twin::run),
    }
}
