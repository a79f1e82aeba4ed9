//! The list of all kernels.

use akunu_types::DType;

use super::row::KernelRow;
use crate::kernel::{
    activation, attention, common, convert, embedding, experts, fused, kv_cache, matmul, norm,
    nvidia, rope, sampling, state,
};

/// Defines [`KernelId`] from the table below: a variant for each single kernel, and for each grid a
/// variant that carries the weight format, one of those that the function after `for` names.
macro_rules! kernel_table {
    (single { $($single:ident => $single_path:path,)* } grid { $($grid:ident => $grid_path:path, for $formats:path;)* }) => {
        /// A kernel. Variants that carry a [`DType`] exist for the weight formats that [`KernelId::all`] lists.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the kernel's own file documents it")]
        pub enum KernelId { $($single,)* $($grid(DType),)* }

        impl KernelId {
            /// The kernel's row.
            pub fn row(self) -> KernelRow {
                match self {
                    $(KernelId::$single => $single_path,)*
                    $(KernelId::$grid(dtype) => $grid_path(dtype),)*
                }
            }

            /// Every kernel, singles first, then each grid in the order of formats.
            pub fn all() -> Vec<KernelId> {
                let singles = [$(KernelId::$single),*].into_iter();
                singles$(.chain($formats().map(KernelId::$grid)))*.collect()
            }
        }
    };
}

