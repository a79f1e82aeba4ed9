//! `s[r] = Σ_t weight[c][t] * u[r - (taps - 1) + t][c] + bias[c]`, and `silu(s)`, `c * s` or s.
//!
//! A vector has channels. A row that goes on from the `taps - 1` rows right before it finds their inputs in x, whoever computes
//! those; the first rows of a sequence need its state, and whoever computes its first row computes them and all states.

use akunu_kernels::kernel::state::short_conv::{self, GATED, MAX_TAPS, PLAIN};
use akunu_types::params::ShortConvParams;

use super::walk::Walk;
use super::{load, store};
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::place::Place;
use crate::simd::{Lanes, silu};

/// Floats of the widest vector.
const MAX_LANES: usize = 16;
const TAPS: usize = MAX_TAPS as usize;

/// Rows that one part computes with the same weights, at most.
const CHUNK: usize = 64;

/// A convolution and its gate.
pub(crate) struct ShortConv;

impl Body for ShortConv {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: ShortConvParams = call.params();
        let b: short_conv::Buffers<Place> = call.buffers();
        let n_rows = p.n_rows as usize;
        let walk = Walk {
            rows: b.rows.read(n_rows),
            n_blocks: p.n_blocks,
        };
        let n_vectors = (p.width as usize).div_ceil(L::N);
        let items = part.range(n_rows.div_ceil(CHUNK) * n_vectors);
        let kinds = part.scratch.take::<u8>(n_rows);
        for (at, kind) in kinds.iter_mut().enumerate() {
            *kind = kind_of(&walk, at, p.taps as usize);
        }
        let kinds = &*kinds;
        for item in items {
            let (chunk, first) = (item / n_vectors, item % n_vectors * L::N);
            let channels = Channels::<L>::of(&p, &b, first);
            for at in chunk * CHUNK..n_rows.min((chunk + 1) * CHUNK) {
                if kinds[at] & INSIDE != 0 {
                    channels.store(at, channels.before(at));
                } else if kinds[at] & LEADS != 0 {
                    channels.lead(&walk, kinds, at);
                }
            }
        }
    }
}

/// A row that takes part.
const ACTIVE: u8 = 1;
/// The first row of its sequence.
const LEADS: u8 = 2;
/// A row that goes on from the one right before it.
const NEXT: u8 = 4;
/// A row that goes on from as many rows right before it as its result depends on.
const INSIDE: u8 = 8;
/// A row whose state must be stored: the next row of its sequence does not overwrite it.
const STORES: u8 = 16;

fn kind_of(walk: &Walk, at: usize, taps: usize) -> u8 {
    if !walk.rows[at].is_active() {
        return 0;
    }
    let is_inside = at + 1 >= taps && (at + 2 - taps..=at).all(|at| walk.is_next(at));
    let is_overwritten = walk.next(at) == Some(at + 1) && walk.to(at + 1) == walk.to(at);
    let stores = walk.to(at).is_some() && !is_overwritten;
    let flags = [
        (true, ACTIVE),
        (walk.leads(at), LEADS),
        (walk.is_next(at), NEXT),
        (is_inside, INSIDE),
        (stores, STORES),
    ];
    let flags = flags.into_iter().filter(|(is_so, _)| *is_so);
    flags.fold(0, |kind, (_, flag)| kind | flag)
}

/// Up to `L::N` channels of all rows.
struct Channels<'a, L> {
    p: &'a ShortConvParams,
    b: &'a short_conv::Buffers<Place<'a>>,
    first: usize,
    n: usize,
    weight: [L; TAPS],
    bias: L,
}

