//! Short convolutions, the gated delta rule and Mamba-2.

use super::module::HfName::Always;
use super::module::{Module, module};

/// Names without their suffix.
pub(super) const MODULES: &[Module] = &[
    module(
        "layers.{}.conv.taps",
        "blk.{}.shortconv.conv",
        &[Always("layers.{}.conv.conv")],
    ),
    module(
        "layers.{}.conv.input",
        "blk.{}.shortconv.in_proj",
        &[Always("layers.{}.conv.in_proj")],
    ),
    module(
        "layers.{}.conv.output",
        "blk.{}.shortconv.out_proj",
        &[Always("layers.{}.conv.out_proj")],
    ),
    module(
        "layers.{}.state.conv",
        "blk.{}.ssm_conv1d",
        &[
            Always("layers.{}.linear_attn.conv1d"),
            Always("layers.{}.mamba.conv1d"),
            Always("layers.{}.mixer.conv1d"),
        ],
    ),
    module(
        "layers.{}.state.beta",
        "blk.{}.ssm_beta",
        &[Always("layers.{}.linear_attn.in_proj_b")],
    ),
    module(
        "layers.{}.state.alpha",
        "blk.{}.ssm_alpha",
        &[Always("layers.{}.linear_attn.in_proj_a")],
    ),
    module(
        "layers.{}.state.norm",
        "blk.{}.ssm_norm",
        &[
            Always("layers.{}.linear_attn.norm"),
            Always("layers.{}.mamba.norm"),
            Always("layers.{}.mixer.norm"),
        ],
    ),
    module(
        "layers.{}.state.output",
        "blk.{}.ssm_out",
        &[
            Always("layers.{}.linear_attn.out_proj"),
            Always("layers.{}.mamba.out_proj"),
            Always("layers.{}.mixer.out_proj"),
        ],
    ),
    module(
        "layers.{}.state.input",
        "blk.{}.ssm_in",
        &[
            Always("layers.{}.mamba.in_proj"),
            Always("layers.{}.mixer.in_proj"),
            Always("layers.{}.linear_attn.in_proj_qkvz"),
        ],
    ),
    module(
        "layers.{}.state.beta_alpha",
        "blk.{}.ssm_ba",
        &[Always("layers.{}.linear_attn.in_proj_ba")],
    ),
];

/// Names whose suffix differs in some container, or is missing there.
pub(super) const WHOLE: &[Module] = &[
    module(
        "layers.{}.state.decay",
        "blk.{}.ssm_a",
        &[
            Always("layers.{}.linear_attn.A_log"),
            Always("layers.{}.mamba.A_log"),
            Always("layers.{}.mixer.A_log"),
        ],
    ),
    module(
        "layers.{}.state.dt_bias",
        "blk.{}.ssm_dt.bias",
        &[
            Always("layers.{}.linear_attn.dt_bias"),
            Always("layers.{}.mamba.dt_bias"),
            Always("layers.{}.mixer.dt_bias"),
        ],
    ),
    module(
        "layers.{}.state.d",
        "blk.{}.ssm_d",
        &[Always("layers.{}.mamba.D"), Always("layers.{}.mixer.D")],
    ),
];
