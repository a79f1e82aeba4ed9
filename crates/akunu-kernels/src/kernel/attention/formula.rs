//! The formula of all attention kernels: two passes over the visible keys, every sum in f32.

use akunu_types::params::{AttentionParams, Row};

use super::mask::Mask;
use super::shape::head_dim;
use crate::constant::{Constant, Constants};
use crate::kernel::pages::{Pages, SlotAt};
use crate::table::Args;

/// Which part of a row's and head's keys.
pub(super) struct PartAt {
    pub row: usize,
    pub head: usize,
    pub part: usize,
}

/// The attention over a part of the keys, and log2 Σ 2^score: -∞ where there is none.
pub struct PartOf {
    /// The attention.
    pub output: Vec<f32>,
    /// The logarithm of the sum of the weights.
    pub weight: f32,
}

/// Keys and values, and how scores are made of them.
pub struct Memory<'a> {
    /// How they lie.
    pub pages: Pages,
    /// The pool of keys.
    pub k: &'a [u8],
    /// The pool of values.
    pub v: &'a [u8],
    /// Factor of the scores.
    pub scale: f32,
    /// Soft cap of the scores.
    pub cap: Option<f32>,
}

impl Memory<'_> {
    /// The attention of a query over some keys.
    pub fn attend(&self, query: &[f32], keys: impl Iterator<Item = SlotAt>) -> PartOf {
        self.attend_with(query, keys, None)
    }

    /// The attention of a query over some keys and a sink, a score without a value.
    fn attend_with(
        &self,
        query: &[f32],
        keys: impl Iterator<Item = SlotAt>,
        sink: Option<f32>,
    ) -> PartOf {
        let scores: Vec<(SlotAt, f32)> = keys
            .map(|key| {
                let product = dot(query, &self.pages.load(self.k, key));
                (key, score(product * self.scale, self.cap))
            })
            .collect();
        let mut output = vec![0.0; query.len()];
        for (key, weight) in softmax(&scores, sink) {
            for (out, value) in output.iter_mut().zip(self.pages.load(self.v, key)) {
                *out += weight * value;
            }
        }
        let weight = log2_sum(&scores);
        PartOf { output, weight }
    }
}

/// The soft cap that constants ask for.
pub fn softcap(constants: &Constants) -> Option<f32> {
    constants.f32(Constant::Softcap).filter(|&cap| cap > 0.0)
}

/// The sink of a head, if it has one.
type SinkOf<'a> = dyn Fn(usize) -> Option<f32> + 'a;

/// The inputs of all attention kernels.
pub(super) struct Given<'a> {
    pub args: Args<'a>,
    pub q: &'a [f32],
    pub k: &'a [u8],
    pub v: &'a [u8],
    pub rows: &'a [Row],
    pub table: &'a [u32],
}

impl Given<'_> {
    /// The attention of whole heads, to `output`.
    pub fn whole_heads(
        &self,
        rounded: fn(f32, f32) -> f32,
        sink: &dyn Fn(usize) -> Option<f32>,
        output: &mut [f32],
    ) {
        let p: AttentionParams = self.args.params();
        self.each_head(1, (rounded, sink), |at, part| {
            let offset = query_offset(&p, at.row, at.head);
            output[offset..][..part.output.len()].copy_from_slice(&part.output);
        });
    }

    /// Of every `n_parts` tiles of 32 keys a part has one. `rounded` gives what a kernel makes of an element of a query; its second
    /// argument is the factor that the element has in scores of base 2. `sink` gives the sink of a head, if it has one.
    pub fn each_head(
        &self,
        n_parts: usize,
        (rounded, sink): (fn(f32, f32) -> f32, &SinkOf),
        mut store: impl FnMut(PartAt, PartOf),
    ) {
        let Given {
            args,
            q,
            k,
            v,
            rows,
            table,
        } = *self;
        let p: AttentionParams = args.params();
        let (mask, pages) = (Mask::new(args.constants), Pages::from((&p, args.constants)));
        let memory = Memory {
            pages,
            k,
            v,
            scale: p.scale,
            cap: softcap(args.constants),
        };
        let factor = match memory.cap {
            Some(cap) => p.scale / cap,
            None => p.scale * std::f32::consts::LOG2_E,
        };
        let head_dim = head_dim(&args, &p) as usize;
        let group = (p.n_heads / p.n_kv_heads) as usize;
        for (index, row) in rows.iter().enumerate().skip(p.first_row as usize) {
            let seen = mask.seen(row);
            for (head, part) in
                (0..p.n_heads as usize).flat_map(|head| (0..n_parts).map(move |part| (head, part)))
            {
                let key_at = |slot| pages.slot_at(table, row.sequence, slot, head / group);
                let query = &q[query_offset(&p, index, head)..][..head_dim];
                let query: Vec<f32> = query.iter().map(|&q| rounded(q, factor)).collect();
                let is_mine = |slot: usize| (slot / 32 - seen.keys.start / 32) % n_parts == part;
                let slots = seen.slots().filter(|&slot| is_mine(slot));
                let found = memory.attend_with(&query, slots.map(key_at), sink(head));
                let at = PartAt {
                    row: index,
                    head,
                    part,
                };
                store(at, found);
            }
        }
    }
}

/// log2 Σ e^score
fn log2_sum(scores: &[(SlotAt, f32)]) -> f32 {
    let peak = scores
        .iter()
        .map(|(_, s)| *s)
        .fold(f32::NEG_INFINITY, f32::max);
    if peak == f32::NEG_INFINITY {
        return peak;
    }
    let sum: f32 = scores.iter().map(|(_, s)| (s - peak).exp()).sum();
    (peak + sum.ln()) * std::f32::consts::LOG2_E
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

/// The weight of each key, beside a sink.
fn softmax(scores: &[(SlotAt, f32)], sink: Option<f32>) -> Vec<(SlotAt, f32)> {
    let all = scores.iter().map(|(_, s)| *s).chain(sink);
    let peak = all.clone().fold(f32::MIN, f32::max);
    let sum: f32 = all.map(|s| (s - peak).exp()).sum();
    scores
        .iter()
        .map(|&(key, s)| (key, (s - peak).exp() / sum))
        .collect()
}
