//! `rope_axes_neox_f32`: turns every head of (n_rows, n_heads, head_dim) in place, where rows of images have positions on three axes.
//!
//! Each pair turns by the position on one axis ([`axis_of`]). Rows of tokens have one position on all axes.

use akunu_program::Pairing;
use akunu_types::params::{RoPEAxesParams, Row};

use super::{Frequencies, can_turn, pair_launch, table_len, turned_dim};
use crate::constant::Constant;
use crate::table::{Family, KernelRow, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(|args| p = args.params::<RoPEAxesParams>(), RoPEAxesParams at 1) {
        x: change f32 = [p.n_rows, p.n_heads, p.head_dim],
        rows: read Row = [p.n_rows],
        freqs: read f32 = table_len(args, p.head_dim),
        places: read u32 = [p.n_rows, 2],
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("rope_axes_neox_f32", ""),
    family: Family::Rope,
    source: "rope_axes",
    constants: &[Constant::FreqTable, Constant::TurnedDim],
    launch: |args, chip| {
        let p: RoPEAxesParams = args.params();
        let n_heads = if can_turn(args, p.head_dim) {
            p.n_heads
        } else {
            0
        };
        pair_launch(n_heads, p.head_dim, p.n_rows, chip)
    },
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// The axis that a pair turns by: 0 for time, 1 for height, 2 for width.
pub fn axis_of(p: &RoPEAxesParams, pair: usize) -> usize {
    let [time, height, width] = [p.time_pairs, p.height_pairs, p.width_pairs].map(|n| n as usize);
    if p.is_interleaved != 0 {
        let axis = pair % 3;
        let n_pairs = [0, height, width][axis];
        return if pair < 3 * n_pairs { axis } else { 0 };
    }
    match pair {
        pair if pair < time => 0,
        pair if pair < time + height => 1,
        pair if pair < time + height + width => 2,
        _ => 0,
    }
}

/// Where a row stands on the three axes; `places` are its height and its width, if it is of an image.
pub fn positions(row: &Row, places: &[u32]) -> [u32; 3] {
    match row.is_of_image() {
        true => [row.position, places[0], places[1]],
        false => [row.position; 3],
    }
}

fn twin(t: &mut Twin) {
    let p: RoPEAxesParams = t.params();
    let has_table = t.constants().bool(Constant::FreqTable);
    let turned = turned_dim(t.constants(), p.head_dim);
    let Slices {
        x,
        rows,
        freqs,
        places,
    } = Slices::of(t);
    let frequencies = Frequencies {
        table: has_table.then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim: p.head_dim as usize,
        turned_dim: turned as usize,
    };
    let rows = rows.iter().zip(places.chunks_exact(2));
    let of_rows = x.chunks_exact_mut((p.n_heads * p.head_dim) as usize);
    for (heads, (row, places)) in of_rows.zip(rows) {
        let positions = positions(row, places);
        for head in heads.chunks_exact_mut(p.head_dim as usize) {
            let turns = positions.map(|at| frequencies.turn(head, at as f32, Pairing::Halves));
            for d in 0..p.head_dim as usize / 2 {
                let turned = &turns[axis_of(&p, d)];
                let (a, b) = Pairing::Halves.pair(d, frequencies.turned_dim);
                (head[a], head[b]) = (turned[a], turned[b]);
            }
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::constant::Constants;
    use crate::kernel::rope::cases::{case_table, tolerance};

    /// Shape, the pairs of each axis and what is bound.
    struct Setting {
        head_dim: u32,
        n_heads: u32,
        pairs: [u32; 3],
        is_interleaved: bool,
        has_table: bool,
        turned: u32,
    }

    #[rustfmt::skip]
    pub fn all() -> Vec<Case> {
        let settings = [
            Setting { head_dim: 128, n_heads: 3, pairs: [24, 20, 20], is_interleaved: true, has_table: true, turned: 128 },
            Setting { head_dim: 128, n_heads: 2, pairs: [16, 24, 24], is_interleaved: false, has_table: true, turned: 128 },
            Setting { head_dim: 256, n_heads: 1, pairs: [11, 11, 10], is_interleaved: true, has_table: true, turned: 64 },
            Setting { head_dim: 80, n_heads: 1, pairs: [10, 10, 12], is_interleaved: false, has_table: false, turned: 80 },
        ];
        settings.iter().map(case).collect()
    }

    /// Tokens, an image of two lines and three columns, and a token; the last row is idle.
    fn case(s: &Setting) -> Case {
        let mut rng = Rng::new(u64::from(s.head_dim + s.n_heads));
        let mut rows = vec![Row::at(0, 900), Row::at(0, 901)];
        rows.extend((2..8).map(|slot| Row {
            position: 902,
            ..Row::at(0, slot).of_image()
        }));
        rows.push(Row::at(0, 905));
        rows.push(Row {
            flags: Row::IMAGE,
            ..Row::at(0, 906)
        });
        let mut places = vec![u32::MAX; 2 * rows.len()];
        for cell in 0..6 {
            let place = &mut places[2 * (2 + cell as usize)..][..2];
            place.copy_from_slice(&[902 + cell / 3, 902 + cell % 3]);
        }
        let [time_pairs, height_pairs, width_pairs] = s.pairs;
        let params = RoPEAxesParams {
            n_rows: rows.len() as u32,
            head_dim: s.head_dim,
            n_heads: s.n_heads,
            theta: 10000.0,
            freq_scale: 1.0,
            time_pairs,
            height_pairs,
            width_pairs,
            is_interleaved: u32::from(s.is_interleaved),
            ..Default::default()
        };
        let mut constants = Constants::none().with_bool(Constant::FreqTable, s.has_table);
        if s.turned < s.head_dim {
            constants = constants.with_u32(Constant::TurnedDim, s.turned);
        }
        let elements = rows.len() * (s.n_heads * s.head_dim) as usize;
        let label = format!(
            "head_dim {}, {} turn, heads {}, pairs {:?}, interleaved {}",
            s.head_dim, s.turned, s.n_heads, s.pairs, s.is_interleaved
        );
        Case::new(label, &params, tolerance(1000, s.has_table))
            .constants(constants)
            .bind(&rng.floats(elements, 1.0))
            .bind(&rows)
            .bind(&case_table(s.has_table, s.head_dim, s.turned))
            .bind(&places)
    }
}
