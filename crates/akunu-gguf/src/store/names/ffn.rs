//! The feed-forward block of a layer.

use super::module::HfName::Always;
use super::module::{Module, module};

/// Names without their suffix.
pub(super) const MODULES: &[Module] = &[
    module(
        "layers.{}.ffn.gate",
        "blk.{}.ffn_gate",
        &[
            Always("layers.{}.mlp.gate_proj"),
            Always("layers.{}.feed_forward.w1"),
            Always("h.{}.mlp.c_fc_0"),
            Always("layers.{}.feed_forward.gate_proj"),
            Always("encoder.layers.{}.mlp.fc12"),
        ],
    ),
    module(
        "layers.{}.input.gate",
        "blk.{}.inp_gate",
        &[Always("layers.{}.per_layer_input_gate")],
    ),
    module(
        "layers.{}.input.output",
        "blk.{}.proj",
        &[Always("layers.{}.per_layer_projection")],
    ),
    module(
        "layers.{}.ffn.up",
        "blk.{}.ffn_up",
        &[
            Always("layers.{}.mlp.up_proj"),
            Always("layers.{}.mixer.up_proj"),
            Always("layers.{}.mlp.gate_up_proj"),
            Always("layers.{}.mlp.c_fc"),
            Always("layers.{}.feed_forward.w3"),
            Always("h.{}.mlp.c_fc_1"),
            Always("layers.{}.feed_forward.up_proj"),
            Always("encoder.layer.{}.intermediate.dense"),
            Always("encoder.layers.{}.mlp.fc11"),
            Always("layers.{}.mlp.Wi"),
        ],
    ),
    module(
        "layers.{}.ffn.down",
        "blk.{}.ffn_down",
        &[
            Always("layers.{}.mlp.down_proj"),
            Always("layers.{}.mixer.down_proj"),
            Always("layers.{}.mlp.c_proj"),
            Always("layers.{}.feed_forward.w2"),
            Always("h.{}.mlp.c_proj"),
            Always("layers.{}.feed_forward.down_proj"),
            Always("encoder.layer.{}.output.dense"),
            Always("encoder.layers.{}.mlp.fc2"),
            Always("layers.{}.mlp.Wo"),
        ],
    ),
];
