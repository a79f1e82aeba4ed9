//! Some keys of a row, and a way to attend to them.

use std::ops::Range;

use super::scratch::Scratch;
use super::state::State;
use crate::kernel::attention::problem::Problem;
use crate::simd::Lanes;

/// Some keys of a row and of one KV head.
pub(crate) struct Keys {
    pub row: usize,
    pub kv_head: usize,
    pub keys: Range<usize>,
    /// Where the keys of the row end.
    pub end: usize,
    /// The row's first slot that is another branch's.
    pub first_hidden: usize,
}

/// How keys and values are multiplied.
pub(crate) trait Way {
    /// The lanes of the only vectors that it has a form for; `None` if that is any.
    const LANES: Option<usize> = None;
    /// What a thread keeps for it.
    type Kept: Default + Send + 'static;

    /// Makes of the queries of a row and a KV head what the products want. It stays in the scratch and in what is kept.
    fn prepare<L: Lanes>(
        keys: &Keys,
        problem: &Problem,
        scratch: &mut Scratch,
        kept: &mut Self::Kept,
    );

    /// Attends to all of some keys, whose queries are prepared.
    fn attend<L: Lanes>(
        keys: &Keys,
        problem: &Problem,
        state: &mut State,
        scratch: &mut Scratch,
        kept: &mut Self::Kept,
    );
}

impl Keys {
    /// Whether slots of other branches lie between the keys of a block.
    pub fn are_scattered(&self, block: &Range<usize>) -> bool {
        block.end > self.first_hidden
    }

    /// Puts the numbers of the keys of a block one after the other, and their scales: as many bytes of each for a key.
    pub fn gather(
        &self,
        problem: &Problem,
        pool: &[u8],
        block: &Range<usize>,
        [row, scales_row]: [usize; 2],
        [numbers, scales]: [&mut [u8]; 2],
    ) {
        let seen = problem.seen(self.row);
        let sequence = problem.rows[self.row].sequence;
        for (i, key) in block.clone().enumerate() {
            let at = problem.key_at(sequence, self.kv_head, seen.slot(key));
            numbers[i * row..][..row].copy_from_slice(&pool[at.numbers..][..row]);
            scales[i * scales_row..][..scales_row]
                .copy_from_slice(&pool[at.scales..][..scales_row]);
        }
    }

    /// The queries of the group, (group, head_dim), times the scale of scores.
    #[inline(always)]
    pub fn queries<L: Lanes>(&self, problem: &Problem, q: &mut [f32]) {
        let (group, head_dim) = (problem.group, problem.head_dim);
        for (g, q) in q.chunks_exact_mut(head_dim).take(group).enumerate() {
            let at = problem.query_at(self.row, self.kv_head * group + g);
            let from = problem.q[at..][..head_dim].chunks_exact(L::N);
            for (q, from) in q.chunks_exact_mut(L::N).zip(from) {
                // SAFETY: `reach`: there are `N` of both.
                unsafe {
                    let scaled = L::load(from.as_ptr()).mul(L::splat(problem.params.scale));
                    scaled.store(q.as_mut_ptr());
                }
            }
        }
    }
}
