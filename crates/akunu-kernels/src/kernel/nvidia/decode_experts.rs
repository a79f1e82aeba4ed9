//! `decode_expert_gate_<format>` and `decode_expert_down_<format>`: the products of experts for a few rows, on NVIDIA's GPUs.
//!
//! As [`expert_gate`] and [`expert_down`], with the staging and the products of [`decode_gemv`]: the SIMD groups of a threadgroup
//! stage x together, for all experts of a row where they read the same x, and formats of bytes are multiplied four weights at a
//! time. x begins at a multiple of 16 bytes.

use akunu_types::DType;

use super::decode_gemv::{self, ROWS};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::kernel::experts::{Experts, expert_down, expert_gate};
use crate::table::{Args, Family, KernelRow, Launch};

/// Outputs of a SIMD group that computes gate and up of each.
const GATE_OUTPUTS: u32 = ROWS / 2;

/// The row of the kernel table.
pub fn gate_row(dtype: DType) -> KernelRow {
    let row = expert_gate::row(dtype);
    KernelRow {
        name: ("decode_expert_gate_", ""),
        family: Family::Nvidia,
        source: "decode_expert_gate",
        launch: gate_launch,
        #[cfg(feature = "testing")]
        cases: |dtype| cases::rounded((expert_gate::row(cases::some(dtype)).cases)(dtype)),
        ..row
    }
}

/// The row of the kernel table.
pub fn down_row(dtype: DType) -> KernelRow {
    let row = expert_down::row(dtype);
    KernelRow {
        name: ("decode_expert_down_", ""),
        family: Family::Nvidia,
        source: "decode_expert_down",
        launch: down_launch,
        #[cfg(feature = "testing")]
        cases: |dtype| cases::rounded((expert_down::row(cases::some(dtype)).cases)(dtype)),
        ..row
    }
}

/// All experts of a row take turns in the same threadgroups.
fn gate_launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p = Experts::of(args).params;
    let n_turns = |columns: u32| {
        p.N.div_ceil(GATE_OUTPUTS * columns)
            .saturating_mul(p.n_used)
    };
    let team = decode_gemv::team(n_turns, p.K, chip);
    let n = decode_gemv::n_launched(n_turns(team.0), args.dtype, team, chip);
    Launch::new([n, p.n_rows, 1], [team.0 * SIMD_WIDTH, team.1, 1])
}

/// Each result has threadgroups of its own.
fn down_launch(args: &Args, chip: &ChipConfig) -> Launch {
    let experts = Experts::of(args);
    let (p, n_results) = (experts.params, experts.n_results());
    let n_turns = |columns: u32| p.N.div_ceil(ROWS * columns);
    let team = decode_gemv::team(
        |columns| n_turns(columns).saturating_mul(n_results),
        p.K,
        chip,
    );
    let at_once = decode_gemv::n_launched(u32::MAX, args.dtype, team, chip) / n_results.max(1);
    let n = n_turns(team.0).min(at_once.max(1));
    Launch::new([n, n_results, 1], [team.0 * SIMD_WIDTH, team.1, 1])
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;

    /// x is rounded as in [`decode_gemv`], whose sums are wrong by 5e-9 or less where they nearly cancel; a gate passes on the
    /// errors of two of them.
    const NMSE: f64 = 1e-7;

    pub fn some(dtype: Option<DType>) -> DType {
        dtype.expect("a grid has formats")
    }

    pub fn rounded(cases: Vec<Case>) -> Vec<Case> {
        let cases = cases.into_iter();
        cases.map(|case| case.tolerance(NMSE)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::Constants;
    use akunu_types::params::ExpertParams;

    fn launches([n, k]: [u32; 2], n_used: u32, dtype: DType) -> [Launch; 2] {
        let chip = ChipConfig {
            gpu_cores: 132,
            ..ChipConfig::m1()
        };
        let params = |n, k| ExpertParams {
            n_rows: 1,
            n_used,
            n_experts: 64,
            N: n,
            K: k,
            stride: n,
            ..Default::default()
        };
        [
            (gate_row(dtype), params(n, k)),
            (down_row(dtype), params(k, n)),
        ]
        .map(|(row, params)| {
            (row.launch)(
                &row.args(bytemuck::bytes_of(&params), &Constants::none()),
                &chip,
            )
        })
    }

    /// Fails if gate and up stage x in more threadgroups than run at once, or if most of a large GPU is idle: OLMoE's shapes.
    #[test]
    fn one_row_fills_the_gpu_once() {
        let [gate, down] = launches([1024, 2048], 8, DType::Q4_0);
        assert_eq!((gate.grid, gate.threads), ([264, 1, 1], [256, 1, 1]));
        assert_eq!((down.grid, down.threads), ([33, 8, 1], [256, 1, 1]));
    }

    /// Formats that are not multiplied as bytes have a threadgroup for each turn, since their kernels take only one.
    #[test]
    fn other_formats_have_a_threadgroup_for_each_turn() {
        let [gate, down] = launches([1024, 2048], 8, DType::MXFP4);
        assert_eq!(gate.grid, [8 * 1024 / 16, 1, 1]);
        assert_eq!(down.grid, [2048 / 32, 8, 1]);
    }
}
