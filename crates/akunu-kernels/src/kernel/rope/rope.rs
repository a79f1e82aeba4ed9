//! `rope_f32`, `rope_neox_f32`: turns every head of (n_rows, n_heads, head_dim) in place, each row by its own position.

use akunu_program::Pairing;
use akunu_types::params::{RoPEParams, Row};

use super::{Frequencies, can_turn, pair_launch, table_len, turned_dim};
use crate::constant::Constant;
use crate::extent::strided;
use crate::table::{Family, KernelRow, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(|args| p = args.params::<RoPEParams>(), RoPEParams at 1) {
        x: change f32 = strided(p.n_rows, stride(&p), row_elements(&p)),
        rows: read Row = [p.n_rows],
        freqs: read f32 = table_len(args, p.head_dim),
    }
}

/// The row of the kernel with interleaved pairs.
pub const INTERLEAVED: KernelRow = KernelRow {
    name: ("rope_f32", ""),
    family: Family::Rope,
    source: "rope",
    constants: &[Constant::FreqTable, Constant::TurnedDim],
    launch: |args, chip| {
        let p: RoPEParams = args.params();
        let n_heads = if can_turn(args, p.head_dim) {
            p.n_heads
        } else {
            0
        };
        pair_launch(n_heads, p.head_dim, p.n_rows, chip)
    },
    twin: |t| twin(t, Pairing::Interleaved),
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("rope_neox_f32", ""),
    twin: |t| twin(t, Pairing::Halves),
    ..INTERLEAVED
};

fn row_elements(p: &RoPEParams) -> u32 {
    p.n_heads.saturating_mul(p.head_dim)
}

fn stride(p: &RoPEParams) -> u32 {
    match p.row_stride {
        0 => row_elements(p),
        stride => stride,
    }
}

fn twin(t: &mut Twin, pairing: Pairing) {
    let p: RoPEParams = t.params();
    let has_table = t.constants().bool(Constant::FreqTable);
    let turned = turned_dim(t.constants(), p.head_dim);
    let Slices { x, rows, freqs } = Slices::of(t);
    let frequencies = Frequencies {
        table: has_table.then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim: p.head_dim as usize,
        turned_dim: turned as usize,
    };
    for (at, row) in rows.iter().enumerate() {
        let start = at * stride(&p) as usize;
        let heads = x[start..][..row_elements(&p) as usize].chunks_exact_mut(p.head_dim as usize);
        for head in heads {
            let turned = frequencies.turn(head, row.position as f32, pairing);
            head.copy_from_slice(&turned);
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::constant::Constants;
    use crate::kernel::rope::cases::{case_table, tolerance};

    /// Shape, first position and what is bound.
    struct Setting {
        head_dim: u32,
        n_heads: u32,
        n_rows: u32,
        pos: u32,
        gap: u32,
        has_table: bool,
        turned: u32,
    }

    #[rustfmt::skip]
    pub fn all() -> Vec<Case> {
        let settings = [
            Setting { head_dim: 64, n_heads: 9, n_rows: 1, pos: 0, gap: 0, has_table: false, turned: 64 },
            Setting { head_dim: 80, n_heads: 3, n_rows: 3, pos: 1000, gap: 16, has_table: false, turned: 80 },
            Setting { head_dim: 96, n_heads: 1, n_rows: 5, pos: 31, gap: 0, has_table: true, turned: 96 },
            Setting { head_dim: 128, n_heads: 4, n_rows: 2, pos: 131_070, gap: 0, has_table: true, turned: 128 },
            Setting { head_dim: 256, n_heads: 2, n_rows: 1, pos: 32_767, gap: 4, has_table: true, turned: 256 },
            Setting { head_dim: 2, n_heads: 5, n_rows: 7, pos: 3, gap: 1, has_table: false, turned: 2 },
            Setting { head_dim: 128, n_heads: 2, n_rows: 3, pos: 1000, gap: 0, has_table: true, turned: 64 },
            Setting { head_dim: 80, n_heads: 3, n_rows: 2, pos: 31, gap: 8, has_table: false, turned: 20 },
        ];
        settings.iter().map(case).collect()
    }

    /// Rows of two texts: the second begins at position 0 again.
    fn case(s: &Setting) -> Case {
        let mut rng = Rng::new(u64::from(s.head_dim + s.pos));
        let params = RoPEParams {
            n_rows: s.n_rows,
            head_dim: s.head_dim,
            n_heads: s.n_heads,
            theta: 10000.0,
            row_stride: if s.gap == 0 {
                0
            } else {
                s.n_heads * s.head_dim + s.gap
            },
            freq_scale: if s.pos == 1000 { 0.25 } else { 1.0 },
            ..Default::default()
        };
        let n_first = s.n_rows.div_ceil(2);
        let rows: Vec<Row> = (0..s.n_rows)
            .map(|at| match at.checked_sub(n_first) {
                None => Row::at(0, s.pos + at),
                Some(position) => Row::at(1, position),
            })
            .collect();
        let elements = (s.n_rows * stride(&params)) as usize;
        let mut constants = Constants::none().with_bool(Constant::FreqTable, s.has_table);
        if s.turned < s.head_dim {
            constants = constants.with_u32(Constant::TurnedDim, s.turned);
        }
        Case::new(
            format!(
                "head_dim {}, {} turn, heads {}, rows {}, position {}, table {}",
                s.head_dim, s.turned, s.n_heads, s.n_rows, s.pos, s.has_table
            ),
            &params,
            tolerance(s.pos.max(100), s.has_table),
        )
        .constants(constants)
        .bind(&rng.floats(elements, 1.0))
        .bind(&rows)
        .bind(&case_table(s.has_table, s.head_dim, s.turned))
    }
}
