//! Attention of a layer.

use super::module::HfName::Always;
use super::module::{Module, module};

/// Names without their suffix.
pub(super) const MODULES: &[Module] = &[
    module(
        "layers.{}.attention.q",
        "blk.{}.attn_q",
        &[
            Always("layers.{}.self_attn.q_proj"),
            Always("layers.{}.mixer.q_proj"),
            Always("encoder.layer.{}.attention.self.query"),
            Always("encoder.layer.{}.attention.attn.q"),
        ],
    ),
    module(
        "layers.{}.attention.k",
        "blk.{}.attn_k",
        &[
            Always("layers.{}.self_attn.k_proj"),
            Always("layers.{}.mixer.k_proj"),
            Always("encoder.layer.{}.attention.self.key"),
            Always("encoder.layer.{}.attention.attn.k"),
        ],
    ),
    module(
        "layers.{}.attention.v",
        "blk.{}.attn_v",
        &[
            Always("layers.{}.self_attn.v_proj"),
            Always("layers.{}.mixer.v_proj"),
            Always("encoder.layer.{}.attention.self.value"),
            Always("encoder.layer.{}.attention.attn.v"),
        ],
    ),
    module(
        "layers.{}.attention.qkv",
        "blk.{}.attn_qkv",
        &[
            Always("layers.{}.self_attn.qkv_proj"),
            Always("layers.{}.linear_attn.in_proj_qkv"),
            Always("layers.{}.attention.query_key_value"),
            Always("layers.{}.attention.wqkv"),
            Always("encoder.layers.{}.attn.Wqkv"),
            Always("layers.{}.attn.Wqkv"),
        ],
    ),
    module(
        "layers.{}.attention.output",
        "blk.{}.attn_output",
        &[
            Always("layers.{}.self_attn.o_proj"),
            Always("layers.{}.mixer.o_proj"),
            Always("layers.{}.attention.dense"),
            Always("layers.{}.attention.wo"),
            Always("encoder.layer.{}.attention.output.dense"),
            Always("encoder.layer.{}.attention.attn.o"),
            Always("encoder.layers.{}.attn.out_proj"),
            Always("layers.{}.attn.Wo"),
            Always("layers.{}.self_attn.out_proj"),
        ],
    ),
    module(
        "layers.{}.attention.q_norm",
        "blk.{}.attn_q_norm",
        &[
            Always("layers.{}.self_attn.q_norm"),
            Always("layers.{}.self_attn.q_layernorm"),
            Always("layers.{}.self_attn.query_layernorm"),
            Always("layers.{}.attention.query_layernorm"),
        ],
    ),
    module(
        "layers.{}.attention.k_norm",
        "blk.{}.attn_k_norm",
        &[
            Always("layers.{}.self_attn.k_norm"),
            Always("layers.{}.self_attn.k_layernorm"),
            Always("layers.{}.self_attn.key_layernorm"),
            Always("layers.{}.attention.key_layernorm"),
        ],
    ),
    module(
        "layers.{}.attention.gate",
        "blk.{}.attn_gate",
        &[Always("layers.{}.linear_attn.in_proj_z")],
    ),
];

/// Names whose suffix differs in some container, or is missing there.
pub(super) const WHOLE: &[Module] = &[module(
    "layers.{}.attention.sinks",
    "blk.{}.attn_sinks.weight",
    &[Always("layers.{}.self_attn.sinks")],
)];