kernel_table! {
    single {
        AdvanceRows => sampling::advance_rows::ROW,
        Argmax => sampling::argmax::ROW,
        ArgmaxPartial => sampling::argmax_partial::ROW,
        BiasAdd => common::bias_add::ROW,
        Copy => common::copy::ROW,
        CopyPieces => common::copy_pieces::ROW,
        CrossAttention => attention::row_attention::CROSS,
        DecodeAttention => nvidia::decode_attention::INTERLEAVED,
        DecodeAttentionNeox => nvidia::decode_attention::NEOX,
        Draw => sampling::draw::ROW,
        EmbeddingScale => embedding::embedding_scale::ROW,
        FlashAttentionDecode => attention::flash_attention_decode::ROW,
        FlashAttentionDecodeFast => attention::flash_attention_decode_fast::ROW,
        FlashAttentionDecodeSplit => attention::flash_attention_decode_split::ROW,
        FlashAttentionJoin => attention::flash_attention_join::ROW,
        FlashAttentionPrefill => attention::flash_attention_prefill::ROW,
        FlashAttentionSinks => attention::flash_attention_sinks::ROW,
        FlashAttentionPrefillV2 => attention::flash_attention_prefill_v2::ROW,
        GatherRows => common::gather_rows::ROW,
        Gelu => activation::activate::GELU,
        GeluErf => activation::activate::GELU_ERF,
        ReluSquared => activation::activate::RELU_SQUARED,
        GeluErfGate => activation::gate::GELU_ERF,
        GeluGate => activation::gate::GELU,
        GrammarBitmask => sampling::grammar_bitmask::ROW,
        GeluHalfRows => convert::half_rows::GELU,
        HalfRows => convert::half_rows::ROW,
        NormHalfRows => convert::half_rows::NORM,
        SiluHalfRows => convert::half_rows::SILU,
        Halves => convert::halves::ROW,
        HeadNormRopeNeoxStore => rope::head_norm_rope_neox_store::ROW,
        KvShift => kv_cache::kv_shift::INTERLEAVED,
        KvShiftNeox => kv_cache::kv_shift::NEOX,
        LayerNorm => norm::layernorm::ROW,
        LogitSoftcap => attention::logit_softcap::ROW,
        MeanRows => common::mean_rows::ROW,
        Penalties => sampling::penalties::ROW,
        PlaceRows => embedding::place_rows::ROW,
        PosEmbedAdd => embedding::pos_embed_add::ROW,
        RmsNorm => norm::rmsnorm::ROW,
        RmsNormResidual => norm::rmsnorm_residual::ROW,
        Rope => rope::rope::INTERLEAVED,
        RopeAxes => rope::rope_axes::ROW,
        RopeNeox => rope::rope::NEOX,
        RopeNeoxStore => rope::rope_store::NEOX,
        RopeStore => rope::rope_store::INTERLEAVED,
        RouteExperts => experts::route_experts::ROW,
        RowAttention => attention::row_attention::ROW,
        RowAttentionBias => attention::row_attention::BIASED,
        ScaleQueries => rope::scale_queries::ROW,
        ScaleRows => common::scale_rows::ROW,
        DeltaRule => state::delta_rule::ROW,
        GatedNorm => state::gated_norm::ROW,
        ShortConv => state::short_conv::ROW,
        SplitHeads => state::split_heads::ROW,
        Ssd => state::ssd::ROW,
        SortExperts => experts::sort_experts::ROW,
        SigmoidGate => activation::gate::SIGMOID,
        SiluGate => activation::gate::SILU,
        SwigluOaiGate => activation::gate::SWIGLU_OAI,
        SpeechRules => sampling::speech_rules::ROW,
        TensorAttention => nvidia::tensor_attention::ROW,
        TokenScores => sampling::token_scores::ROW,
        TurnHeads => rope::turn_heads::ROW,
        WeighRows => experts::weigh_rows::ROW,
    }
    grid {
        Gemv => matmul::gemv::row, for weight_formats;
        GemvWide => matmul::gemv_wide::row, for weight_formats;
        GemvBatched => matmul::gemv_batched::row, for weight_formats;
        GemvSilu => matmul::gemv_gated::silu_row, for weight_formats;
        GemvGelu => matmul::gemv_gated::gelu_row, for weight_formats;
        SimdGemm => matmul::simd_gemm::row, for weight_formats;
        SimdGemmSmall => matmul::simd_gemm_small::row, for weight_formats;
        EmbeddingLookup => embedding::embedding_lookup::row, for weight_formats;
        ExpertGate => experts::expert_gate::row, for weight_formats;
        ExpertDown => experts::expert_down::row, for weight_formats;
        ExpertGemm => experts::expert_gemm::row, for weight_formats;
        ExpertGemmSmall => experts::expert_gemm::small_row, for weight_formats;
        NormGemv => fused::norm_gemv::row, for weight_formats;
        DecodeExpertGate => nvidia::decode_experts::gate_row, for weight_formats;
        DecodeExpertDown => nvidia::decode_experts::down_row, for weight_formats;
        DecodeGemv => nvidia::decode_gemv::row, for weight_formats;
        DecodeGemm => nvidia::decode_gemm::row, for nvidia::decode_gemm::formats;
        DecodeGemmDouble => nvidia::decode_gemm::double_row, for nvidia::decode_gemm::formats;
        DecodeGemmWide => nvidia::shared_gemm::wide_row, for nvidia::staging::formats;
        DecodeGemmWidest => nvidia::shared_gemm::widest_row, for nvidia::staging::formats;
        AsyncGemm32 => nvidia::async_gemm::row_32, for nvidia::staging::formats;
        AsyncGemm64 => nvidia::async_gemm::row_64, for nvidia::staging::formats;
        AsyncGemm128 => nvidia::async_gemm::row_128, for nvidia::staging::formats;
        DecodeNormGemv => nvidia::decode_gemv::norm_row, for weight_formats;
        TensorExperts => nvidia::tensor_experts::row, for nvidia::tensor_gemm::formats;
        TensorExpertsSmall => nvidia::tensor_experts::small_row, for nvidia::tensor_gemm::formats;
        TensorGemm => nvidia::tensor_gemm::row, for nvidia::tensor_gemm::common_formats;
        TensorGemmMedium => nvidia::tensor_gemm::medium_row, for nvidia::tensor_gemm::formats;
        TensorGemmSmall => nvidia::tensor_gemm::small_row, for nvidia::tensor_gemm::small_formats;
    }
}

/// The weight formats that have kernels, in the order of the grids.
pub fn weight_formats() -> impl Iterator<Item = DType> {
    DType::all().filter(|dtype| dtype.is_usable())
}
