//! The twin of all attention kernels: two passes over the visible keys, every sum in f32.

use akunu_types::params::{AttentionParams, Row};

use super::head_dim;
use super::mask::Mask;
use crate::constant::Constant;
use crate::kernel::pages::{Pages, SlotAt};
use crate::twin::Twin;

/// Attention as it is defined.
pub fn attention(t: &mut Twin) {
    let args = t.args();
    let p: AttentionParams = t.params();
    let (q, k, v) = (t.read::<f32>(0), t.read::<u8>(1), t.read::<u8>(2));
    let (rows, table) = (t.read::<Row>(5), t.read::<u32>(6));
    let (mask, pages) = (Mask::new(args.constants), Pages::from((&p, args.constants)));
    let head_dim = head_dim(&args, &p) as usize;
    let cap = args
        .constants
        .f32(Constant::Softcap)
        .filter(|&cap| cap > 0.0);
    let group = (p.n_heads / p.n_kv_heads) as usize;
    for (index, row) in rows.iter().enumerate().skip(p.first_row as usize) {
        let seen = mask.seen(row);
        for head in 0..p.n_heads as usize {
            let key_at = |slot| pages.slot_at(table, row.sequence, slot, head / group);
            let at = query_offset(&p, index, head);
            let scores: Vec<(SlotAt, f32)> = (seen.slots.clone())
                .filter(|&slot| seen.contains(slot))
                .map(|slot| {
                    let key = key_at(slot);
                    let product = dot(&q[at..][..head_dim], &pages.load(k, key));
                    (key, score(product * p.scale, cap))
                })
                .collect();
            let out = &mut t.write::<f32>(3)[at..][..head_dim];
            out.fill(0.0);
            for (key, weight) in softmax(&scores) {
                for (out, value) in out.iter_mut().zip(pages.load(v, key)) {
                    *out += weight * value;
                }
            }
        }
    }
}

/// Where a head of a row begins in Q and in the output.
pub fn query_offset(p: &AttentionParams, row: usize, head: usize) -> usize {
    row * query_stride(p) as usize + head * p.head_dim as usize
}

/// Elements between rows of Q and of the output.
pub fn query_stride(p: &AttentionParams) -> u32 {
    match p.q_stride {
        0 => p.n_heads.saturating_mul(p.head_dim),
        stride => stride,
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn score(scaled: f32, cap: Option<f32>) -> f32 {
    cap.map_or(scaled, |cap| cap * (scaled / cap).tanh())
}

/// The weight of each key.
fn softmax(scores: &[(SlotAt, f32)]) -> Vec<(SlotAt, f32)> {
    let peak = scores.iter().map(|(_, s)| *s).fold(f32::MIN, f32::max);
    let sum: f32 = scores.iter().map(|(_, s)| (s - peak).exp()).sum();
    scores
        .iter()
        .map(|&(key, s)| (key, (s - peak).exp() / sum))
        .collect()
}
