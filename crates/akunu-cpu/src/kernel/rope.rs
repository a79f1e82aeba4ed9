//! RoPE of q and k and the writes to the KV cache, for one token or many, with or without the norm of
//! each head.
//!
//! Parts share the heads of one token, and the rows of many.

use std::ops::Range;

use akunu_kernels::Constant;
use akunu_kernels::kernel::rope::{Frequencies, Style};
use akunu_types::params::{RoPEBatchKVWriteParams, RoPEQKVWriteParams};
use half::f16;

use super::norm::normalise;
use super::rotation::Turn;
use crate::call::{Call, Place};
use crate::part::Part;
use crate::simd::{Body, Lanes};

/// One token, whose q, k and v lie in one buffer. `NEOX` pairs the halves of a head, `NORM` normalises
/// heads first.
pub(crate) struct RopeToken<const NEOX: bool, const NORM: bool>;

impl<const NEOX: bool, const NORM: bool> Body for RopeToken<NEOX, NORM> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: RoPEQKVWriteParams = call.params();
        let head_dim = p.head_dim as usize;
        let rows = |first: u32| Rows {
            place: call.places[0],
            first: first as usize,
            stride: 0,
        };
        let write = Write {
            head_dim,
            n_slots: p.max_seq_len as usize,
            first_position: p.pos.into(),
            qkv: [rows(0), rows(p.k_elem_offset), rows(p.v_elem_offset)],
            caches: [call.places[1], call.places[2]],
            norms: NORM.then(|| [call.places[3], call.places[4]].map(|norm| norm.read(head_dim))),
            eps: p.eps,
            frequencies: frequencies(call, head_dim, p.theta, p.freq_scale),
            style: style(NEOX),
        };
        let share = Share {
            rows: 0..1,
            heads: part.range(p.n_heads as usize),
            kv_heads: part.range(p.n_kv_heads as usize),
            first_kept: 0,
        };
        // SAFETY: parts share the heads; the CPU has the instructions.
        unsafe { write.run::<L>(share, part) }
    }
}

/// Many tokens; q, k and v apart.
pub(crate) struct RopeBatch<const NEOX: bool, const NORM: bool>;

impl<const NEOX: bool, const NORM: bool> Body for RopeBatch<NEOX, NORM> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: RoPEBatchKVWriteParams = call.params();
        let head_dim = p.head_dim as usize;
        let rows = |at: usize, stride: u32, n_heads: u32| Rows {
            place: call.places[at],
            first: 0,
            stride: match stride {
                0 => n_heads as usize * head_dim,
                stride => stride as usize,
            },
        };
        let write = Write {
            head_dim,
            n_slots: p.max_seq_len as usize,
            first_position: p.pos.into(),
            qkv: [
                rows(0, p.q_stride, p.n_heads),
                rows(1, p.kv_stride, p.n_kv_heads),
                rows(2, p.kv_stride, p.n_kv_heads),
            ],
            caches: [call.places[3], call.places[4]],
            norms: NORM.then(|| [call.places[5], call.places[6]].map(|norm| norm.read(head_dim))),
            eps: p.eps,
            frequencies: frequencies(call, head_dim, p.theta, p.freq_scale),
            style: style(NEOX),
        };
        let n_rows = p.seq_len as usize;
        let share = Share {
            rows: part.range(n_rows),
            heads: 0..p.n_heads as usize,
            kv_heads: 0..p.n_kv_heads as usize,
            // Of more rows than slots the last ones stay.
            first_kept: n_rows.saturating_sub(p.max_seq_len as usize),
        };
        // SAFETY: parts share the rows; the CPU has the instructions.
        unsafe { write.run::<L>(share, part) }
    }
}

fn style(neox: bool) -> Style {
    if neox {
        Style::SplitHalves
    } else {
        Style::Interleaved
    }
}

/// How fast the pairs turn; the table is the last binding.
pub(super) fn frequencies<'a>(
    call: &Call<'a>,
    head_dim: usize,
    theta: f32,
    scale: f32,
) -> Frequencies<'a> {
    let has_table = call.args.constants.bool(Constant::FreqTable);
    let table = call.places[call.places.len() - 1];
    Frequencies {
        table: has_table.then(|| table.read(head_dim / 2)),
        theta,
        scale,
        head_dim,
    }
}

/// Heads that lie row by row.
#[derive(Clone, Copy)]
struct Rows<'a> {
    place: Place<'a>,
    first: usize,
    stride: usize,
}

impl Rows<'_> {
    /// The first element of a head.
    fn at(&self, row: usize, head: usize, head_dim: usize) -> usize {
        self.first + row * self.stride + head * head_dim
    }
}

/// What one part does.
struct Share {
    rows: Range<usize>,
    heads: Range<usize>,
    kv_heads: Range<usize>,
    /// The first row whose key and value stay in the cache.
    first_kept: usize,
}

