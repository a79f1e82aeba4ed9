//! `rope_f32`, `rope_neox_f32`: turns every head of (seq_len, n_heads, head_dim) in place.
//!
//! Row r has position `pos_offset + r`, or `position_ids[r]` where ids are bound.

use akunu_types::SharedStruct;
use akunu_types::params::RoPEParams;

use super::{Frequencies, Style, case_table, pair_launch, table_bytes, tolerance};
use crate::case::{Case, Rng};
use crate::constant::{Constant, Constants};
use crate::cost::once;
use crate::extent::strided;
use crate::table::{Args, Element, Family, KernelRow, read, read_write};
use crate::twin::Twin;

/// The row of the kernel with interleaved pairs.
pub const INTERLEAVED: KernelRow = KernelRow {
    name: ("rope_f32", ""),
    dtype: None,
    family: Family::Rope,
    source: "rope",
    bindings: &[
        read_write(0, "x", Element::F32),
        read(2, "position_ids", Element::U32),
        read(3, "freqs", Element::F32),
    ],
    params_index: 1,
    params: RoPEParams::LAYOUT,
    constants: &[Constant::FreqTable, Constant::PositionIds],
    launch: |args, _| {
        let p: RoPEParams = args.params();
        pair_launch(p.n_heads, p.head_dim, p.seq_len)
    },
    required,
    work: once,
    twin: |t| twin(t, Style::Interleaved),
    cases: |_| cases(),
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("rope_neox_f32", ""),
    twin: |t| twin(t, Style::SplitHalves),
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

fn required(args: &Args) -> Vec<usize> {
    let p: RoPEParams = args.params();
    let ids = args.constants.bool(Constant::PositionIds);
    vec![
        strided::<f32>(p.seq_len, stride(&p), row_elements(&p)),
        if ids { p.seq_len as usize * 4 } else { 0 },
        table_bytes(args, p.head_dim),
    ]
}

fn twin(t: &mut Twin, style: Style) {
    let p: RoPEParams = t.params();
    let (ids, freqs) = (t.read::<u32>(2), t.read::<f32>(3));
    let frequencies = Frequencies {
        table: t.constants().bool(Constant::FreqTable).then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim: p.head_dim as usize,
    };
    let x = t.write::<f32>(0);
    for row in 0..p.seq_len as usize {
        let position = ids.get(row).copied().unwrap_or(p.pos_offset + row as u32);
        let start = row * stride(&p) as usize;
        let heads = x[start..][..row_elements(&p) as usize].chunks_exact_mut(p.head_dim as usize);
        for head in heads {
            let turned = frequencies.turn(head, position as f32, style);
            head.copy_from_slice(&turned);
        }
    }
}

/// Shape, position and what is bound.
struct Setting {
    head_dim: u32,
    n_heads: u32,
    seq_len: u32,
    pos: u32,
    gap: u32,
    has_table: bool,
    has_ids: bool,
}

#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let settings = [
        Setting { head_dim: 64, n_heads: 9, seq_len: 1, pos: 0, gap: 0, has_table: false, has_ids: false },
        Setting { head_dim: 80, n_heads: 3, seq_len: 3, pos: 1000, gap: 16, has_table: false, has_ids: false },
        Setting { head_dim: 96, n_heads: 1, seq_len: 5, pos: 31, gap: 0, has_table: true, has_ids: true },
        Setting { head_dim: 128, n_heads: 4, seq_len: 2, pos: 131_070, gap: 0, has_table: true, has_ids: false },
        Setting { head_dim: 256, n_heads: 2, seq_len: 1, pos: 32_767, gap: 4, has_table: true, has_ids: false },
        Setting { head_dim: 2, n_heads: 5, seq_len: 7, pos: 3, gap: 1, has_table: false, has_ids: true },
    ];
    settings.iter().map(case).collect()
}

fn case(s: &Setting) -> Case {
    let mut rng = Rng::new(u64::from(s.head_dim + s.pos));
    let params = RoPEParams {
        seq_len: s.seq_len,
        head_dim: s.head_dim,
        n_heads: s.n_heads,
        pos_offset: s.pos,
        theta: 10000.0,
        row_stride: if s.gap == 0 {
            0
        } else {
            s.n_heads * s.head_dim + s.gap
        },
        freq_scale: if s.pos == 1000 { 0.25 } else { 1.0 },
        ..Default::default()
    };
    let ids: Vec<u32> = match s.has_ids {
        true => (0..s.seq_len).map(|_| rng.below(100)).collect(),
        false => vec![u32::MAX],
    };
    let elements = (s.seq_len * stride(&params)) as usize;
    Case::new(
        format!(
            "head_dim {}, heads {}, rows {}, position {}, table {}, ids {}",
            s.head_dim, s.n_heads, s.seq_len, s.pos, s.has_table, s.has_ids
        ),
        &params,
        tolerance(s.pos.max(100), s.has_table),
    )
    .constants(
        Constants::none()
            .with_bool(Constant::FreqTable, s.has_table)
            .with_bool(Constant::PositionIds, s.has_ids),
    )
    .bind(&rng.floats(elements, 1.0))
    .bind(&ids)
    .bind(&case_table(s.has_table, s.head_dim))
}
