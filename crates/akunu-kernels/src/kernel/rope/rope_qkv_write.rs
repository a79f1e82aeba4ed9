//! `rope_qkv_write_f16`, `rope_neox_qkv_write_f16`: RoPE of one token's q and k, and the cache writes.
//!
//! `qkv` holds q (n_heads, head_dim), and k and v (n_kv_heads, head_dim) at their offsets. q turns in
//! place; the turned k and the plain v go to slot `pos % max_seq_len` of the caches.

use akunu_types::SharedStruct;
use akunu_types::params::RoPEQKVWriteParams;

use super::{Frequencies, Ring, Style, case_cache, case_table, pair_launch, tolerance};
use crate::case::{Case, Rng};
use crate::constant::{Constant, Constants};
use crate::table::{
    Args, Element, Family, KernelRow, array_bytes, read, read_write, strided_bytes,
};
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
    twin: |t| twin(t, Style::Interleaved),
    cases: |_| cases(),
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("rope_neox_qkv_write_f16", ""),
    twin: |t| twin(t, Style::SplitHalves),
    ..INTERLEAVED
};

fn required(args: &Args) -> Vec<usize> {
    let p: RoPEQKVWriteParams = args.params();
    let kv = p.n_kv_heads.saturating_mul(p.head_dim);
    let cache = array_bytes(&[p.n_kv_heads, p.max_seq_len, p.head_dim], Element::F16);
    let table = args.constants.bool(Constant::FreqTable);
    let q = array_bytes(&[p.n_heads, p.head_dim], Element::F32);
    // k and v begin at their offsets: a second row, that many elements after the first.
    let end = |offset| strided_bytes(2, offset, kv, Element::F32);
    vec![
        q.max(end(p.k_elem_offset)).max(end(p.v_elem_offset)),
        cache,
        cache,
        if table {
            p.head_dim as usize / 2 * 4
        } else {
            0
        },
    ]
}

fn twin(t: &mut Twin, style: Style) {
    let p: RoPEQKVWriteParams = t.params();
    let freqs = t.read::<f32>(4);
    let (head_dim, n_slots) = (p.head_dim as usize, p.max_seq_len as usize);
    let frequencies = Frequencies {
        table: t.constants().bool(Constant::FreqTable).then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim,
    };
    let (mut k_cache, mut v_cache) = (t.copy(1), t.copy(2));
    let position = p.pos as f32;
    let qkv = t.write::<f32>(0);
    for head in 0..p.n_kv_heads as usize {
        let k = &qkv[p.k_elem_offset as usize + head * head_dim..][..head_dim];
        let v = &qkv[p.v_elem_offset as usize + head * head_dim..][..head_dim];
        let turned = frequencies.turn(k, position, style);
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
        let turned = frequencies.turn(q, position, style);
        q.copy_from_slice(&turned);
    }
    t.store(1, &k_cache);
    t.store(2, &v_cache);
}

fn cases() -> Vec<Case> {
    // head_dim, query heads, KV heads, slots, position, table
    [
        (64, 9, 3, 32, 0, false),
        (80, 8, 1, 5, 31, true),
        (96, 3, 3, 16, 15, true),
        (128, 4, 1, 7, 1000, false),
        (256, 4, 1, 3, 131_071, true),
    ]
    .map(case)
    .into()
}

fn case(
    (head_dim, n_heads, n_kv_heads, n_slots, pos, has_table): (u32, u32, u32, u32, u32, bool),
) -> Case {
    let mut rng = Rng::new(u64::from(head_dim + pos));
    let k_elem_offset = n_heads * head_dim;
    let v_elem_offset = k_elem_offset + n_kv_heads * head_dim;
    let params = RoPEQKVWriteParams {
        n_kv_heads,
        head_dim,
        max_seq_len: n_slots,
        pos,
        theta: 10000.0,
        n_heads,
        k_elem_offset,
        v_elem_offset,
        freq_scale: if has_table { 1.0 } else { 0.5 },
        ..Default::default()
    };
    let elements = (v_elem_offset + n_kv_heads * head_dim) as usize;
    let label = format!(
        "head_dim {head_dim}, heads {n_heads}/{n_kv_heads}, position {pos} of {n_slots} slots, \
         table {has_table}"
    );
    Case::new(label, &params, tolerance(pos, has_table))
        .constants(Constants::none().with_bool(Constant::FreqTable, has_table))
        .bind(&rng.floats(elements, 1.0))
        .bind(&case_cache(&mut rng, n_kv_heads, n_slots, head_dim))
        .bind(&case_cache(&mut rng, n_kv_heads, n_slots, head_dim))
        .bind(&case_table(has_table, head_dim))
}
