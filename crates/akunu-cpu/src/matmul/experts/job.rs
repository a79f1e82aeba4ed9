//! A product of experts on its way.

use std::ops::Range;
use std::sync::Arc;

use akunu_kernels::kernel::experts::Experts;
use akunu_kernels::weight::WeightLayout;
use akunu_program::Slice;

use crate::call::Call;
use crate::matmul::expert_stack::of_expert;
use crate::matmul::float_gemv::Rows;
use crate::matmul::gemv::Gemv;
use crate::matmul::vectors::Vectors;
use crate::matmul::weight::Weight;
use crate::memory::Pages;
use crate::panels::matrix::{PackedMatrix, PackedShape};
use crate::panels::pack::Source;

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

/// A matrix of an expert.
#[derive(Clone, Copy)]
pub enum Matrix<'a> {
    /// It can be multiplied as it is.
    Ready(Weight<'a>),
    /// Quantised, as the file has it: panels are laid out when they are used.
    InFile(Source<'a>, PackedShape),
}

/// Panels that a thread has laid out, of each matrix of an expert.
#[derive(Default)]
pub struct Unpacked(Vec<Arc<Pages>>);

impl Unpacked {
    /// Panels `range` of matrices; `None` of those that are ready.
    pub fn lay_out<const N: usize>(
        &mut self,
        matrices: &[Matrix; N],
        range: Range<usize>,
    ) -> [Option<PackedMatrix>; N] {
        let mut at = 0;
        matrices.each_ref().map(|matrix| match matrix {
            Matrix::Ready(_) => None,
            Matrix::InFile(source, shape) => {
                let bytes = shape.bytes_of(range.len());
                let pages = self.pages(at, bytes);
                at += 1;
                PackedMatrix::some((source, *shape), range.clone(), pages)
            }
        })
    }

    /// Pages with room for so many bytes.
    fn pages(&mut self, at: usize, bytes: usize) -> &mut Arc<Pages> {
        let new = || match Pages::zeroed(bytes) {
            Some(pages) => Arc::new(pages),
            None => panic!("no memory for {bytes} bytes of panels"),
        };
        if self.0.len() == at {
            self.0.push(new());
        }
        if self.0[at].bytes().len() < bytes {
            self.0[at] = new();
        }
        &mut self.0[at]
    }
}

/// A piece of the outputs of an expert.
pub struct Piece<'a, const N: usize> {
    /// Whose outputs they are.
    pub expert: u32,
    /// The outputs: whole groups, of which the last may have fewer than others.
    pub outputs: Range<usize>,
    /// The matrices, at least as far as these outputs go.
    pub weights: &'a [Weight<'a>; N],
    /// The results of the expert.
    pub results: &'a [usize],
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
    pub fn matrices(&self, expert: u32) -> Option<[Matrix<'c>; N]> {
        let found = self
            .stacks
            .map(|(at, stack)| self.matrix(at, stack, expert));
        let is_whole = found.iter().all(Option::is_some);
        is_whole.then(|| found.map(|matrix| matrix.unwrap_or_else(|| unreachable!())))
    }

    fn matrix(&self, at: usize, stack: WeightLayout, expert: u32) -> Option<Matrix<'c>> {
        let slice: Slice = self.call.slices[at];
        if let Some(matrix) = self.call.panels.find_expert(slice, expert) {
            return Some(Matrix::Ready(Weight::Panels(matrix)));
        }
        let (first, layout) = of_expert(&self.experts, stack, expert);
        let bytes = &self.call.places[at].read::<u8>(first + layout.bytes())[first..];
        if let Some(rows) = Rows::of(&layout, bytes) {
            return Some(Matrix::Ready(Weight::Rows(rows)));
        }
        let source = Source::of(layout, bytes)?;
        let shape = PackedShape::of(&source)?;
        Some(Matrix::InFile(source, shape))
    }

    /// The vectors of some results.
    pub fn vectors<'r>(&self, results: &'r [usize]) -> Vectors<'r>
    where
        'a: 'r,
    {
        Vectors::of_results(self.x, self.experts.params.K as usize, results, self.share)
    }
}
