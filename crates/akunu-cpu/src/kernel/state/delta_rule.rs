//! `d = β (v - e^g Sᵀ k);   to = e^g Sᵀ q + (k · q) d;   S = e^g S + k dᵀ`, with the state S before the row.
//!
//! A vector has columns of a head's state. Parts share blocks of columns of heads of sequences: the columns of a block go through
//! all rows of a sequence, in memory of the part's own between the first row and the last.

use akunu_kernels::kernel::activation::{sigmoid, softplus};
use akunu_kernels::kernel::state::delta_rule::{self, key_head};
use akunu_types::params::DeltaRuleParams;

use super::walk::{Held, Numbers, Walk};
use super::{load, store};
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::place::Place;
use crate::simd::Lanes;

/// The gated delta rule.
pub(crate) struct DeltaRule;

impl Body for DeltaRule {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: DeltaRuleParams = call.params();
        // Sums of four vectors of columns, each for two vectors, keep the units busy; heads have a multiple of 32 elements.
        match (p.head_dim as usize).is_multiple_of(4 * L::N) {
            true => blocks::<L, 4>(call, part, &p),
            false => blocks::<L, 2>(call, part, &p),
        }
    }
}

/// Shares blocks of `W` vectors of columns.
#[inline(always)]
fn blocks<L: Lanes, const W: usize>(call: &Call, part: &mut Part, p: &DeltaRuleParams) {
    let b: delta_rule::Buffers<Place> = call.buffers();
    let walk = Walk {
        rows: b.rows.read(p.n_rows as usize),
        n_blocks: p.n_blocks,
    };
    let leaders = walk.leaders();
    let dim = p.head_dim as usize;
    let of_head = dim / (W * L::N);
    // Sequences change fastest, so that a long run is shared among all parts.
    let items = part.range(p.value_heads as usize * of_head * leaders.len());
    let memory = part.scratch.take::<f32>(dim * (W * L::N + 2));
    let (own, memory) = memory.split_at_mut(dim * W * L::N);
    let (q, k) = memory.split_at_mut(dim);
    for item in items {
        let (block, first_row) = (item / leaders.len(), leaders[item % leaders.len()]);
        let columns = Columns::<L, W> {
            p,
            b: &b,
            head: block / of_head,
            first: block % of_head * W * L::N,
            lanes: std::marker::PhantomData,
        };
        columns.walk(&walk, first_row, own, [q, k]);
    }
}

/// A block of columns of a head.
struct Columns<'a, L, const W: usize> {
    p: &'a DeltaRuleParams,
    b: &'a delta_rule::Buffers<Place<'a>>,
    head: usize,
    first: usize,
    lanes: std::marker::PhantomData<L>,
}

/// What a row does to a state, but for its vectors.
struct RowGates {
    rate: f32,
    kept: f32,
    kq: f32,
}

