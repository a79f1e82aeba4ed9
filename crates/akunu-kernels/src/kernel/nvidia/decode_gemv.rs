//! `decode_gemv_<format>` and `decode_norm_gemv_<format>`: the products of decoding on NVIDIA's GPUs.
//!
//! As [`gemv`](crate::kernel::matmul::gemv) and [`norm_gemv`]. A SIMD group has four outputs at a time, or shares them with
//! others; the SIMD groups of a threadgroup stage x together. Where a format's weights are bytes, x is staged as whole numbers
//! of 16 bits with a factor for each 32, and one instruction multiplies four weights. x begins at a multiple of 16 bytes.

use akunu_types::DType;
use akunu_types::params::NormGemvParams;

use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::kernel::fused::norm_gemv;
use crate::kernel::matmul::product::{self, Product};
use crate::table::{Args, Family, KernelRow, Launch};

/// Outputs of a SIMD group.
pub(super) const ROWS: u32 = 4;
/// SIMD groups that keep a core busy while others wait for memory.
const SIMD_GROUPS_A_CORE: u32 = 16;
/// Most SIMD groups of a threadgroup.
const MAX_SIMD_GROUPS: u32 = 8;
/// Most SIMD groups that share outputs: more would take the place of the next kernel's threadgroups, which begin meanwhile.
const MAX_SPLITS: u32 = 4;
/// Values of K that a SIMD group multiplies at once.
const STEP: u32 = 1024;
/// The formats for which x is staged as whole numbers (`ByteSpans` in include/integer_span.h). Only their kernels take turns.
const AS_INTEGERS: [DType; 7] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q8_0,
    DType::Q4_K,
    DType::Q5_K,
    DType::Q6_K,
];
/// How many of them may lie side by side, with outputs of their own: powers of two, which the kernels need not divide by.
const COLUMNS: [u32; 4] = [8, 4, 2, 1];

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("decode_gemv_", ""),
        family: Family::Nvidia,
        launch,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..product::row(dtype, "decode_gemv")
    }
}

