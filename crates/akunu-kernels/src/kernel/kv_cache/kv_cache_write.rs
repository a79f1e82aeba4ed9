//! `kv_cache_write_f16`: `cache[head][(pos + r) % max_seq_len][d] = src[r][head][d]`.
//!
//! Of more rows than the cache has slots the last ones stay.

use akunu_types::SharedStruct;
use akunu_types::params::KVCacheWriteParams;

use super::Ring;
use crate::case::{Case, Rng};
use crate::cost::{Traffic, Work};
use crate::extent::{bytes, strided};
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write};
use crate::twin::Twin;

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("kv_cache_write_f16", ""),
    dtype: None,
    family: Family::KvCache,
    source: "kv_cache_write",
    bindings: &[
        read(0, "src", Element::F32),
        read_write(1, "cache", Element::F16),
    ],
    params_index: 2,
    params: KVCacheWriteParams::LAYOUT,
    constants: &[],
    launch: |args, _| launch(args),
    required,
    work,
    twin,
    cases: |_| cases(),
};

fn row_elements(p: &KVCacheWriteParams) -> u32 {
    p.n_kv_heads.saturating_mul(p.head_dim)
}

fn stride(p: &KVCacheWriteParams) -> u32 {
    match p.src_stride {
        0 => row_elements(p),
        stride => stride,
    }
}

/// A cache without slots gets an empty grid, which the plan check refuses.
fn launch(args: &Args) -> Launch {
    let p: KVCacheWriteParams = args.params();
    let rows = if p.max_seq_len == 0 { 0 } else { p.seq_len };
    Launch::new([row_elements(&p).div_ceil(256), rows, 1], [256, 1, 1])
}

fn required(args: &Args) -> Vec<usize> {
    let p: KVCacheWriteParams = args.params();
    vec![
        strided::<f32>(p.seq_len, stride(&p), row_elements(&p)),
        bytes::<half::f16>(&[p.n_kv_heads, p.max_seq_len, p.head_dim]),
    ]
}

/// Of the cache a slot a row is written.
fn work(args: &Args, once: Work) -> Work {
    let p: KVCacheWriteParams = args.params();
    let slots = p.seq_len.min(p.max_seq_len);
    let written = bytes::<half::f16>(&[slots, row_elements(&p)]);
    once.with(1, Traffic::written(written))
}

fn twin(t: &mut Twin) {
    let p: KVCacheWriteParams = t.params();
    let src = t.read::<f32>(0);
    let head_dim = p.head_dim as usize;
    let mut ring = Ring {
        cache: t.write(1),
        n_slots: p.max_seq_len as usize,
        head_dim,
    };
    for row in 0..p.seq_len as usize {
        for head in 0..p.n_kv_heads as usize {
            let start = row * stride(&p) as usize + head * head_dim;
            ring.write(head, p.pos as usize + row, &src[start..][..head_dim]);
        }
    }
}

fn cases() -> Vec<Case> {
    // head_dim, KV heads, rows, slots, position, gap between rows
    [
        (64, 3, 1, 8, 5, 0),
        (80, 1, 3, 4, 2, 16),
        (128, 2, 7, 5, 1000, 0),
        (256, 1, 2, 2, 0, 4),
    ]
    .map(case)
    .into()
}

/// Converting to half is exact to the bit everywhere.
fn case(
    (head_dim, n_kv_heads, seq_len, n_slots, pos, gap): (u32, u32, u32, u32, u32, u32),
) -> Case {
    let mut rng = Rng::new(u64::from(head_dim + pos));
    let row = n_kv_heads * head_dim;
    let params = KVCacheWriteParams {
        n_kv_heads,
        head_dim,
        max_seq_len: n_slots,
        pos,
        src_stride: if gap == 0 { 0 } else { row + gap },
        seq_len,
        ..Default::default()
    };
    let label = format!(
        "head_dim {head_dim}, heads {n_kv_heads}, rows {seq_len} from {pos} in {n_slots} slots, \
         gap {gap}"
    );
    Case::new(label, &params, 0.0)
        .bind(&rng.floats((seq_len * (row + gap)) as usize, 100.0))
        .bind(&rng.halves((row * n_slots) as usize, 1.0))
}
