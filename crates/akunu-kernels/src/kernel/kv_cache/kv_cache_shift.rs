//! `kv_cache_shift_f16`, `kv_cache_shift_neox_f16`: drops the oldest `shift` positions.
//!
//! `k[p] = turn(k[p + shift], -shift)` and `v[p] = v[p + shift]` for p in `0 .. new_len`: keys are
//! stored turned to their position. Only for caches that never wrapped, `shift + new_len <=
//! max_seq_len`; of more only what fits is moved. Each shift rounds k to half once more.

use akunu_types::SharedStruct;
use akunu_types::params::KVCacheShiftParams;
use akunu_types::rope::divisors;
use half::f16;

use crate::case::{Case, Rng};
use crate::constant::{Constant, Constants};
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::kernel::rope::{Frequencies, Style};
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel with interleaved pairs.
pub const INTERLEAVED: KernelRow = KernelRow {
    name: ("kv_cache_shift_f16", ""),
    dtype: None,
    family: Family::KvCache,
    source: "kv_cache_shift",
    bindings: &[
        read_write(0, "k_cache", Element::F16),
        read_write(1, "v_cache", Element::F16),
        read(3, "freqs", Element::F32),
    ],
    params_index: 2,
    params: KVCacheShiftParams::LAYOUT,
    constants: &[Constant::FreqTable],
    launch: |args, _| {
        let p: KVCacheShiftParams = args.params();
        Launch::elementwise(p.n_kv_heads.saturating_mul(p.head_dim / 2))
    },
    required,
    work,
    twin: |t| twin(t, Style::Interleaved),
    cases: |_| cases(),
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("kv_cache_shift_neox_f16", ""),
    twin: |t| twin(t, Style::SplitHalves),
    ..INTERLEAVED
};

fn required(args: &Args) -> Vec<usize> {
    let p: KVCacheShiftParams = args.params();
    let cache = bytes::<half::f16>(&[p.n_kv_heads, p.max_seq_len, p.head_dim]);
    let table = args.constants.bool(Constant::FreqTable);
    vec![
        cache,
        cache,
        if table {
            p.head_dim as usize / 2 * 4
        } else {
            0
        },
    ]
}

/// Positions that move.
fn n_moved(p: &KVCacheShiftParams) -> u32 {
    p.new_len.min(p.max_seq_len.saturating_sub(p.shift))
}

/// Of the caches only what moves is touched.
fn work(args: &Args, once: Work) -> Work {
    let p: KVCacheShiftParams = args.params();
    let moved = bytes::<f16>(&[p.n_kv_heads, n_moved(&p), p.head_dim]);
    once.with(0, Traffic::both(moved))
        .with(1, Traffic::both(moved))
}

fn twin(t: &mut Twin, style: Style) {
    let p: KVCacheShiftParams = t.params();
    let freqs = t.read::<f32>(3);
    let frequencies = Frequencies {
        table: t.constants().bool(Constant::FreqTable).then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim: p.head_dim as usize,
    };
    let head_dim = p.head_dim as usize;
    let n_moved = n_moved(&p) as usize;
    let (k_before, v_before) = (t.copy::<f16>(0), t.copy::<f16>(1));
    for head in 0..p.n_kv_heads as usize {
        for position in 0..n_moved {
            let to = (head * p.max_seq_len as usize + position) * head_dim;
            let from = to + p.shift as usize * head_dim;
            let k: Vec<f32> = k_before[from..][..head_dim]
                .iter()
                .map(|v| v.to_f32())
                .collect();
            let turned = frequencies.turn(&k, -(p.shift as f32), style);
            for (slot, value) in t.write::<f16>(0)[to..].iter_mut().zip(turned) {
                *slot = f16::from_f32(value);
            }
            t.write::<f16>(1)[to..][..head_dim].copy_from_slice(&v_before[from..][..head_dim]);
        }
    }
}

fn cases() -> Vec<Case> {
    // head_dim, KV heads, slots, shift, positions that remain, table
    [
        (64, 3, 16, 5, 11, false),
        (80, 2, 33, 1, 20, true),
        (128, 1, 8, 7, 9, false),
        (256, 1, 6, 6, 0, true),
    ]
    .map(case)
    .into()
}

/// Angles are small and the same in every executor but for `pow` (16 units in the last place: at a
/// shift of 7, 7e-6 radians); a half may be rounded to the other neighbour, 2^-11, now and then: 1e-8.
fn case(
    (head_dim, n_kv_heads, n_slots, shift, new_len, has_table): (u32, u32, u32, u32, u32, bool),
) -> Case {
    let mut rng = Rng::new(u64::from(head_dim + shift));
    let params = KVCacheShiftParams {
        n_kv_heads,
        head_dim,
        max_seq_len: n_slots,
        shift,
        new_len,
        theta: 10000.0,
        freq_scale: 1.0,
        ..Default::default()
    };
    let elements = (n_kv_heads * n_slots * head_dim) as usize;
    let table = match has_table {
        true => divisors(1e6, head_dim, |_, _| 1.0),
        false => vec![f32::NAN],
    };
    let label = format!(
        "head_dim {head_dim}, heads {n_kv_heads}, {new_len} of {n_slots} slots by {shift}, \
         table {has_table}"
    );
    Case::new(label, &params, 1e-8)
        .constants(Constants::none().with_bool(Constant::FreqTable, has_table))
        .bind(&rng.halves(elements, 1.0))
        .bind(&rng.halves(elements, 1.0))
        .bind(&table)
}
