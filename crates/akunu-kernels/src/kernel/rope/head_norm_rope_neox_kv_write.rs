//! `head_norm_rope_neox_kv_write_f16`, `head_norm_rope_neox_batch_kv_write_f16`: for models that
//! normalise each head of q and k (Qwen 3, Gemma 3).
//!
//! `q = rope(q / rms(q) * q_norm)`, `k_cache[slot] = rope(k / rms(k) * k_norm)`, `v_cache[slot] = v`;
//! the first for one token out of `qkv`, the second for many and separate q, k and v.

use akunu_types::SharedStruct;
use akunu_types::params::{HeadNormRoPEParams, RoPEBatchKVWriteParams};

use super::rope_batch_kv_write::{self as batch, Projection, batch_twin};
use super::{Frequencies, Ring, Style, case_cache, case_table, rows_allowed, tolerance};
use crate::case::{Case, Rng};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::{Constant, Constants};
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::table::{
    Args, Element, Family, KernelRow, Launch, array_bytes, read, read_write, strided_bytes,
};
use crate::twin::Twin;

/// The row of the kernel for one token.
pub const ROW: KernelRow = KernelRow {
    name: ("head_norm_rope_neox_kv_write_f16", ""),
    dtype: None,
    family: Family::Rope,
    source: "head_norm_rope_neox_kv_write",
    bindings: &[
        read_write(0, "qkv", Element::F32),
        read_write(1, "k_cache", Element::F16),
        read_write(2, "v_cache", Element::F16),
        read(4, "q_norm", Element::F32),
        read(5, "k_norm", Element::F32),
        read(6, "freqs", Element::F32),
    ],
    params_index: 3,
    params: HeadNormRoPEParams::LAYOUT,
    constants: &[Constant::FreqTable],
    launch: |args, chip| {
        let p: HeadNormRoPEParams = args.params();
        let rows = 1.min(rows_allowed(p.max_seq_len));
        head_launch(p.n_heads.max(p.n_kv_heads), p.head_dim, rows, chip)
    },
    required,
    twin,
    cases: |_| cases(),
};

/// The row of the kernel for many tokens.
pub const BATCH: KernelRow = KernelRow {
    name: ("head_norm_rope_neox_batch_kv_write_f16", ""),
    bindings: &[
        read_write(0, "q", Element::F32),
        read(1, "k", Element::F32),
        read(2, "v", Element::F32),
        read_write(3, "k_cache", Element::F16),
        read_write(4, "v_cache", Element::F16),
        read(6, "q_norm", Element::F32),
        read(7, "k_norm", Element::F32),
        read(8, "freqs", Element::F32),
    ],
    params_index: 5,
    params: RoPEBatchKVWriteParams::LAYOUT,
    launch: |args, chip| {
        let p: RoPEBatchKVWriteParams = args.params();
        let rows = p.seq_len.min(rows_allowed(p.max_seq_len));
        head_launch(p.n_heads.max(p.n_kv_heads), p.head_dim, rows, chip)
    },
    required: batch_required,
    twin: |t| {
        let p: RoPEBatchKVWriteParams = t.params();
        let (q_norm, k_norm) = (t.read::<f32>(6), t.read::<f32>(7));
        let norm = |head: &[f32], projection| {
            let weight = if projection == Projection::Query {
                q_norm
            } else {
                k_norm
            };
            head_norm(head, weight, p.eps)
        };
        batch_twin(t, Style::SplitHalves, Some(&norm));
    },
    cases: |_| batch_cases(),
    ..ROW
};

