//! `rope_batch_kv_write_f16`, `rope_neox_batch_kv_write_f16`: the same for many tokens and separate
//! q, k and v.
//!
//! Row r has position `pos + r`. Of more rows than the cache has slots the last ones stay.

use akunu_types::SharedStruct;
use akunu_types::params::RoPEBatchKVWriteParams;

use super::{
    Frequencies, HeadNorm, Projection, Ring, Style, case_cache, case_table, pair_launch,
    table_bytes, tolerance,
};
use crate::case::{Case, Rng};
use crate::constant::{Constant, Constants};
use crate::cost::{Traffic, Work};
use crate::extent::{bytes, strided};
use crate::table::{Args, Element, Family, KernelRow, read, read_write};
use crate::twin::Twin;

/// The row of the kernel with interleaved pairs.
pub const INTERLEAVED: KernelRow = KernelRow {
    name: ("rope_batch_kv_write_f16", ""),
    dtype: None,
    family: Family::Rope,
    source: "rope_batch_kv_write",
    bindings: &[
        read_write(0, "q", Element::F32),
        read(1, "k", Element::F32),
        read(2, "v", Element::F32),
        read_write(3, "k_cache", Element::F16),
        read_write(4, "v_cache", Element::F16),
        read(6, "freqs", Element::F32),
    ],
    params_index: 5,
    params: RoPEBatchKVWriteParams::LAYOUT,
    constants: &[Constant::FreqTable],
    launch: |args, _| {
        let p: RoPEBatchKVWriteParams = args.params();
        let n_heads = p.n_heads.max(p.n_kv_heads);
        pair_launch(n_heads, p.head_dim, p.seq_len, p.max_seq_len)
    },
    required,
    work,
    twin: |t| batch_twin(t, Style::Interleaved, None),
    cases: |_| cases(),
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("rope_neox_batch_kv_write_f16", ""),
    twin: |t| batch_twin(t, Style::SplitHalves, None),
    ..INTERLEAVED
};

/// Elements between rows of q.
pub(super) fn q_stride(p: &RoPEBatchKVWriteParams) -> u32 {
    match p.q_stride {
        0 => p.n_heads.saturating_mul(p.head_dim),
        stride => stride,
    }
}

/// Elements between rows of k and of v.
pub(super) fn kv_stride(p: &RoPEBatchKVWriteParams) -> u32 {
    match p.kv_stride {
        0 => p.n_kv_heads.saturating_mul(p.head_dim),
        stride => stride,
    }
}

fn required(args: &Args) -> Vec<usize> {
    let p: RoPEBatchKVWriteParams = args.params();
    let (q, kv) = (
        p.n_heads.saturating_mul(p.head_dim),
        p.n_kv_heads.saturating_mul(p.head_dim),
    );
    let kv = strided::<f32>(p.seq_len, kv_stride(&p), kv);
    let cache = bytes::<half::f16>(&[p.n_kv_heads, p.max_seq_len, p.head_dim]);
    vec![
        strided::<f32>(p.seq_len, q_stride(&p), q),
        kv,
        kv,
        cache,
        cache,
        table_bytes(args, p.head_dim),
    ]
}

/// Of each cache a slot a row is written. The fused kernel has the same first bindings.
pub(super) fn work(args: &Args, once: Work) -> Work {
    let p: RoPEBatchKVWriteParams = args.params();
    let slots = p.seq_len.min(p.max_seq_len);
    let written = bytes::<half::f16>(&[slots, p.n_kv_heads, p.head_dim]);
    once.with(3, Traffic::written(written))
        .with(4, Traffic::written(written))
}

