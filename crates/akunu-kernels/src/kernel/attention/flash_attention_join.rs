//! `flash_attention_join_f32`: `O = Σ_p 2^weights[p] parts[p] / Σ_p 2^weights[p]`, the attention of a row and head from its
//! parts ([`flash_attention_decode_split`](super::flash_attention_decode_split)); zeros where no part has a key.

use akunu_types::params::AttentionParams;

use super::flash_attention_decode_split::MAX_PARTS;
use super::formula::query_offset;
use super::{MAX_HEAD_DIM, head_dim, sizes};
use crate::chip::ChipConfig;
use crate::constant::Constant;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::table::{Args, Family, KernelRow, Launch, buffers, usual_threads};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(|args| (p, _, outputs) = sizes(args), AttentionParams at 3) {
        parts: read f32 = [p.n_rows, p.n_heads, p.n_parts, p.head_dim],
        weights: read f32 = [p.n_rows, p.n_heads, p.n_parts],
        O: change f32 = outputs,
    }
}

/// The row of the kernel table.
pub const ROW: KernelRow = KernelRow {
    name: ("flash_attention_join_f32", ""),
    family: Family::Attention,
    source: "flash_attention_join",
    constants: &[Constant::HeadDim],
    launch,
    work,
    twin,
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// Threads that a threadgroup needs: one for each four elements of a head.
const LEAST_THREADS: u32 = MAX_HEAD_DIM / 4;

fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: AttentionParams = args.params();
    let head_dim = head_dim(args, &p);
    let is_supported = (4..=MAX_HEAD_DIM).contains(&head_dim)
        && head_dim.is_multiple_of(4)
        && head_dim == p.head_dim
        && (1..=MAX_PARTS).contains(&p.n_parts);
    let n_heads = if is_supported { p.n_heads } else { 0 };
    Launch::new(
        [p.n_rows, n_heads, 1],
        [usual_threads(chip).max(LEAST_THREADS), 1, 1],
    )
}

fn work(args: &Args, once: Work) -> Work {
    let p: AttentionParams = args.params();
    let written = bytes::<f32>(&[p.n_rows, p.n_heads, p.head_dim]);
    once.with(Buffers::PLACES.O, Traffic::written(written))
}

fn twin(t: &mut Twin) {
    let p: AttentionParams = t.params();
    let (n_parts, head_dim) = (p.n_parts as usize, p.head_dim as usize);
    let b = Slices::of(t);
    for row in 0..p.n_rows as usize {
        for head in 0..p.n_heads as usize {
            let first = (row * p.n_heads as usize + head) * n_parts;
            let weights = &b.weights[first..][..n_parts];
            let peak = weights.iter().copied().fold(f32::MIN, f32::max);
            let sum: f32 = weights.iter().map(|weight| (weight - peak).exp2()).sum();
            let at = query_offset(&p, p.first_row as usize + row, head);
            let out = &mut b.O[at..][..head_dim];
            out.fill(0.0);
            for (part, weight) in b.parts[first * head_dim..]
                .chunks_exact(head_dim)
                .zip(weights)
            {
                let factor = (weight - peak).exp2();
                for (out, value) in out.iter_mut().zip(part) {
                    *out += if sum > 0.0 { factor / sum * value } else { 0.0 };
                }
            }
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};

    /// (head_dim, heads, rows, parts, first row, gap between rows)
    pub fn all() -> Vec<Case> {
        [
            (64, 3, 1, 1, 0, 0),
            (80, 2, 2, 5, 3, 8),
            (128, 4, 1, 33, 0, 0),
            (256, 1, 3, 64, 1, 0),
        ]
        .map(case)
        .into()
    }

    /// The exponential is good to two units in the last place: 1e-6, 1e-12 squared. Some parts have no key, and of the last row
    /// none has.
    fn case(
        (head_dim, n_heads, n_rows, n_parts, first_row, gap): (u32, u32, u32, u32, u32, u32),
    ) -> Case {
        let elements = n_heads * head_dim;
        let params = AttentionParams {
            n_rows,
            first_row,
            n_heads,
            n_kv_heads: 1,
            head_dim,
            q_stride: elements + gap,
            n_parts,
            ..Default::default()
        };
        let mut rng = Rng::new(u64::from(head_dim + n_parts));
        let n_weights = (n_rows * n_heads * n_parts) as usize;
        let mut parts = rng.floats(n_weights * head_dim as usize, 1.0);
        let mut weights = rng.floats(n_weights, 20.0);
        for (at, weight) in weights.iter_mut().enumerate() {
            let is_last_row = n_rows > 1 && at >= n_weights - (n_heads * n_parts) as usize;
            if at % 3 == 1 || is_last_row {
                *weight = f32::NEG_INFINITY;
                parts[at * head_dim as usize..][..head_dim as usize].fill(0.0);
            }
        }
        let n_out = ((first_row + n_rows) * (elements + gap)) as usize;
        let label = format!("head_dim {head_dim}, {n_heads} heads, {n_rows} rows, {n_parts} parts");
        Case::new(label, &params, 1e-11)
            .bind(&parts)
            .bind(&weights)
            .bind(&vec![f32::NAN; n_out])
    }
}