/// A threadgroup a head and row, a thread for each pair in whole SIMD groups. A head that does not fit
/// gets an empty grid, which the plan check refuses.
fn head_launch(n_heads: u32, head_dim: u32, n_rows: u32, chip: &ChipConfig) -> Launch {
    let pairs = head_dim / 2;
    let fits = (1..=chip.max_threads).contains(&pairs);
    let threads = pairs.min(chip.max_threads).next_multiple_of(SIMD_WIDTH);
    let heads = if fits { n_heads } else { 0 };
    Launch::new([heads, n_rows, 1], [threads.max(SIMD_WIDTH), 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: HeadNormRoPEParams = args.params();
    let kv = p.n_kv_heads.saturating_mul(p.head_dim);
    let cache = array_bytes(&[p.n_kv_heads, p.max_seq_len, p.head_dim], Element::F16);
    let q = array_bytes(&[p.n_heads, p.head_dim], Element::F32);
    let end = |offset| strided_bytes(2, offset, kv, Element::F32);
    let qkv = q.max(end(p.k_elem_offset)).max(end(p.v_elem_offset));
    [vec![qkv, cache, cache], weights_required(args, p.head_dim)].concat()
}

fn batch_required(args: &Args) -> Vec<usize> {
    let p: RoPEBatchKVWriteParams = args.params();
    let mut sizes = (batch::INTERLEAVED.required)(args);
    sizes.truncate(5);
    [sizes, weights_required(args, p.head_dim)].concat()
}

/// Bytes of the norm weights and of the table.
fn weights_required(args: &Args, head_dim: u32) -> Vec<usize> {
    let table = args.constants.bool(Constant::FreqTable);
    let weight = head_dim as usize * 4;
    vec![
        weight,
        weight,
        if table { head_dim as usize / 2 * 4 } else { 0 },
    ]
}

fn head_norm(head: &[f32], weight: &[f32], eps: f32) -> Vec<f32> {
    let mut normal = vec![0.0; head.len()];
    rmsnorm(head, weight, eps, &mut normal);
    normal
}

fn twin(t: &mut Twin) {
    let p: HeadNormRoPEParams = t.params();
    let (q_norm, k_norm) = (t.read::<f32>(4), t.read::<f32>(5));
    let freqs = t.read::<f32>(6);
    let (head_dim, n_slots) = (p.head_dim as usize, p.max_seq_len as usize);
    let frequencies = Frequencies {
        table: t.constants().bool(Constant::FreqTable).then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim,
    };
    let turn = |head: &[f32], weight: &[f32]| {
        let normal = head_norm(head, weight, p.eps);
        frequencies.turn(&normal, p.pos as f32, Style::SplitHalves)
    };
    let (mut k_cache, mut v_cache) = (t.copy(1), t.copy(2));
    let qkv = t.write::<f32>(0);
    for head in 0..p.n_kv_heads as usize {
        let k = &qkv[p.k_elem_offset as usize + head * head_dim..][..head_dim];
        let v = &qkv[p.v_elem_offset as usize + head * head_dim..][..head_dim];
        let turned = turn(k, k_norm);
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
        let turned = turn(q, q_norm);
        q.copy_from_slice(&turned);
    }
    t.store(1, &k_cache);
    t.store(2, &v_cache);
}

fn cases() -> Vec<Case> {
    // head_dim, query heads, KV heads, slots, position, table
    [
        (64, 3, 1, 8, 0, false),
        (80, 4, 2, 5, 31, true),
        (128, 8, 1, 7, 1000, false),
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
    let params = HeadNormRoPEParams {
        n_kv_heads,
        head_dim,
        max_seq_len: n_slots,
        pos,
        theta: 10000.0,
        n_heads,
        k_elem_offset,
        v_elem_offset,
        freq_scale: if has_table { 0.125 } else { 1.0 },
        eps: 1e-6,
        ..Default::default()
    };
    let elements = (v_elem_offset + n_kv_heads * head_dim) as usize;
    let label = format!(
        "head_dim {head_dim}, heads {n_heads}/{n_kv_heads}, position {pos} of {n_slots} slots, \
         table {has_table}"
    );
    Case::new(label, &params, tolerance(pos, has_table))
        .constants(Constants::none().with_bool(Constant::FreqTable, has_table))
        .bind(&rng.floats(elements, 10.0))
        .bind(&case_cache(&mut rng, n_kv_heads, n_slots, head_dim))
        .bind(&case_cache(&mut rng, n_kv_heads, n_slots, head_dim))
        .bind(&rng.floats(head_dim as usize, 1.0))
        .bind(&rng.floats(head_dim as usize, 1.0))
        .bind(&case_table(has_table, head_dim))
}

fn batch_cases() -> Vec<Case> {
    let settings = batch::SETTINGS.iter();
    settings
        .map(|s| {
            let mut rng = Rng::new(u64::from(s.head_dim));
            let case = batch::batch_case(s, &mut rng);
            case.bind(&rng.floats(s.head_dim as usize, 1.0))
                .bind(&rng.floats(s.head_dim as usize, 1.0))
                .bind(&case_table(s.has_table, s.head_dim))
        })
        .collect()
}
