//! Which function runs a kernel of the table: a pure function of the kernel and the instructions.

use akunu_kernels::KernelId;
use half::f16;

use crate::body::kernel as simd;
use crate::call::Kernel;
use crate::isa::Isa;
use crate::kernel::{
    attention, elementwise, embedding, experts, kv_cache, norm, rope, sampling, state, texts,
};
use crate::{matmul, twin};

/// The kernel to run; the twin where there is no fast one.
pub(crate) fn select(kernel: KernelId, isa: Isa) -> Kernel {
    if isa == Isa::Scalar {
        return twin::run;
    }
    match kernel {
        KernelId::AdvanceRows => sampling::advance_rows,
        KernelId::Argmax => sampling::argmax,
        KernelId::ArgmaxPartial => sampling::argmax_partial,
        KernelId::BiasAdd => simd::<elementwise::BiasAdd>,
        KernelId::Copy => elementwise::copy,
        KernelId::CopyPieces => elementwise::copy_pieces,
        KernelId::CrossAttention => simd::<attention::RowAttention<f16>>,
        KernelId::Draw => sampling::draw,
        KernelId::EmbeddingLookup(_) => embedding::lookup,
        kernel if attention::is_attention(kernel) => attention::attention,
        KernelId::GatherRows => elementwise::gather_rows,
        KernelId::Gelu => simd::<elementwise::Activate<elementwise::Gelu>>,
        KernelId::GeluErf => simd::<elementwise::Activate<elementwise::GeluErf>>,
        KernelId::GeluErfGate => simd::<elementwise::Gate<elementwise::GeluErf>>,
        KernelId::GeluGate => simd::<elementwise::Gate<elementwise::Gelu>>,
        KernelId::GrammarBitmask => sampling::grammar_bitmask,
        KernelId::Halves => simd::<elementwise::Halves>,
        KernelId::HeadNormRopeNeoxStore => simd::<rope::RopeStore>,
        KernelId::KvShift => simd::<kv_cache::Shift>,
        KernelId::KvShiftNeox => simd::<kv_cache::Shift>,
        KernelId::LayerNorm => simd::<norm::LayerNorm>,
        KernelId::LogitSoftcap => simd::<elementwise::Softcap>,
        KernelId::MeanRows => simd::<texts::MeanRows>,
        KernelId::Penalties => sampling::penalties,
        KernelId::PlaceRows => simd::<texts::PlaceRows>,
        KernelId::PosEmbedAdd => simd::<texts::AddLearned>,
        KernelId::ReluSquared => simd::<elementwise::Activate<elementwise::ReluSquared>>,
        KernelId::RmsNorm => simd::<norm::RmsNorm>,
        KernelId::RmsNormResidual => simd::<norm::RmsNormResidual>,
        KernelId::Rope => simd::<texts::Rope>,
        KernelId::RopeAxes => simd::<texts::RopeAxes>,
        KernelId::RopeNeox => simd::<texts::Rope>,
        KernelId::RopeNeoxStore => simd::<rope::RopeStore>,
        KernelId::RopeStore => simd::<rope::RopeStore>,
        KernelId::RouteExperts => experts::route,
        KernelId::RowAttention => simd::<attention::RowAttention<f32>>,
        KernelId::RowAttentionBias => simd::<attention::RowAttention<f32>>,
        KernelId::DeltaRule => simd::<state::DeltaRule>,
        KernelId::GatedNorm => simd::<state::GatedNorm>,
        KernelId::SplitHeads => state::split_heads,
        KernelId::Ssd => simd::<state::Ssd>,
        KernelId::SigmoidGate => simd::<elementwise::Gate<elementwise::Sigmoid>>,
        KernelId::ShortConv => simd::<state::ShortConv>,
        KernelId::SiluGate => simd::<elementwise::Gate<elementwise::Silu>>,
        KernelId::SpeechRules => sampling::speech_rules,
        KernelId::EmbeddingScale => simd::<elementwise::Scale>,
        KernelId::TokenScores => sampling::token_scores,
        KernelId::TurnHeads => simd::<texts::TurnHeads>,
        KernelId::WeighRows => simd::<experts::WeighRows>,
        _ => matmul::select(kernel, isa).unwrap_or(twin::run),
    }
}