impl<L: Lanes, const W: usize> Columns<'_, L, W> {
    /// Takes the columns through the rows of a sequence. `own` has room for them.
    #[inline(always)]
    fn walk(&self, walk: &Walk, first: usize, own: &mut [f32], [q, k]: [&mut [f32]; 2]) {
        let own = Numbers {
            first: own.as_mut_ptr(),
            stride: W * L::N,
        };
        for step in walk.steps(first) {
            let numbers = |held: Held| match held {
                Held::Own => own,
                Held::Block(block) => self.numbers(block),
            };
            let [from, one, two] =
                [step.from, step.to[0], step.to[1]].map(|held| held.map(numbers));
            let gates = self.gates(step.row, q, k);
            // SAFETY: `reach`: `own` and the blocks have the columns, and q and k a number for each of their rows; `own`: these
            // columns of a sequence belong to one part, and no other sequence writes its blocks.
            unsafe { self.step(step.row, from, [one, two], (&gates, q, k)) };
        }
    }

    /// The columns in a block.
    #[inline(always)]
    fn numbers(&self, block: usize) -> Numbers {
        let (dim, heads) = (self.p.head_dim as usize, self.p.value_heads as usize);
        let states = self
            .b
            .states
            .pointer::<f32>((block + 1) * heads * dim * dim);
        Numbers {
            first: states.wrapping_add((block * heads + self.head) * dim * dim + self.first),
            stride: dim,
        }
    }

    /// The gates of a row, and its normalised q and k.
    #[inline(always)]
    fn gates(&self, at: usize, q: &mut [f32], k: &mut [f32]) -> RowGates {
        let p = self.p;
        let (dim, keys, heads) = (q.len(), p.key_heads as usize, p.value_heads as usize);
        let row = at * (2 * keys + heads) * dim;
        let key = key_head(p, self.head);
        let of_row = at * heads + self.head;
        let number = |from: Place, at: usize| from.read::<f32>(at + 1)[at];
        unit::<L>(
            self.head_of(row + key * dim),
            q,
            p.eps,
            1.0 / (dim as f32).sqrt(),
        );
        unit::<L>(self.head_of(row + (keys + key) * dim), k, p.eps, 1.0);
        let g = number(self.b.alpha, of_row) + number(self.b.dt_bias, self.head);
        RowGates {
            rate: sigmoid(number(self.b.beta, of_row)),
            kept: (number(self.b.decay, self.head) * softplus(g)).exp(),
            kq: dot::<L>(q, k),
        }
    }

    /// A head of a row.
    #[inline(always)]
    fn head_of(&self, first: usize) -> &[f32] {
        &self.b.qkv.read::<f32>(first + self.p.head_dim as usize)[first..]
    }

    /// One row: from a state, or from zeros, to two others.
    ///
    /// # Safety
    /// `reach`: the numbers are there, a row of them for each element of k. `own`: nobody else touches them.
    #[inline(always)]
    unsafe fn step(
        &self,
        at: usize,
        from: Option<Numbers>,
        to: [Option<Numbers>; 2],
        (gates, q, k): (&RowGates, &[f32], &[f32]),
    ) {
        let (dim, keys, heads) = (
            q.len(),
            self.p.key_heads as usize,
            self.p.value_heads as usize,
        );
        let zero = L::splat(0.0);
        let (mut found, mut asked) = ([zero; W], [zero; W]);
        if let Some(from) = from {
            for (i, (&q, &k)) in q.iter().zip(k).enumerate() {
                let (q, k) = (L::splat(q), L::splat(k));
                for w in 0..W {
                    // SAFETY: passes on `reach`.
                    let s = unsafe { L::load(from.first.add(i * from.stride + w * L::N)) };
                    found[w] = s.fma(k, found[w]);
                    asked[w] = s.fma(q, asked[w]);
                }
            }
        }
        let v = self.head_of((at * (2 * keys + heads) + 2 * keys + self.head) * dim);
        let (rate, kept, kq) = (
            L::splat(gates.rate),
            L::splat(gates.kept),
            L::splat(gates.kq),
        );
        let mut missing = [zero; W];
        let place = (at * heads + self.head) * dim + self.first;
        // SAFETY: `own`: these columns of a row belong to one part.
        let results = unsafe { self.b.to.write::<f32>(place, W * L::N) };
        for w in 0..W {
            let v: L = load(&v[self.first + w * L::N..][..L::N]);
            missing[w] = v.sub(kept.mul(found[w])).mul(rate);
            let result = kq.fma(missing[w], kept.mul(asked[w]));
            store(result, &mut results[w * L::N..][..L::N]);
        }
        for (i, &k) in k
            .iter()
            .enumerate()
            .filter(|_| to.iter().any(Option::is_some))
        {
            let k = L::splat(k);
            for (w, missing) in missing.iter().enumerate() {
                let old = match from {
                    // SAFETY: passes on `reach`.
                    Some(from) => unsafe { L::load(from.first.add(i * from.stride + w * L::N)) },
                    None => zero,
                };
                let new = k.fma(*missing, kept.mul(old));
                for to in to.into_iter().flatten() {
                    // SAFETY: passes on `reach` and `own`.
                    unsafe { new.store(to.first.add(i * to.stride + w * L::N)) };
                }
            }
        }
    }
}

/// `y = x / sqrt(Σ x² + eps) * factor`. Lengths are multiples of `L::N`.
#[inline(always)]
fn unit<L: Lanes>(x: &[f32], y: &mut [f32], eps: f32, factor: f32) {
    let x = &x[..y.len()];
    let factor = L::splat(factor / (dot::<L>(x, x) + eps).sqrt());
    for (x, y) in x.chunks_exact(L::N).zip(y.chunks_exact_mut(L::N)) {
        store(load::<L>(x).mul(factor), y);
    }
}

/// `Σ x y`. Lengths are multiples of `L::N`.
#[inline(always)]
fn dot<L: Lanes>(x: &[f32], y: &[f32]) -> f32 {
    let mut sum = L::splat(0.0);
    for (x, y) in x.chunks_exact(L::N).zip(y.chunks_exact(L::N)) {
        sum = load::<L>(x).fma(load(y), sum);
    }
    sum.sum()
}
