//! The twin of all attention kernels: two passes over the visible keys, every sum in f32.

use akunu_types::params::AttentionParams;
use half::f16;

use super::mask::Mask;
use super::{head_dim, n_slots};
use crate::constant::Constant;
use crate::twin::Twin;

/// Attention as it is defined.
pub fn attention(t: &mut Twin) {
    let args = t.args();
    let p: AttentionParams = t.params();
    let (q, k, v) = (t.read::<f32>(0), t.read::<f16>(1), t.read::<f16>(2));
    let mask = Mask::new(&args, t.read::<u16>(5));
    let head_dim = head_dim(&args, &p) as usize;
    let n_slots = n_slots(&args, &p) as usize;
    let cap = args
        .constants
        .f32(Constant::Softcap)
        .filter(|&cap| cap > 0.0);
    let group = p.n_heads / p.n_kv_heads;
    for head in 0..p.n_heads as usize {
        let first_slot = head / group as usize * n_slots;
        for query in 0..p.seq_len as usize {
            let row = |key: usize| (first_slot + key % n_slots) * head_dim;
            let at = query_offset(&p, query, head);
            let scores: Vec<(usize, f32)> = (0..p.kv_seq_len as usize)
                .filter(|&key| mask.visible(query, key))
                .map(|key| {
                    let product = dot(&q[at..][..head_dim], &k[row(key)..]);
                    (key, score(product * p.scale, cap))
                })
                .collect();
            let out = &mut t.write::<f32>(3)[at..][..head_dim];
            out.fill(0.0);
            for (key, weight) in softmax(&scores) {
                for (out, value) in out.iter_mut().zip(&v[row(key)..]) {
                    *out += weight * value.to_f32();
                }
            }
        }
    }
}

/// Where a query of a head begins, and its output.
pub fn query_offset(p: &AttentionParams, query: usize, head: usize) -> usize {
    match p.q_stride {
        0 => (head * p.seq_len as usize + query) * p.head_dim as usize,
        stride => query * stride as usize + head * p.head_dim as usize,
    }
}

fn dot(a: &[f32], b: &[f16]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b.to_f32()).sum()
}

fn score(scaled: f32, cap: Option<f32>) -> f32 {
    cap.map_or(scaled, |cap| cap * (scaled / cap).tanh())
}

/// The weight of each key.
fn softmax(scores: &[(usize, f32)]) -> Vec<(usize, f32)> {
    let peak = scores.iter().map(|(_, s)| *s).fold(f32::MIN, f32::max);
    let sum: f32 = scores.iter().map(|(_, s)| (s - peak).exp()).sum();
    scores
        .iter()
        .map(|&(key, s)| (key, (s - peak).exp() / sum))
        .collect()
}
