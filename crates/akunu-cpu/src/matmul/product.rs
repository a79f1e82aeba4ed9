//! The products of the kernel table.

use akunu_kernels::kernel::matmul::{self, gemv_gated};
use std::marker::PhantomData;
use std::ops::Range;

use akunu_kernels::kernel::matmul::product::Product;

use super::activation::Activations;
use super::batch::BATCH;
use super::float_gemv::Rows;
use super::gemv::Gemv;
use super::vectors::{Origin, Vectors};
use super::weight::Weight;
use crate::body::Body;
use crate::call::Call;
use crate::kept::UntilBarrier;
use crate::kernel::elementwise::{Activation, gated};
use crate::kernel::norm::PrivateVector;
use crate::panels::format::{Quant, ROWS};
use crate::panels::matrix::PackedMatrix;
use crate::part::Part;
use crate::place::Place;
use crate::simd::Lanes;
use crate::twin;

/// What a thread's quantised activations were made of: q, k and v, or gate and up, have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quantised {
    x: Origin,
    quant: Option<Quant>,
}

/// What the products of a thread keep.
#[derive(Default)]
struct Inputs {
    /// Vectors that a product has computed before it multiplies them.
    gated: Vec<f32>,
    /// Vectors as 8-bit numbers.
    activations: Vec<Activations>,
    /// What those were made of.
    made_of: UntilBarrier<Quantised>,
}

/// `y = alpha x wᵀ + beta y`.
pub(crate) fn product(call: &Call, part: &mut Part) {
    const PLACES: matmul::product::Buffers<usize> = matmul::product::Buffers::PLACES;
    let matmul::product::Buffers { x, y, .. } = call.buffers();
    let product = Product::of(&call.args);
    let (Some(weight), Some(gemv)) = (
        Weight::of(call, PLACES.weight, &product),
        Gemv::of(call.level),
    ) else {
        return twin::run(call, part);
    };
    let section = part.section();
    let private = part.kept.get::<PrivateVector>();
    let private = private.take(call.slices[PLACES.x], section);
    let x: &[f32] = match &private {
        Some(numbers) => numbers,
        None => x.read(product.x_len()),
    };
    let vectors = vectors(x, &product, product.lda as usize);
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if super::gemm::run(call, part, (&weight, &product), &vectors, y) {
        return;
    }
    let job = Job {
        gemv,
        weight,
        product,
        y,
    };
    let x_is = Quantised {
        x: vectors.origin(),
        quant: job.weight.quant(),
    };
    job.multiply(vectors, Some(x_is), part);
    if let Some(numbers) = private {
        part.kept.get::<PrivateVector>().give_back(numbers);
    }
}

/// `y = alpha (act(gate) * up) wᵀ + beta y`.
pub(crate) struct Gated<A>(PhantomData<A>);

impl<A: Activation> Body for Gated<A> {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let gemv_gated::Buffers { gate, up, y, .. } = call.buffers();
        let product = Product::of(&call.args);
        let (Some(weight), Some(gemv)) = (
            Weight::of(call, gemv_gated::Buffers::PLACES.weight, &product),
            Gemv::of(call.level),
        ) else {
            return twin::run(call, part);
        };
        let [gate, up] = [gate, up].map(|place| place.read::<f32>(product.x_len()));
        let (m, k, stride) = (product.m as usize, product.k as usize, product.lda as usize);
        let mut numbers = std::mem::take(&mut part.kept.get::<Inputs>().gated);
        numbers.resize(m * k, 0.0);
        for (m, into) in numbers.chunks_exact_mut(k.max(1)).enumerate() {
            let row = m * stride..m * stride + k;
            gated::<L, A>(&gate[row.clone()], &up[row], into);
        }
        let job = Job {
            gemv,
            weight,
            product,
            y,
        };
        job.multiply(vectors(&numbers, &product, k), None, part);
        part.kept.get::<Inputs>().gated = numbers;
    }
}

/// The vectors of a product, `stride` floats apart.
fn vectors<'a>(numbers: &'a [f32], product: &Product, stride: usize) -> Vectors<'a> {
    Vectors::rows(numbers, product.m as usize, product.k as usize, stride)
}

