//! RoPE of q and k, with or without the norm of each head, and the storing of k and v in pages.
//!
//! ```text
//! q[row][h]                 = turn(norm(q[row][h]), position of the row)
//! keys[slot of the row][h]   = turn(norm(k[row][h]), position of the row)
//! values[slot of the row][h] = v[row][h]
//! ```
//!
//! Of keys with a centre what is stored is the turned key less the centre of its head.
//!
//! Rows may be of any sequence; idle ones are left alone. Parts share the heads of one row, and the rows of many.

use akunu_kernels::kernel::rope::{Frequencies, head_norm_rope_neox_store, rope_store, turned_dim};
use std::ops::Range;

use akunu_kernels::kernel::attention::MAX_DECODE_HEAD_DIM;
use akunu_kernels::kernel::pages::Pages;
use akunu_kernels::{Constant, KernelId};
use akunu_program::Pairing;
use akunu_types::params::{RopeStoreParams, Row};

use super::norm::normalise;
use super::rotation::{Rotations, Turn};
use super::stored::SlotMut;
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::place::Place;
use crate::simd::Lanes;

/// Weights of norms that multiply by none.
const ONES: [f32; MAX_DECODE_HEAD_DIM as usize] = [1.0; MAX_DECODE_HEAD_DIM as usize];

/// The kernel, of all four rows of the table.
pub(crate) struct RopeStore;

impl Body for RopeStore {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: RopeStoreParams = call.params();
        let (n_rows, head_dim) = (p.n_rows as usize, p.head_dim as usize);
        let (n_heads, n_kv_heads) = (p.n_heads as usize, p.n_kv_heads as usize);
        let mut norms = None;
        let rope_store::Buffers {
            q,
            k,
            v,
            k_pages,
            v_pages,
            rows,
            table,
            freqs,
            centre,
        } = if call.kernel == KernelId::HeadNormRopeNeoxStore {
            let own: head_norm_rope_neox_store::Buffers<_> = call.buffers();
            norms = Some([own.q_norm, own.k_norm].map(|norm: Place| norm.read(head_dim)));
            own.without_norms()
        } else {
            call.buffers()
        };
        let of = |place, stride: u32, n_heads: usize| Projection {
            place,
            stride: match stride {
                0 => n_heads * head_dim,
                stride => stride as usize,
            },
        };
        let store = Store {
            head_dim,
            rows: rows.read(n_rows),
            qkv: [
                of(q, p.q_stride, n_heads),
                of(k, p.kv_stride, n_kv_heads),
                of(v, p.kv_stride, n_kv_heads),
            ],
            pages: Pages::from((&p, call.args.constants)),
            table: table.read(p.n_sequences as usize * p.table_stride as usize),
            caches: [k_pages, v_pages],
            norms,
            turn_first: call.args.constants.bool(Constant::TurnFirst),
            centres: centres(call, centre, n_kv_heads * head_dim),
            eps: p.eps,
            frequencies: frequencies(call, freqs, head_dim, (p.theta, p.freq_scale)),
            pairing: pairing(call.kernel),
        };
        let share = match n_rows {
            1 => Share {
                rows: 0..1,
                heads: part.range(n_heads),
                kv_heads: part.range(n_kv_heads),
            },
            _ => Share {
                rows: part.range(n_rows),
                heads: 0..n_heads,
                kv_heads: 0..n_kv_heads,
            },
        };
        // SAFETY: `own`: parts share the heads of the only row, or the rows.
        unsafe { store.run::<L>(share, part) }
    }
}

/// Which elements of a head are a pair.
pub(super) fn pairing(kernel: KernelId) -> Pairing {
    match kernel {
        KernelId::RopeStore | KernelId::Rope | KernelId::KvShift => Pairing::Interleaved,
        _ => Pairing::Halves,
    }
}

/// How fast the pairs turn: by the table, if the constant says so, or by the base and the scale.
pub(super) fn frequencies<'a>(
    call: &Call,
    table: Place<'a>,
    head_dim: usize,
    (theta, scale): (f32, f32),
) -> Frequencies<'a> {
    let has_table = call.args.constants.bool(Constant::FreqTable);
    Frequencies {
        table: has_table.then(|| table.read(head_dim / 2)),
        theta,
        scale,
        head_dim,
        turned_dim: turned_dim(call.args.constants, head_dim as u32) as usize,
    }
}

/// The centres of all key heads, if the constant says that keys have them.
pub(super) fn centres<'a>(call: &Call, place: Place<'a>, len: usize) -> Option<&'a [f32]> {
    let has_centres = call.args.constants.bool(Constant::KeyCentre);
    has_centres.then(|| place.read(len))
}

/// q, k or v: heads that lie row by row.
#[derive(Clone, Copy)]
struct Projection<'a> {
    place: Place<'a>,
    stride: usize,
}

impl Projection<'_> {
    /// The first element of a head.
    fn at(&self, row: usize, head: usize, head_dim: usize) -> usize {
        row * self.stride + head * head_dim
    }
}

/// What one part does.
struct Share {
    rows: Range<usize>,
    heads: Range<usize>,
    kv_heads: Range<usize>,
}