/// The row of the kernel table.
pub fn norm_row(dtype: DType) -> KernelRow {
    KernelRow {
        name: ("decode_norm_gemv_", ""),
        family: Family::Nvidia,
        source: "decode_norm_gemv",
        launch: norm_launch,
        #[cfg(feature = "testing")]
        cases: cases::normed,
        ..norm_gemv::row(dtype)
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p = Product::of(args);
    let (columns, splits) = team(|columns| n_threadgroups(&[p.n], columns), p.k, chip);
    let n_turns = n_threadgroups(&[p.n], columns);
    Launch::new(
        [
            n_launched(n_turns, args.dtype, (columns, splits), chip),
            p.m,
            1,
        ],
        [columns * SIMD_WIDTH, splits, 1],
    )
}

fn norm_launch(args: &Args, chip: &ChipConfig) -> Launch {
    let rows = norm_gemv::shared_rows(args);
    let params: NormGemvParams = args.params();
    let (columns, splits) = team(|columns| n_threadgroups(&rows, columns), params.K, chip);
    let n_turns = n_threadgroups(&rows, columns);
    Launch::new(
        [
            n_launched(n_turns, args.dtype, (columns, splits), chip),
            1,
            1,
        ],
        [columns * SIMD_WIDTH, splits, 1],
    )
}

/// Threadgroups of a launch with `n` turns. Where rounding x is much of the work, as many as run at once, which take turns and
/// stage x once for all of theirs; else one for each turn, which the GPU hands out as others end.
pub(super) fn n_launched(
    n: u32,
    dtype: Option<DType>,
    (columns, splits): (u32, u32),
    chip: &ChipConfig,
) -> u32 {
    match dtype {
        Some(dtype) if AS_INTEGERS.contains(&dtype) => {
            n.min(SIMD_GROUPS_A_CORE / (columns * splits) * chip.gpu_cores)
        }
        _ => n,
    }
}

fn n_threadgroups(outputs: &[u32], columns: u32) -> u32 {
    outputs.iter().map(|n| n.div_ceil(ROWS * columns)).sum()
}

/// Columns and splits of a threadgroup's SIMD groups, of which so many columns have `n_threadgroups` turns in all. All of them
/// stage x. Of the shapes that fill the GPU, the one with the most
/// columns, whose SIMD groups need not meet, unless others have much less to do one after another: a round is a turn of all
/// threadgroups that run at once, and a turn has as many steps as the splits leave to each.
pub(super) fn team(n_threadgroups: impl Fn(u32) -> u32, k: u32, chip: &ChipConfig) -> (u32, u32) {
    let n_steps = k.div_ceil(STEP);
    let at_once = SIMD_GROUPS_A_CORE / MAX_SIMD_GROUPS * chip.gpu_cores;
    let splits = |columns: u32| MAX_SPLITS.min(MAX_SIMD_GROUPS / columns);
    let steps_in_turn = |columns: u32| {
        let rounds = n_threadgroups(columns).div_ceil(at_once);
        rounds * n_steps.div_ceil(splits(columns))
    };
    let fills =
        |columns: u32| 20 * u64::from(n_threadgroups(columns)) >= 19 * u64::from(chip.gpu_cores);
    let filling = COLUMNS.into_iter().filter(|&columns| fills(columns));
    let best = filling.reduce(|best, columns| {
        if 10 * steps_in_turn(columns) <= 7 * steps_in_turn(best) {
            columns
        } else {
            best
        }
    });
    let columns = best.unwrap_or(1);
    (columns, splits(columns))
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::Case;
    use crate::kernel::fused::norm_gemv::cases as normed_cases;
    use crate::kernel::matmul::shapes::{self, Binding, Shape};
    use normed_cases::NormShape;

    /// x rounded to 16 bits of the largest value of 32 is wrong by about 1e-5 of it, 2e-10 squared, and in a sum that nearly
    /// cancels by more of what is left: measured at 5e-9 or less. A wrong nibble or row is above 1e-3.
    const NMSE: f64 = 1e-7;

    /// The same where a weight has a single output: 9e-8 or less.
    const NORM_NMSE: f64 = 1e-6;

    /// One output; K of one share and a tail; steps of several chunks; rows that do and that do not consist of whole float4; outputs
    /// that the threadgroups of a small GPU take in turns; columns that are split.
    const SHAPES: &[Shape] = &[
        Shape::new(3, 1, 1),
        Shape::new(1, 5, 301).special(),
        Shape::new(1, 7, 576).factors(0.5, 2.0),
        Shape::new(2, 3, 2056).gaps().factors(1.0, 1.0),
        Shape::new(1, 9, 8960).scale(1e-4).special(),
        Shape::new(2, 530, 64),
        Shape::new(1, 130, 2304),
    ];

    /// For one format only: it takes the simulator long.
    const TURNS_OF_TWO_CHUNKS: Shape = Shape::new(1, 514, 8224);

    /// Turns of two weights, and of a gate; a single weight with columns that are split.
    const NORM_SHAPES_IN_TURNS: &[NormShape] = &[
        ([520, 40, 0], 64, 0),
        ([262, 262, 0], 64, 1),
        ([130, 0, 0], 2304, 0),
    ];

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        let binding = Binding::SINGLE;
        let mut cases = shapes::cases(dtype, SHAPES, binding);
        if dtype == Some(DType::Q4_0) {
            cases.extend(shapes::cases(dtype, &[TURNS_OF_TWO_CHUNKS], binding));
        }
        let cases = cases.into_iter();
        cases.map(|case| case.tolerance(NMSE)).collect()
    }

    pub fn normed(dtype: Option<DType>) -> Vec<Case> {
        let in_turns = normed_cases::of(dtype, NORM_SHAPES_IN_TURNS);
        let cases = normed_cases::all(dtype).into_iter().chain(in_turns);
        cases.map(|case| case.tolerance(NORM_NMSE)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_outputs(outputs: &[u32], k: u32, chip: &ChipConfig) -> (u32, u32) {
        team(|columns| n_threadgroups(outputs, columns), k, chip)
    }

    /// Breaks when a small product leaves most of a large GPU idle, or a large one stages x more often than it has to.
    #[test]
    fn threadgroups_are_large_where_the_gpu_is_full_all_the_same() {
        let chip = ChipConfig {
            gpu_cores: 132,
            ..ChipConfig::m1()
        };
        for (outputs, k, expected) in [
            ([576, 0, 0], 1536, (1, 4)),
            ([1536, 1536, 0], 576, (4, 2)),
            ([2048, 0, 0], 2048, (4, 2)),
            ([2048, 0, 0], 8192, (2, 4)),
            ([2048, 1024, 1024], 1024, (8, 1)),
            ([4096, 0, 0], 4096, (4, 2)),
            ([4096, 1024, 1024], 4096, (8, 1)),
            ([14_336, 14_336, 0], 4096, (8, 1)),
            ([128_256, 0, 0], 4096, (8, 1)),
        ] {
            assert_eq!(of_outputs(&outputs, k, &chip), expected, "{outputs:?}, {k}");
        }
    }

    /// Breaks when more threadgroups are launched than run at once, each of which would stage x again, or fewer.
    #[test]
    fn threadgroups_take_turns_where_there_are_many_outputs() {
        let chip = ChipConfig {
            gpu_cores: 132,
            ..ChipConfig::m1()
        };
        let launched = |n, dtype, team| n_launched(n, Some(dtype), team, &chip);
        assert_eq!(launched(4008, DType::Q4_0, (8, 1)), 264);
        assert_eq!(launched(4008, DType::F16, (8, 1)), 4008);
        assert_eq!(launched(256, DType::Q6_K, (4, 2)), 256);
        assert_eq!(launched(384, DType::Q6_K, (2, 2)), 384);
    }

    /// Breaks when no case has turns on the chip of the simulator.
    #[test]
    fn some_cases_have_turns() {
        let chip = ChipConfig::m1();
        let turns = |outputs: &[u32], k| {
            let team = of_outputs(outputs, k, &chip);
            let n = n_threadgroups(outputs, team.0);
            n.div_ceil(n_launched(n, Some(DType::Q4_0), team, &chip))
        };
        let of_norms = [turns(&[520, 40], 64), turns(&[524], 64)];
        assert_eq!((turns(&[514], 8224), of_norms), (2, [2; 2]));
    }

    /// Breaks when no case has columns that are split.
    #[test]
    fn some_cases_have_columns_that_are_split() {
        let (columns, splits) = of_outputs(&[130], 2304, &ChipConfig::m1());
        assert!(columns > 1 && splits > 1);
    }
}