/// A product of a few vectors.
struct Job<'a> {
    gemv: Gemv,
    weight: Weight<'a>,
    product: Product,
    y: Place<'a>,
}

impl Job<'_> {
    /// Multiplies the vectors with the weight's rows, a piece of them at a time; `x_is` names vectors that other
    /// products may have too.
    fn multiply(&self, x: Vectors, x_is: Option<Quantised>, part: &mut Part) {
        let in_group = self.pieces_of_group(part.count);
        let mut pieces = part.divide(self.weight.groups() * in_group);
        match self.weight {
            Weight::Rows(rows) => {
                while let Some(range) = part.take(&mut pieces) {
                    self.multiply_rows(&rows, x, range, in_group);
                }
            }
            Weight::Panels(matrix) => {
                let section = part.section();
                let mut inputs = std::mem::take(part.kept.get::<Inputs>());
                if x_is.is_none() || inputs.made_of.get(section) != x_is.as_ref() {
                    self.quantise(matrix, x, &mut inputs.activations);
                    inputs.made_of.set(x_is, section);
                }
                while let Some(range) = part.take(&mut pieces) {
                    self.multiply_panels(matrix, &inputs.activations[..x.count()], range);
                }
                *part.kept.get() = inputs;
            }
        }
    }

    /// The pieces that a group of rows is taken in: quarters, if there are too few groups for all parts, as in a router.
    fn pieces_of_group(&self, n_parts: usize) -> usize {
        match self.weight {
            Weight::Rows(rows) if rows.groups() < 4 * n_parts => 4,
            _ => 1,
        }
    }

    fn quantise(&self, matrix: &PackedMatrix, x: Vectors, activations: &mut Vec<Activations>) {
        if activations.len() < x.count() {
            activations.resize_with(x.count(), Default::default);
        }
        for (m, into) in activations[..x.count()].iter_mut().enumerate() {
            self.gemv.quantise(into, x.get(m), matrix.shape.quant);
        }
    }

    fn multiply_panels(&self, matrix: &PackedMatrix, x: &[Activations], range: Range<usize>) {
        let (quant, cells) = (matrix.shape.quant, matrix.shape.cells);
        for at in range {
            for (batch, x) in x.chunks(BATCH).enumerate() {
                let dots = self.gemv.panel(quant, matrix.panel(at), cells, x);
                self.store(&dots[..x.len()], batch * BATCH, (at, 0..ROWS));
            }
        }
    }

    fn multiply_rows(&self, rows: &Rows, x: Vectors, range: Range<usize>, in_group: usize) {
        for piece in range {
            let (at, quarter) = (piece / in_group, piece % in_group);
            let len = ROWS / in_group;
            let within = quarter * len..(quarter + 1) * len;
            if ROWS * at + within.start >= self.product.n as usize {
                // The last group has fewer rows.
                continue;
            }
            for first in (0..x.count()).step_by(BATCH) {
                let n = BATCH.min(x.count() - first);
                let mut batch = [&[][..]; BATCH];
                for (m, vector) in batch[..n].iter_mut().enumerate() {
                    *vector = x.get(first + m);
                }
                let at = (at, within.clone());
                let dots = self.gemv.rows(rows, at.clone(), &batch[..n]);
                self.store(&dots[..n], first, at);
            }
        }
    }

    /// `y = alpha dots + beta y` for the vectors from `first` on and outputs `within` of group `at`.
    fn store(&self, dots: &[[f32; ROWS]], first: usize, (at, within): (usize, Range<usize>)) {
        let Product {
            n,
            ldc,
            alpha,
            beta,
            ..
        } = self.product;
        let from = ROWS * at + within.start;
        let n = within.len().min(n as usize - from);
        for (m, dots) in dots.iter().enumerate() {
            let start = (first + m) * ldc as usize + from;
            // SAFETY: `own`: the outputs of a piece belong to the part that multiplies it.
            let y = unsafe { self.y.write::<f32>(start, n) };
            for (y, dot) in y.iter_mut().zip(&dots[within.clone()]) {
                *y = match beta {
                    0.0 => alpha * dot,
                    beta => alpha * dot + beta * *y,
                };
            }
        }
    }
}
