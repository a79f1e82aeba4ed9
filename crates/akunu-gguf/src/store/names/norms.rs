//! The norms around the blocks of a layer.

use super::module::HfName::{Always, NoSandwich, Sandwich};
use super::module::{Module, module};

/// Names without their suffix.
pub(super) const MODULES: &[Module] = &[
    module(
        "layers.{}.ffn.experts_norm",
        "blk.{}.pre_ffw_norm_2",
        &[Always("layers.{}.pre_feedforward_layernorm_2")],
    ),
    module(
        "layers.{}.ffn.experts_output_norm",
        "blk.{}.post_ffw_norm_2",
        &[Always("layers.{}.post_feedforward_layernorm_2")],
    ),
    module(
        "layers.{}.ffn.shared_output_norm",
        "blk.{}.post_ffw_norm_1",
        &[Always("layers.{}.post_feedforward_layernorm_1")],
    ),
    module(
        "layers.{}.attention_norm",
        "blk.{}.attn_norm",
        &[
            Always("layers.{}.input_layernorm"),
            Always("layers.{}.operator_norm"),
            Always("layers.{}.attn_norm"),
            Always("layers.{}.norm"),
            Always("layers.{}.attention_norm"),
        ],
    ),
    module(
        "layers.{}.post_attention_norm",
        "blk.{}.post_attention_norm",
        &[
            Sandwich("layers.{}.post_attention_layernorm"),
            Always("layers.{}.post_self_attn_layernorm"),
        ],
    ),
    module(
        "layers.{}.attention_output_norm",
        "blk.{}.attn_output_norm",
        &[
            Always("encoder.layer.{}.attention.output.LayerNorm"),
            Always("encoder.layer.{}.attention.LayerNorm"),
            Always("encoder.layers.{}.norm1"),
        ],
    ),
    module(
        "layers.{}.ffn_norm",
        "blk.{}.ffn_norm",
        &[
            NoSandwich("layers.{}.post_attention_layernorm"),
            Always("layers.{}.pre_feedforward_layernorm"),
            Always("layers.{}.pre_ff_layernorm"),
            Always("layers.{}.mlp_norm"),
            Always("layers.{}.ffn_norm"),
        ],
    ),
    module(
        "layers.{}.post_ffn_norm",
        "blk.{}.post_ffw_norm",
        &[
            Always("layers.{}.post_feedforward_layernorm"),
            Always("layers.{}.post_mlp_layernorm"),
        ],
    ),
    module(
        "layers.{}.layer_output_norm",
        "blk.{}.layer_output_norm",
        &[
            Always("encoder.layer.{}.output.LayerNorm"),
            Always("encoder.layers.{}.norm2"),
        ],
    ),
];
