//! `rope_qkv_write_f16`, `rope_neox_qkv_write_f16`: RoPE of one token's q and k, and the cache writes.
//!
//! `qkv` holds q (n_heads, head_dim), and k and v (n_kv_heads, head_dim) at their offsets. q turns in
//! place; the turned k and the plain v go to slot `pos % max_seq_len` of the caches.

use akunu_types::SharedStruct;
use akunu_types::params::RoPEQKVWriteParams;

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
    name: ("rope_qkv_write_f16", ""),
    dtype: None,
    family: Family::Rope,
    source: "rope_qkv_write",
    bindings: &[
        read_write(0, "qkv", Element::F32),
        read_write(1, "k_cache", Element::F16),
        read_write(2, "v_cache", Element::F16),
        read(4, "freqs", Element::F32),
    ],
    params_index: 3,
    params: RoPEQKVWriteParams::LAYOUT,
    constants: &[Constant::FreqTable],
    launch: |args, _| {
        let p: RoPEQKVWriteParams = args.params();
        pair_launch(p.n_heads.max(p.n_kv_heads), p.head_dim, 1, p.max_seq_len)
    },
    required,
    work,
    twin: |t| qkv_twin(t, Style::Interleaved, None),
    cases: |_| cases(),
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("rope_neox_qkv_write_f16", ""),
    twin: |t| qkv_twin(t, Style::SplitHalves, None),
    ..INTERLEAVED
};

fn required(args: &Args) -> Vec<usize> {
    let p: RoPEQKVWriteParams = args.params();
    let kv = p.n_kv_heads.saturating_mul(p.head_dim);
    let cache = bytes::<half::f16>(&[p.n_kv_heads, p.max_seq_len, p.head_dim]);
    let q = bytes::<f32>(&[p.n_heads, p.head_dim]);
    // k and v begin at their offsets: a second row, that many elements after the first.
    let end = |offset| strided::<f32>(2, offset, kv);
    vec![
        q.max(end(p.k_elem_offset)).max(end(p.v_elem_offset)),
        cache,
        cache,
        table_bytes(args, p.head_dim),
    ]
}

/// q is turned in place, k and v are read, and one slot of each cache is written. The fused kernel has
/// the same first bindings.
pub(super) fn work(args: &Args, once: Work) -> Work {
    let p: RoPEQKVWriteParams = args.params();
    let q = bytes::<f32>(&[p.n_heads, p.head_dim]);
    let kv = bytes::<f32>(&[2, p.n_kv_heads, p.head_dim]);
    let slot = Traffic::written(bytes::<half::f16>(&[p.n_kv_heads, p.head_dim]));
    let qkv = Traffic {
        read: q.saturating_add(kv),
        written: q,
    };
    once.with(0, qkv).with(1, slot).with(2, slot)
}

/// The formula; with a norm it is that of the fused kernel as well. The table is the last binding.
pub(super) fn qkv_twin(t: &mut Twin, style: Style, norm: Option<HeadNorm>) {
    let p: RoPEQKVWriteParams = t.params();
    let freqs = t.read::<f32>(if norm.is_some() { 6 } else { 4 });
    let (head_dim, n_slots) = (p.head_dim as usize, p.max_seq_len as usize);
    let frequencies = Frequencies {
        table: t.constants().bool(Constant::FreqTable).then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim,
    };
    let turn = |head: &[f32], projection| {
        let normal = norm.map_or_else(|| head.to_vec(), |norm| norm(head, projection));
        frequencies.turn(&normal, p.pos as f32, style)
    };
    let (mut k_cache, mut v_cache) = (t.copy(1), t.copy(2));
    let qkv = t.write::<f32>(0);
    for head in 0..p.n_kv_heads as usize {
        let k = &qkv[p.k_elem_offset as usize + head * head_dim..][..head_dim];
        let v = &qkv[p.v_elem_offset as usize + head * head_dim..][..head_dim];
        let turned = turn(k, Projection::Key);
        for (cache, row) in [(&mut k_cache, &turned[..]), (&mut v_cache, v)] {
            let mut ring = Ring {
                cache,
                n_slots,
                head_dim,
            };
            ring.write(head, p.pos as usize, row);
        }
    }
    for q in qkv.chunks_exact_mut(head_dim).take(p.n_heads as usize) {
        let turned = turn(q, Projection::Query);
        q.copy_from_slice(&turned);
    }
    t.store(1, &k_cache);
    t.store(2, &v_cache);
}

/// Shape, position and what is bound.
pub(super) struct Setting {
    pub head_dim: u32,
    pub heads: (u32, u32),
    pub n_slots: u32,
    pub pos: u32,
    pub has_table: bool,
}

/// The settings of both kernels for one token: the first and the last slot, wraps, GQA 1, 3, 4 and 8.
#[rustfmt::skip]
pub(super) const SETTINGS: [Setting; 5] = [
    Setting { head_dim: 64, heads: (9, 3), n_slots: 32, pos: 0, has_table: false },
    Setting { head_dim: 80, heads: (8, 1), n_slots: 5, pos: 31, has_table: true },
    Setting { head_dim: 96, heads: (3, 3), n_slots: 16, pos: 15, has_table: true },
    Setting { head_dim: 128, heads: (4, 1), n_slots: 7, pos: 1000, has_table: false },
    Setting { head_dim: 256, heads: (4, 1), n_slots: 3, pos: 131_071, has_table: true },
];

fn cases() -> Vec<Case> {
    let settings = SETTINGS.iter();
    settings
        .map(|s| {
            let mut rng = Rng::new(u64::from(s.head_dim + s.pos));
            let case = qkv_case(s, &mut rng);
            case.bind(&case_table(s.has_table, s.head_dim))
        })
        .collect()
}

/// The case without its last bindings: norm weights and table.
pub(super) fn qkv_case(s: &Setting, rng: &mut Rng) -> Case {
    let (n_heads, n_kv_heads) = s.heads;
    let k_elem_offset = n_heads * s.head_dim;
    let v_elem_offset = k_elem_offset + n_kv_heads * s.head_dim;
    let params = RoPEQKVWriteParams {
        n_kv_heads,
        head_dim: s.head_dim,
        max_seq_len: s.n_slots,
        pos: s.pos,
        theta: 10000.0,
        n_heads,
        k_elem_offset,
        v_elem_offset,
        freq_scale: if s.has_table { 1.0 } else { 0.5 },
        eps: 1e-6,
        ..Default::default()
    };
    let elements = (v_elem_offset + n_kv_heads * s.head_dim) as usize;
    let label = format!(
        "head_dim {}, heads {n_heads}/{n_kv_heads}, position {} of {} slots, table {}",
        s.head_dim, s.pos, s.n_slots, s.has_table
    );
    Case::new(label, &params, tolerance(s.pos, s.has_table))
        .constants(Constants::none().with_bool(Constant::FreqTable, s.has_table))
        .bind(&rng.floats(elements, 1.0))
        .bind(&case_cache(rng, n_kv_heads, s.n_slots, s.head_dim))
        .bind(&case_cache(rng, n_kv_heads, s.n_slots, s.head_dim))
}