/// A launch.
struct Write<'a> {
    head_dim: usize,
    n_slots: usize,
    first_position: i64,
    qkv: [Rows<'a>; 3],
    caches: [Place<'a>; 2],
    /// Weights of the norms of q and k.
    norms: Option<[&'a [f32]; 2]>,
    eps: f32,
    frequencies: Frequencies<'a>,
    style: Style,
}

impl Write<'_> {
    /// # Safety
    /// No other part has the same rows and heads. The CPU has the instructions.
    #[inline(always)]
    unsafe fn run<L: Lanes>(&self, share: Share, part: &mut Part) {
        let first = self.first_position;
        let positions = first + share.rows.start as i64..first + share.rows.end as i64;
        let turns = part.rotations.of(&self.frequencies, positions, self.style);
        let head_dim = self.head_dim;
        for row in share.rows {
            let turn = turns.at(first + row as i64);
            let [q_rows, k_rows, v_rows] = self.qkv;
            for head in share.heads.clone() {
                // SAFETY: the head of this row is this part's.
                unsafe {
                    let q = q_rows.place.write(q_rows.at(row, head, head_dim), head_dim);
                    self.turn::<L>(q, 0, turn);
                }
            }
            if row < share.first_kept {
                continue;
            }
            let slot = (first as usize + row) % self.n_slots;
            for head in share.kv_heads.clone() {
                let into = (head * self.n_slots + slot) * head_dim;
                let normal = part.scratch.take::<f32>(head_dim);
                // SAFETY: nobody writes k and v, and the slot of this head is this part's.
                unsafe {
                    let k = k_rows.place.piece(k_rows.at(row, head, head_dim), head_dim);
                    normal.copy_from_slice(k);
                    self.turn::<L>(normal, 1, turn);
                    to_halves::<L>(normal, self.caches[0].write(into, head_dim));
                    let v = v_rows.place.piece(v_rows.at(row, head, head_dim), head_dim);
                    to_halves::<L>(v, self.caches[1].write(into, head_dim));
                }
            }
        }
    }

    /// A head of q (0) or k (1), normalised where the model does so, and turned.
    ///
    /// # Safety
    /// The CPU has the instructions.
    #[inline(always)]
    unsafe fn turn<L: Lanes>(&self, head: &mut [f32], projection: usize, turn: Turn) {
        // SAFETY: by the caller's promise.
        unsafe {
            if let Some(norms) = self.norms {
                normalise::<L>(head, norms[projection], self.eps);
            }
            rotate::<L>(head, turn);
        }
    }
}

/// Turns a head.
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
pub(super) unsafe fn rotate<L: Lanes>(head: &mut [f32], turn: Turn) {
    // SAFETY: by the caller's promise.
    unsafe {
        match turn.style {
            Style::Interleaved => rotate_neighbours::<L>(head, turn),
            Style::SplitHalves => rotate_halves::<L>(head, turn),
        }
    }
}

/// `x[i] = x[i] * cosine[i] + x[i ^ 1] * sine[i]`.
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
unsafe fn rotate_neighbours<L: Lanes>(head: &mut [f32], Turn { cosines, sines, .. }: Turn) {
    let n = cosines.len();
    assert!(sines.len() == n && head.len() >= n);
    let (whole, rest) = (n / L::N * L::N, n % L::N);
    let (cosines, sines) = (cosines.as_ptr(), sines.as_ptr());
    // SAFETY: all accesses are below `n`.
    unsafe {
        for at in (0..whole).step_by(L::N) {
            let to = head.as_mut_ptr().add(at);
            let (x, cosine) = (L::load(to), L::load(cosines.add(at)));
            let across = x.swap_pairs().mul(L::load(sines.add(at)));
            x.fma(cosine, across).store(to);
        }
        let to = head.as_mut_ptr().add(whole);
        let x = L::load_part(to, rest);
        let cosine = L::load_part(cosines.add(whole), rest);
        let across = x.swap_pairs().mul(L::load_part(sines.add(whole), rest));
        x.fma(cosine, across).store_part(to, rest);
    }
}

/// `a, b = a * cosine - b * sine, a * sine + b * cosine` for the two halves of the head.
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
unsafe fn rotate_halves<L: Lanes>(head: &mut [f32], Turn { cosines, sines, .. }: Turn) {
    let n = cosines.len();
    assert!(sines.len() == n && head.len() >= 2 * n);
    let (whole, rest) = (n / L::N * L::N, n % L::N);
    let (cosines, sines) = (cosines.as_ptr(), sines.as_ptr());
    let (a, b) = head.split_at_mut(n);
    let (a, b) = (a.as_mut_ptr(), b.as_mut_ptr());
    // SAFETY: all accesses are below `n`.
    unsafe {
        for at in (0..whole).step_by(L::N) {
            let (cosine, sine) = (L::load(cosines.add(at)), L::load(sines.add(at)));
            let (x, y) = (L::load(a.add(at)), L::load(b.add(at)));
            x.mul(cosine).sub(y.mul(sine)).store(a.add(at));
            x.fma(sine, y.mul(cosine)).store(b.add(at));
        }
        let cosine = L::load_part(cosines.add(whole), rest);
        let sine = L::load_part(sines.add(whole), rest);
        let (a, b) = (a.add(whole), b.add(whole));
        let (x, y) = (L::load_part(a, rest), L::load_part(b, rest));
        x.mul(cosine).sub(y.mul(sine)).store_part(a, rest);
        x.fma(sine, y.mul(cosine)).store_part(b, rest);
    }
}

/// Rounds to halves.
///
/// # Safety
/// The CPU has the instructions.
#[inline(always)]
pub(super) unsafe fn to_halves<L: Lanes>(from: &[f32], to: &mut [f16]) {
    assert_eq!(from.len(), to.len());
    let whole = from.len() / L::N * L::N;
    for at in (0..whole).step_by(L::N) {
        // SAFETY: `N` elements from `at` on are below the length.
        unsafe { L::load(from.as_ptr().add(at)).store_halves(to.as_mut_ptr().add(at)) };
    }
    for (to, &from) in to[whole..].iter_mut().zip(&from[whole..]) {
        *to = f16::from_f32(from);
    }
}