/// A launch.
struct Store<'a> {
    head_dim: usize,
    rows: &'a [Row],
    qkv: [Projection<'a>; 3],
    pages: Pages,
    table: &'a [u32],
    caches: [Place<'a>; 2],
    /// Weights of the norms of q and k.
    norms: Option<[&'a [f32]; 2]>,
    /// Whether heads turn before they are multiplied by the weights; keys are not multiplied then.
    turn_first: bool,
    /// What is subtracted from turned keys, (n_kv_heads, head_dim).
    centres: Option<&'a [f32]>,
    eps: f32,
    frequencies: Frequencies<'a>,
    pairing: Pairing,
}

impl Store<'_> {
    /// # Safety
    /// `own`: no other part has the same rows and heads.
    #[inline(always)]
    unsafe fn run<L: Lanes>(&self, share: Share, part: &mut Part) {
        let rows = &self.rows[share.rows.clone()];
        let positions = rows.iter().map(|row| i64::from(row.position));
        let rotations: &mut Rotations = part.kept.get();
        let turns = rotations.of(&self.frequencies, positions, self.pairing);
        let head_dim = self.head_dim;
        let [q_rows, k_rows, v_rows] = self.qkv;
        for (place, (at, row)) in share.rows.zip(rows).enumerate() {
            if !row.is_active() {
                continue;
            }
            let turn = turns.at(place);
            for head in share.heads.clone() {
                // SAFETY: `own`: the head of this row is this part's.
                unsafe {
                    let q = q_rows.place.write(q_rows.at(at, head, head_dim), head_dim);
                    self.turn::<L>(q, 0, turn);
                }
            }
            for head in share.kv_heads.clone() {
                let (pages, slot) = (&self.pages, row.slot as usize);
                let into = pages.slot_at(self.table, row.sequence, slot, head);
                let normal = part.scratch.take::<f32>(head_dim);
                // SAFETY: `own`: nobody writes k and v, and the slot of this head is this part's: no two rows store in one.
                unsafe {
                    let k = k_rows.place.piece(k_rows.at(at, head, head_dim), head_dim);
                    normal.copy_from_slice(k);
                    self.turn::<L>(normal, 1, turn);
                    if let Some(centres) = self.centres {
                        subtract(normal, &centres[head * head_dim..]);
                    }
                    SlotMut::of(pages, self.caches[0], into).round::<L>(pages.format, normal);
                    let v = v_rows.place.piece(v_rows.at(at, head, head_dim), head_dim);
                    SlotMut::of(pages, self.caches[1], into).round::<L>(pages.format, v);
                }
            }
        }
    }

    /// A head of q (0) or k (1), normalised where the model does so, and turned.
    #[inline(always)]
    fn turn<L: Lanes>(&self, head: &mut [f32], projection: usize, turn: Turn) {
        let Some(norms) = self.norms else {
            return rotate::<L>(head, turn);
        };
        if self.turn_first {
            normalise::<L>(head, &ONES[..head.len()], self.eps);
            rotate::<L>(head, turn);
            if projection == 0 {
                head.iter_mut().zip(norms[0]).for_each(|(x, w)| *x *= w);
            }
        } else {
            normalise::<L>(head, norms[projection], self.eps);
            rotate::<L>(head, turn);
        }
    }
}

/// `key -= centre`.
#[inline(always)]
pub(super) fn subtract(key: &mut [f32], centre: &[f32]) {
    key.iter_mut().zip(centre).for_each(|(x, c)| *x -= c);
}

/// Turns a head.
#[inline(always)]
pub(super) fn rotate<L: Lanes>(head: &mut [f32], turn: Turn) {
    match turn.pairing {
        Pairing::Interleaved => rotate_neighbours::<L>(head, turn),
        Pairing::Halves => rotate_halves::<L>(head, turn),
    }
}

/// `x[i] = x[i] * cosine[i] + x[i ^ 1] * sine[i]`.
#[inline(always)]
fn rotate_neighbours<L: Lanes>(head: &mut [f32], Turn { cosines, sines, .. }: Turn) {
    let n = cosines.len();
    assert!(sines.len() == n && head.len() >= n);
    let (whole, rest) = (n / L::N * L::N, n % L::N);
    let (cosines, sines) = (cosines.as_ptr(), sines.as_ptr());
    // SAFETY: `reach`: all accesses are below `n`.
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

/// `a, b = a * cosine - b * sine, a * sine + b * cosine` for the two halves of what turns of the head.
#[inline(always)]
fn rotate_halves<L: Lanes>(head: &mut [f32], Turn { cosines, sines, .. }: Turn) {
    let n = cosines.len();
    assert!(sines.len() == n && head.len() >= 2 * n);
    let (whole, rest) = (n / L::N * L::N, n % L::N);
    let (cosines, sines) = (cosines.as_ptr(), sines.as_ptr());
    let (a, b) = head.split_at_mut(n);
    let (a, b) = (a.as_mut_ptr(), b.as_mut_ptr());
    // SAFETY: `reach`: all accesses are below `n`.
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