impl<'a, L: Lanes> Channels<'a, L> {
    #[inline(always)]
    fn of(
        p: &'a ShortConvParams,
        b: &'a short_conv::Buffers<Place<'a>>,
        first: usize,
    ) -> Channels<'a, L> {
        let (width, taps) = (p.width as usize, p.taps as usize);
        let n = L::N.min(width - first);
        let weights = &b.weight.read::<f32>(width * taps)[first * taps..][..n * taps];
        let mut weight = [L::splat(0.0); TAPS];
        for (tap, weight) in weight.iter_mut().enumerate().take(taps) {
            let mut own = [0.0; MAX_LANES];
            for (own, weights) in own.iter_mut().zip(weights.chunks_exact(taps)) {
                *own = weights[tap];
            }
            *weight = load(&own[..n]);
        }
        let bias = match p.has_bias {
            0 => L::splat(0.0),
            _ => load(&b.bias.read::<f32>(width)[first..][..n]),
        };
        Channels {
            p,
            b,
            first,
            n,
            weight,
            bias,
        }
    }

    /// A part of a row of x, and where it begins.
    #[inline(always)]
    fn x(&self, at: usize, part: usize) -> L {
        let first = at * self.p.stride as usize + part * self.p.width as usize + self.first;
        load(&self.b.x.read::<f32>(first + self.n)[first..])
    }

    /// What is convolved at a row.
    #[inline(always)]
    fn input(&self, at: usize) -> L {
        match self.p.form {
            GATED => self.x(at, 0).mul(self.x(at, 2)),
            _ => self.x(at, 0),
        }
    }

    /// The inputs that the result of a row depends on, which are all in x.
    #[inline(always)]
    fn before(&self, at: usize) -> [L; TAPS] {
        let mut window = [L::splat(0.0); TAPS];
        let taps = self.p.taps as usize;
        for (t, input) in window.iter_mut().enumerate().take(taps) {
            *input = self.input(at + 1 + t - taps);
        }
        window
    }

    /// Stores the result of a row.
    #[inline(always)]
    fn store(&self, at: usize, window: [L; TAPS]) {
        let mut sum = L::splat(0.0);
        for (weight, input) in self.weight.iter().zip(window).take(self.p.taps as usize) {
            sum = weight.fma(input, sum);
        }
        let sum = sum.add(self.bias);
        let result = match self.p.form {
            GATED => self.x(at, 1).mul(sum),
            PLAIN => sum,
            _ => silu(sum),
        };
        let place = at * self.p.width as usize + self.first;
        // SAFETY: `own`: these channels of a row are computed once.
        store(result, unsafe { self.b.to.write(place, self.n) });
    }

    /// The place of an input of a state.
    #[inline(always)]
    fn place(&self, block: usize, tap: usize) -> usize {
        let (width, taps) = (self.p.width as usize, self.p.taps as usize);
        (block * (taps - 1) + tap) * width + self.first
    }

    /// The rows of a sequence from its first one on that need a state, and the states that it leaves.
    #[inline(always)]
    fn lead(&self, walk: &Walk, kinds: &[u8], first: usize) {
        let taps = self.p.taps as usize;
        let mut window = [L::splat(0.0); TAPS];
        for (at, &kind) in kinds.iter().enumerate().skip(first) {
            let is = |flag| kind & flag != 0;
            if is(LEADS) && at != first {
                break;
            }
            if !is(ACTIVE) || is(INSIDE) && !is(STORES) {
                continue;
            }
            if is(INSIDE) {
                window = self.before(at);
            } else {
                match is(NEXT) {
                    true => window.copy_within(1..taps, 0),
                    false => window = self.state(walk.from(at)),
                }
                window[taps - 1] = self.input(at);
                self.store(at, window);
            }
            let Some(block) = walk.to(at).filter(|_| is(STORES)) else {
                continue;
            };
            for (tap, input) in window[1..taps].iter().enumerate() {
                // SAFETY: `own`: no other sequence has the block, and these channels of the sequence are led once.
                let state = unsafe { self.b.states.write(self.place(block, tap), self.n) };
                store(*input, state);
            }
        }
    }

    /// The inputs in a block.
    #[inline(always)]
    fn state(&self, block: Option<usize>) -> [L; TAPS] {
        let mut window = [L::splat(0.0); TAPS];
        let Some(block) = block else {
            return window;
        };
        let earlier = self.p.taps as usize - 1;
        for (tap, input) in window.iter_mut().enumerate().take(earlier) {
            // SAFETY: `own`: no other sequence writes the block.
            *input = load(unsafe { self.b.states.piece(self.place(block, tap), self.n) });
        }
        window
    }
}
