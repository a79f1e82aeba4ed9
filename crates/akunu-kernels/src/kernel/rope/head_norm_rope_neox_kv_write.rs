//! `head_norm_rope_neox_kv_write_f16`, `head_norm_rope_neox_batch_kv_write_f16`: for models that
//! normalise each head of q and k (Qwen 3, Gemma 3).
//!
//! `q = rope(q / rms(q) * q_norm)`, `k_cache[slot] = rope(k / rms(k) * k_norm)`, `v_cache[slot] = v`;
//! the first for one token out of `qkv`, the second for many and separate q, k and v.

use akunu_types::SharedStruct;
use akunu_types::params::{RoPEBatchKVWriteParams, RoPEQKVWriteParams};

use super::rope_batch_kv_write as batch;
use super::rope_qkv_write as token;
use super::{Projection, Style, case_table, rows_allowed, table_bytes};
use crate::case::{Case, Rng};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::Constant;
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
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
    params: RoPEQKVWriteParams::LAYOUT,
    constants: &[Constant::FreqTable],
    launch: |args, chip| {
        let p: RoPEQKVWriteParams = args.params();
        let rows = 1.min(rows_allowed(p.max_seq_len));
        head_launch(p.n_heads.max(p.n_kv_heads), p.head_dim, rows, chip)
    },
    required: |args| {
        let p: RoPEQKVWriteParams = args.params();
        with_weights((token::INTERLEAVED.required)(args), args, p.head_dim)
    },
    work: token::work,
    twin: |t| {
        let p: RoPEQKVWriteParams = t.params();
        let norm = head_norm(t, (4, 5), p.eps);
        token::qkv_twin(t, Style::SplitHalves, Some(&norm));
    },
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
    required: |args| {
        let p: RoPEBatchKVWriteParams = args.params();
        with_weights((batch::INTERLEAVED.required)(args), args, p.head_dim)
    },
    work: batch::work,
    twin: |t| {
        let p: RoPEBatchKVWriteParams = t.params();
        let norm = head_norm(t, (6, 7), p.eps);
        batch::batch_twin(t, Style::SplitHalves, Some(&norm));
    },
    cases: |_| batch_cases(),
    ..ROW
};

/// A threadgroup a head and row, a thread for each pair in whole SIMD groups. A head that does not fit
/// gets an empty grid, which the plan check refuses.
fn head_launch(n_heads: u32, head_dim: u32, n_rows: u32, chip: &ChipConfig) -> Launch {
    let pairs = head_dim / 2;
    let fits = (1..=chip.max_threads).contains(&pairs);
    let threads = pairs.clamp(1, chip.max_threads);
    let heads = if fits { n_heads } else { 0 };
    Launch::new(
        [heads, n_rows, 1],
        [threads.next_multiple_of(SIMD_WIDTH), 1, 1],
    )
}

/// The bytes of the kernel without the norm, with the two weights before the table.
fn with_weights(mut plain: Vec<usize>, args: &Args, head_dim: u32) -> Vec<usize> {
    let weight = head_dim as usize * size_of::<f32>();
    plain.pop();
    plain.extend([weight, weight, table_bytes(args, head_dim)]);
    plain
}

/// The norm of a head, with the weights of q and k bound at these indices.
fn head_norm<'a>(
    t: &Twin<'a>,
    (q_norm, k_norm): (u8, u8),
    eps: f32,
) -> impl Fn(&[f32], Projection) -> Vec<f32> + use<'a> {
    let (q_norm, k_norm) = (t.read::<f32>(q_norm), t.read::<f32>(k_norm));
    move |head, projection| {
        let weight = match projection {
            Projection::Query => q_norm,
            Projection::Key => k_norm,
        };
        let mut normal = vec![0.0; head.len()];
        rmsnorm(head, weight, eps, &mut normal);
        normal
    }
}

fn cases() -> Vec<Case> {
    let settings = token::SETTINGS.iter();
    settings
        .map(|s| {
            let mut rng = Rng::new(u64::from(s.head_dim));
            let case = token::qkv_case(s, &mut rng);
            bind_weights(case, &mut rng, s.head_dim, s.has_table)
        })
        .collect()
}

fn batch_cases() -> Vec<Case> {
    let settings = batch::SETTINGS.iter();
    settings
        .map(|s| {
            let mut rng = Rng::new(u64::from(s.head_dim));
            let case = batch::batch_case(s, &mut rng);
            bind_weights(case, &mut rng, s.head_dim, s.has_table)
        })
        .collect()
}

fn bind_weights(case: Case, rng: &mut Rng, head_dim: u32, has_table: bool) -> Case {
    case.bind(&rng.floats(head_dim as usize, 1.0))
        .bind(&rng.floats(head_dim as usize, 1.0))
        .bind(&case_table(has_table, head_dim))
}
