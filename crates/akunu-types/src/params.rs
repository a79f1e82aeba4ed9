//! The parameter structs of the kernels.
//!
//! Rules: `u32` and `f32` fields only, explicit `_pad` words, a size that is a multiple of 16.
//! Counts and strides are in elements unless a comment says bytes.
//!
//! Launch geometry and the bytes that a kernel touches follow from its params alone. What changes from token to token lies
//! in device memory ([`Row`], [`SamplingRule`]).

mod attention;
mod elementwise;
mod embedding;
mod experts;
mod kv_cache;
mod matmul;
mod norm;
mod rope;
mod rows;
mod sampling;
mod state;

pub use attention::{
    AttentionParams, DecodeAttentionParams, LogitSoftcapParams, RowAttentionParams,
};
pub use elementwise::{CopyPiecesParams, ElementwiseParams, HalfRowsParams, MatrixParams};
pub use embedding::{EmbeddingParams, EmbeddingScaleParams, PlaceRowsParams, PosEmbedParams};
pub use experts::{ExpertParams, RouteParams, SortExpertsParams, WeighParams};
pub use kv_cache::KVShiftParams;
pub use matmul::{DecodeGemmParams, GEMMParams, MLXParams, NormGemvParams};
pub use norm::{LayerNormParams, RMSNormParams};
pub use rope::{RoPEAxesParams, RoPEParams, RopeStoreParams, ScaleQueriesParams, TurnHeadsParams};
pub use rows::{AdvanceRowsParams, GatherRowsParams, Row, SamplingRule, ScaleRowsParams};
pub use sampling::{
    ArgmaxParams, ArgmaxPartialParams, DrawParams, GrammarBitmaskParams, PenaltiesParams,
    SpeechRulesParams, TokenScoresParams,
};
pub use state::{DeltaRuleParams, GatedNormParams, ShortConvParams, SplitHeadsParams, SsdParams};

use crate::layout::{SharedStruct, StructLayout};

/// Every parameter struct, in the order of the generated header.
pub const ALL: &[StructLayout] = &[
    GEMMParams::LAYOUT,
    ElementwiseParams::LAYOUT,
    AttentionParams::LAYOUT,
    RowAttentionParams::LAYOUT,
    DecodeAttentionParams::LAYOUT,
    RMSNormParams::LAYOUT,
    LayerNormParams::LAYOUT,
    RoPEParams::LAYOUT,
    RoPEAxesParams::LAYOUT,
    EmbeddingParams::LAYOUT,
    EmbeddingScaleParams::LAYOUT,
    RopeStoreParams::LAYOUT,
    ScaleQueriesParams::LAYOUT,
    TurnHeadsParams::LAYOUT,
    KVShiftParams::LAYOUT,
    PenaltiesParams::LAYOUT,
    MLXParams::LAYOUT,
    DecodeGemmParams::LAYOUT,
    NormGemvParams::LAYOUT,
    MatrixParams::LAYOUT,
    HalfRowsParams::LAYOUT,
    CopyPiecesParams::LAYOUT,
    PosEmbedParams::LAYOUT,
    PlaceRowsParams::LAYOUT,
    ArgmaxPartialParams::LAYOUT,
    ArgmaxParams::LAYOUT,
    DrawParams::LAYOUT,
    TokenScoresParams::LAYOUT,
    SpeechRulesParams::LAYOUT,
    GrammarBitmaskParams::LAYOUT,
    LogitSoftcapParams::LAYOUT,
    Row::LAYOUT,
    SamplingRule::LAYOUT,
    AdvanceRowsParams::LAYOUT,
    GatherRowsParams::LAYOUT,
    ScaleRowsParams::LAYOUT,
    RouteParams::LAYOUT,
    SortExpertsParams::LAYOUT,
    ExpertParams::LAYOUT,
    WeighParams::LAYOUT,
    ShortConvParams::LAYOUT,
    DeltaRuleParams::LAYOUT,
    SsdParams::LAYOUT,
    GatedNormParams::LAYOUT,
    SplitHeadsParams::LAYOUT,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a struct that a kernel was written for changes its size unnoticed.
    #[test]
    fn structs_have_the_sizes_that_kernels_expect() {
        let sizes: Vec<(&str, usize)> = ALL.iter().map(|s| (s.name, s.size)).collect();
        let expected = [
            ("GEMMParams", 32),
            ("ElementwiseParams", 16),
            ("RMSNormParams", 16),
            ("LayerNormParams", 16),
            ("RoPEParams", 32),
            ("EmbeddingParams", 16),
            ("EmbeddingScaleParams", 16),
            ("MLXParams", 48),
            ("DecodeGemmParams", 32),
            ("NormGemvParams", 64),
        ];
        for pair in expected {
            assert!(
                sizes.contains(&pair),
                "{pair:?} is missing or has another size"
            );
        }
    }

    #[test]
    fn every_struct_is_a_multiple_of_16_bytes_of_words() {
        for layout in ALL {
            assert_eq!(layout.size % 16, 0, "{}", layout.name);
            let end = layout.fields.iter().fold(0, |at, field| {
                assert_eq!(
                    field.offset, at,
                    "gap before {}.{}",
                    layout.name, field.name
                );
                at + field.size()
            });
            assert_eq!(end, layout.size, "{}", layout.name);
        }
    }

    #[test]
    fn every_field_but_padding_is_explained() {
        for layout in ALL {
            assert!(!layout.doc.is_empty(), "{}", layout.name);
            for field in layout.fields.iter().filter(|f| !f.name.starts_with("_pad")) {
                assert!(!field.doc.is_empty(), "{}.{}", layout.name, field.name);
            }
        }
    }
}
