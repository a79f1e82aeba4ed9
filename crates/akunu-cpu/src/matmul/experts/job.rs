//! A product of experts on its way.

use akunu_kernels::kernel::experts::Experts;
use akunu_kernels::weight::WeightLayout;
use akunu_program::Slice;

use crate::call::Call;
use crate::matmul::expert_stack::of_expert;
use crate::matmul::float_gemv::Rows;
use crate::matmul::gemv::Gemv;
use crate::matmul::vectors::Vectors;
use crate::matmul::weight::Weight;

/// A product with `N` matrices of each expert.
pub struct Job<'a, 'c, const N: usize> {
    /// The call.
    pub call: &'a Call<'c>,
    /// The params.
    pub experts: Experts,
    /// Multiplies a few vectors.
    pub gemv: Gemv,
    /// The expert of each result.
    pub ids: &'a [u32],
    /// A vector for each `share` results.
    pub x: &'a [f32],
    /// See `x`.
    pub share: usize,
    /// The bindings of the matrices.
    pub stacks: [(usize, WeightLayout); N],
}

/// Some neighbouring outputs of a result.
pub struct Outputs {
    /// Whose matrices they were multiplied with.
    pub expert: usize,
    /// Which result.
    pub result: usize,
    /// The first of them.
    pub first: usize,
}

impl<'a, 'c, const N: usize> Job<'a, 'c, N> {
    /// The matrices of an expert; `None` if they cannot be read here.
    pub fn weights(&self, expert: u32) -> Option<[Weight<'c>; N]> {
        let weights = self
            .stacks
            .map(|(at, stack)| self.weight(at, stack, expert));
        let is_read = weights.iter().all(Option::is_some);
        is_read.then(|| weights.map(|weight| weight.unwrap_or_else(|| unreachable!())))
    }

    fn weight(&self, at: usize, stack: WeightLayout, expert: u32) -> Option<Weight<'c>> {
        let slice: Slice = self.call.slices[at];
        if let Some(matrix) = self.call.panels.find_expert(slice, expert) {
            return Some(Weight::Panels(matrix));
        }
        let (first, layout) = of_expert(&self.experts, stack, expert);
        let bytes = self.call.places[at].read::<u8>(first + layout.bytes());
        Rows::of(&layout, &bytes[first..]).map(Weight::Rows)
    }

    /// The vectors of some results.
    pub fn vectors<'r>(&self, results: &'r [usize]) -> Vectors<'r>
    where
        'a: 'r,
    {
        Vectors::of_results(self.x, self.experts.params.K as usize, results, self.share)
    }
}
