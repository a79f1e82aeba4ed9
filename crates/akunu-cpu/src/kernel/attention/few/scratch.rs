//! The memory of a thread that attends to keys.

use crate::kernel::attention::blocks::BLOCK;
use crate::kernel::attention::problem::Problem;
use crate::kernel::stored;

/// What lies in the scratch, in this order.
pub(crate) struct Scratch<'a> {
    /// The queries of a group, (group, head_dim), times the scale of scores.
    pub q: &'a mut [f32],
    /// (group, [`BLOCK`]).
    pub scores: &'a mut [f32],
    /// The scales of a block as floats.
    pub scales: &'a mut [f32],
    /// By what the sums of each head shrink with a block, for those that are multiplied as bytes.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "only AVX-512 multiplies bytes")
    )]
    pub factors: &'a mut [f32],
    /// Room for the keys or values of a block as they are stored.
    pub copy: &'a mut [u8],
}

impl<'a> Scratch<'a> {
    /// Floats of each part. A scale is stored as a half.
    fn lens(problem: &Problem) -> [usize; 5] {
        let (group, head_dim) = (problem.group, problem.head_dim);
        let [numbers, scales] = stored::sizes(&problem.pages);
        let copy = (BLOCK * (numbers + scales)).div_ceil(size_of::<f32>());
        // What comes behind the factors begins at a line of the cache.
        let factors = group.next_multiple_of(16);
        [
            group * head_dim,
            group * BLOCK,
            BLOCK * scales / 2,
            factors,
            copy,
        ]
    }

    /// Floats of all of it.
    pub fn len(problem: &Problem) -> usize {
        Scratch::lens(problem).iter().sum()
    }

    /// The parts of as much memory.
    pub fn of(problem: &Problem, memory: &'a mut [f32]) -> Scratch<'a> {
        let [q, scores, scales, factors, _] = Scratch::lens(problem);
        let (q, rest) = memory.split_at_mut(q);
        let (scores, rest) = rest.split_at_mut(scores);
        let (scales, rest) = rest.split_at_mut(scales);
        let (factors, copy) = rest.split_at_mut(factors);
        Scratch {
            q,
            scores,
            scales,
            factors: &mut factors[..problem.group],
            copy: bytemuck::cast_slice_mut(copy),
        }
    }
}
