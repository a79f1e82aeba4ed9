//! `argmax_partial_f32`: the largest value of each part of each row of logits, and its token.
//!
//! Ties go to the first; a part of nothing but NaN gives -inf and its first token. One threadgroup a
//! part of a row; [`super::argmax`] then chooses among the winners.

use akunu_types::params::ArgmaxPartialParams;

use super::first_largest;
use crate::chip::ChipConfig;
use crate::table::{Args, Family, KernelRow, Launch, buffers, usual_threads};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(p: ArgmaxPartialParams at 3) {
        logits: read f32 = [p.n_rows, p.count],
        values: write f32 = [p.n_rows, n_parts(&p)],
        ids: write u32 = [p.n_rows, n_parts(&p)],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("argmax_partial_f32", ""),
    family: Family::Sampling,
    source: "argmax",
    launch,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// Number of parts of a row; 0, an empty grid that the plan check refuses, if they have no size.
fn n_parts(p: &ArgmaxPartialParams) -> u32 {
    match p.part {
        0 => 0,
        part => p.count.div_ceil(part),
    }
}

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: ArgmaxPartialParams = args.params();
    Launch::new([n_parts(&p), p.n_rows, 1], [usual_threads(chip), 1, 1])
}

fn twin(t: &mut Twin) {
    let p: ArgmaxPartialParams = t.params();
    let Slices {
        logits,
        values,
        ids,
    } = Slices::of(t);
    let rows = logits.chunks(p.count as usize);
    let parts = rows.flat_map(|row| row.chunks(p.part as usize).enumerate());
    for ((at, part), (value, id)) in parts.zip(values.iter_mut().zip(ids)) {
        let place = first_largest(part.iter().copied());
        *value = place.map_or(f32::NEG_INFINITY, |place| part[place]);
        *id = at as u32 * p.part + place.unwrap_or(0) as u32;
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    pub fn all() -> Vec<Case> {
        let mut rng = Rng::new(2);
        let mut tied = vec![0.5f32; 1000];
        tied[300..556].fill(f32::NAN);
        vec![
            case("one value", &[2.0], 1, 8192),
            case(
                "parts of 300, the last of 99",
                &rng.floats(999, 8.0),
                1,
                300,
            ),
            case("ties, and a part of NaN", &tied, 1, 256),
            case("ties within a thread", &[1.5; 900], 1, 600),
            case("-inf", &[f32::NEG_INFINITY; 70], 1, 32),
            case("three rows", &rng.floats(3 * 333, 2.0), 3, 100),
        ]
    }

    /// Values are only moved: exact.
    fn case(label: &str, logits: &[f32], n_rows: u32, part: u32) -> Case {
        let params = ArgmaxPartialParams {
            n_rows,
            count: logits.len() as u32 / n_rows,
            part,
            ..Default::default()
        };
        let n_parts = (n_rows * n_parts(&params)) as usize;
        Case::new(label, &params, 0.0)
            .bind(logits)
            .bind(&vec![f32::NAN; n_parts])
            .bind(&vec![u32::MAX; n_parts])
    }
}
