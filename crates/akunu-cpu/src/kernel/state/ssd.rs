//! `Δ = softplus(dt + dt_bias);   S = e^(Δ a) S + Δ x Bᵀ;   to = S C + d x`.
//!
//! A vector has numbers of a row of a head's state. Parts share blocks of rows of heads of sequences.

use akunu_kernels::kernel::activation::softplus;
use akunu_kernels::kernel::state::ssd;
use akunu_types::params::SsdParams;

use super::walk::{Held, Numbers, Walk};
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::place::Place;
use crate::simd::Lanes;

/// Rows of a state that are computed at once: so many sums keep the units busy.
const ROWS: usize = 4;

/// Mamba-2.
pub(crate) struct Ssd;

impl Body for Ssd {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: SsdParams = call.params();
        let b: ssd::Buffers<Place> = call.buffers();
        let walk = Walk {
            rows: b.rows.read(p.n_rows as usize),
            n_blocks: p.n_blocks,
        };
        let leaders = walk.leaders();
        let of_head = (p.head_dim as usize).div_ceil(ROWS);
        // Sequences change fastest, so that a long run is shared among all parts.
        let items = part.range(p.heads as usize * of_head * leaders.len());
        let own = part.scratch.take::<f32>(ROWS * p.state_size as usize);
        for item in items {
            let (block, first_row) = (item / leaders.len(), leaders[item % leaders.len()]);
            let first = block % of_head * ROWS;
            let rows = StateRows {
                p: &p,
                b: &b,
                head: block / of_head,
                first,
                n: ROWS.min(p.head_dim as usize - first),
            };
            rows.walk::<L>(&walk, first_row, own);
        }
    }
}

/// Some rows of the state of a head.
struct StateRows<'a> {
    p: &'a SsdParams,
    b: &'a ssd::Buffers<Place<'a>>,
    head: usize,
    first: usize,
    n: usize,
}

impl StateRows<'_> {
    /// Takes the rows of a state through those of a sequence. `own` has room for them.
    #[inline(always)]
    fn walk<L: Lanes>(&self, walk: &Walk, first: usize, own: &mut [f32]) {
        let own = Numbers {
            first: own.as_mut_ptr(),
            stride: self.p.state_size as usize,
        };
        for step in walk.steps(first) {
            let numbers = |held: Held| match held {
                Held::Own => own,
                Held::Block(block) => self.numbers(block),
            };
            let [from, one, two] =
                [step.from, step.to[0], step.to[1]].map(|held| held.map(numbers));
            // SAFETY: `reach`: `own` and the blocks have the rows; `own`: these rows of the states of a sequence belong to one
            // part, and no other sequence writes its blocks.
            unsafe { self.step::<L>(step.row, from, [one, two]) };
        }
    }

    /// The rows in a block.
    #[inline(always)]
    fn numbers(&self, block: usize) -> Numbers {
        let p = self.p;
        let (dim, heads, size) = (p.head_dim as usize, p.heads as usize, p.state_size as usize);
        let states = self
            .b
            .states
            .pointer::<f32>((block + 1) * heads * dim * size);
        Numbers {
            first: states.wrapping_add(((block * heads + self.head) * dim + self.first) * size),
            stride: size,
        }
    }

    /// One row of the step: from a state, or from zeros, to two others.
    ///
    /// # Safety
    /// `reach`: the numbers are there, `n` rows of them. `own`: nobody else touches them.
    #[inline(always)]
    unsafe fn step<L: Lanes>(&self, at: usize, from: Option<Numbers>, to: [Option<Numbers>; 2]) {
        let p = self.p;
        let (dim, heads, size) = (p.head_dim as usize, p.heads as usize, p.state_size as usize);
        let groups = p.groups as usize;
        let width = heads * dim + 2 * groups * size;
        let row = &self.b.xbc.read::<f32>((at + 1) * width)[at * width..];
        let group = heads * dim + self.head / (heads / groups) * size;
        let (keys, queries) = (&row[group..][..size], &row[group + groups * size..][..size]);
        let number = |from: Place, at: usize| from.read::<f32>(at + 1)[at];
        let dt = number(self.b.dt, at * p.dt_stride as usize + self.head);
        let delta = softplus(dt + number(self.b.dt_bias, self.head));
        let kept = L::splat((delta * number(self.b.a, self.head)).exp());
        let mut x = [0.0; ROWS];
        x[..self.n].copy_from_slice(&row[self.head * dim + self.first..][..self.n]);

        let zero = L::splat(0.0);
        let added = x.map(|x| L::splat(delta * x));
        let mut sums = [zero; ROWS];
        for first in (0..size).step_by(L::N) {
            // SAFETY: `reach`: the size of a state is a multiple of that of a vector; passes on `reach` and `own`.
            unsafe {
                let key = L::load(keys.as_ptr().add(first));
                let query = L::load(queries.as_ptr().add(first));
                for i in 0..self.n {
                    let old = match from {
                        Some(from) => L::load(from.first.add(i * from.stride + first)),
                        None => zero,
                    };
                    let new = key.fma(added[i], kept.mul(old));
                    sums[i] = new.fma(query, sums[i]);
                    for to in to.into_iter().flatten() {
                        new.store(to.first.add(i * to.stride + first));
                    }
                }
            }
        }
        let skipped = number(self.b.d, self.head);
        let place = (at * heads + self.head) * dim + self.first;
        // SAFETY: `own`: these elements of a row belong to one part.
        let results = unsafe { self.b.to.write::<f32>(place, self.n) };
        for ((result, sum), x) in results.iter_mut().zip(L::sums(sums)).zip(x) {
            *result = sum + skipped * x;
        }
    }
}