/// The formula; with a norm it is that of the fused kernel as well. The table is the last binding.
pub(super) fn batch_twin(t: &mut Twin, style: Style, norm: Option<HeadNorm>) {
    let p: RoPEBatchKVWriteParams = t.params();
    let freqs = t.read::<f32>(if norm.is_some() { 8 } else { 6 });
    let (head_dim, n_slots) = (p.head_dim as usize, p.max_seq_len as usize);
    let frequencies = Frequencies {
        table: t.constants().bool(Constant::FreqTable).then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim,
    };
    let turn = |head: &[f32], position: usize, projection| {
        let normal = norm.map_or_else(|| head.to_vec(), |norm| norm(head, projection));
        frequencies.turn(&normal, position as f32, style)
    };
    let (k, v) = (t.read::<f32>(1), t.read::<f32>(2));
    let (mut q, mut k_cache, mut v_cache) = (t.copy::<f32>(0), t.copy(3), t.copy(4));
    for row in 0..p.seq_len as usize {
        let position = p.pos as usize + row;
        for head in 0..p.n_heads as usize {
            let start = row * q_stride(&p) as usize + head * head_dim;
            let turned = turn(&q[start..][..head_dim], position, Projection::Query);
            q[start..][..head_dim].copy_from_slice(&turned);
        }
        for head in 0..p.n_kv_heads as usize {
            let start = row * kv_stride(&p) as usize + head * head_dim;
            let turned = turn(&k[start..][..head_dim], position, Projection::Key);
            for (cache, values) in [(&mut k_cache, &turned[..]), (&mut v_cache, &v[start..])] {
                let mut ring = Ring {
                    cache,
                    n_slots,
                    head_dim,
                };
                ring.write(head, position, &values[..head_dim]);
            }
        }
    }
    t.store(0, &q);
    t.store(3, &k_cache);
    t.store(4, &v_cache);
}

/// Shape, position and what is bound.
pub(super) struct Setting {
    pub head_dim: u32,
    pub heads: (u32, u32),
    pub seq_len: u32,
    pub n_slots: u32,
    pub pos: u32,
    pub gap: u32,
    pub has_table: bool,
}

/// The settings of both batch kernels: one row, tails, a wrap, more rows than slots, gaps.
#[rustfmt::skip]
pub(super) const SETTINGS: [Setting; 5] = [
    Setting { head_dim: 64, heads: (9, 3), seq_len: 1, n_slots: 8, pos: 0, gap: 0, has_table: false },
    Setting { head_dim: 80, heads: (4, 1), seq_len: 3, n_slots: 4, pos: 2, gap: 16, has_table: true },
    Setting { head_dim: 96, heads: (2, 2), seq_len: 7, n_slots: 5, pos: 100, gap: 0, has_table: true },
    Setting { head_dim: 128, heads: (8, 1), seq_len: 2, n_slots: 16, pos: 1000, gap: 0, has_table: false },
    Setting { head_dim: 256, heads: (1, 1), seq_len: 2, n_slots: 3, pos: 131_070, gap: 8, has_table: true },
];

fn cases() -> Vec<Case> {
    let settings = SETTINGS.iter();
    settings
        .map(|s| {
            let mut rng = Rng::new(u64::from(s.head_dim + s.pos));
            let case = batch_case(s, &mut rng);
            case.bind(&case_table(s.has_table, s.head_dim))
        })
        .collect()
}

/// The case without its last bindings: norm weights and table.
pub(super) fn batch_case(s: &Setting, rng: &mut Rng) -> Case {
    let (n_heads, n_kv_heads) = s.heads;
    let with_gap = |elements: u32| if s.gap == 0 { 0 } else { elements + s.gap };
    let params = RoPEBatchKVWriteParams {
        seq_len: s.seq_len,
        n_heads,
        n_kv_heads,
        head_dim: s.head_dim,
        max_seq_len: s.n_slots,
        pos: s.pos,
        theta: 10000.0,
        freq_scale: if s.has_table { 0.125 } else { 1.0 },
        eps: 1e-6,
        q_stride: with_gap(n_heads * s.head_dim),
        kv_stride: with_gap(n_kv_heads * s.head_dim),
        ..Default::default()
    };
    let label = format!(
        "head_dim {}, heads {n_heads}/{n_kv_heads}, rows {} from {} in {} slots, gap {}, table {}",
        s.head_dim, s.seq_len, s.pos, s.n_slots, s.gap, s.has_table
    );
    let q = (s.seq_len * q_stride(&params)) as usize;
    let kv = (s.seq_len * kv_stride(&params)) as usize;
    Case::new(label, &params, tolerance(s.pos + s.seq_len, s.has_table))
        .constants(Constants::none().with_bool(Constant::FreqTable, s.has_table))
        .bind(&rng.floats(q, 1.0))
        .bind(&rng.floats(kv, 1.0))
        .bind(&rng.floats(kv, 1.0))
        .bind(&case_cache(rng, n_kv_heads, s.n_slots, s.head_dim))
        .bind(&case_cache(rng, n_kv_heads, s.n_slots, s.head_dim))
}
