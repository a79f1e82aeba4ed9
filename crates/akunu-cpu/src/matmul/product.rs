//! The products of the kernel table on panels.

use std::ops::Range;

use akunu_kernels::kernel::matmul::product::Product;

use super::dots::{BATCH, Dots, Functions};
use super::format::{CELL, Format, ROWS};
use super::matrix::Matrix;
use crate::call::{Call, Place};
use crate::kernel::elementwise::gated;
use crate::part::{Part, Scratch};
use crate::simd::{Body, Lanes};
use crate::twin;

/// `y = alpha x wᵀ + beta y`.
pub(crate) fn product(call: &Call, part: &mut Part) {
    let [x, _, y] = call.bindings();
    let product = Product::of(&call.args);
    let Some((matrix, functions)) = prepared(call, 1, &product) else {
        return twin::run(call, part);
    };
    let [x_bytes, ..] = product.bytes();
    let x: &[f32] = x.read(x_bytes / size_of::<f32>());
    #[cfg(target_arch = "x86_64")]
    if super::tiled::run(call, part, (matrix, &product), x, y) {
        return;
    }
    let range = part.range(matrix.plan.count());
    stage(part.scratch, matrix, &product, |m, into| {
        into.copy_from_slice(&x[m * product.lda as usize..][..into.len()]);
    });
    multiply(&functions, part.scratch, (matrix, &product), range, y);
}

/// `y = alpha (act(gate) * up) wᵀ + beta y`; the activation is SiLU or, with `GELU`, the tanh form of GELU.
pub(crate) struct Gated<const GELU: bool>;

impl<const GELU: bool> Body for Gated<GELU> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let [gate, up, _, y] = call.bindings();
        let product = Product::of(&call.args);
        let Some((matrix, functions)) = prepared(call, 2, &product) else {
            return twin::run(call, part);
        };
        let [x_bytes, ..] = product.bytes();
        let [gate, up] = [gate, up].map(|place| place.read::<f32>(x_bytes / size_of::<f32>()));
        let range = part.range(matrix.plan.count());
        stage(part.scratch, matrix, &product, |m, into| {
            let row = m * product.lda as usize..m * product.lda as usize + into.len();
            // SAFETY: the CPU has the instructions.
            unsafe { gated::<L, GELU>(&gate[row.clone()], &up[row], into) };
        });
        multiply(&functions, part.scratch, (matrix, &product), range, y);
    }
}

/// The panels of binding `weight`, and the functions that read them.
fn prepared<'a>(
    call: &Call<'a>,
    weight: usize,
    product: &Product,
) -> Option<(&'a Matrix, Functions)> {
    let matrix = call.panels.find(call.slices[weight])?;
    let same = matrix.plan.rows == product.n as usize && matrix.plan.cols == product.k as usize;
    Functions::of(call.isa)
        .filter(|_| same)
        .map(|functions| (matrix, functions))
}

/// Writes the vectors of a product to the scratch memory one after the other, each filled up with zeros to
/// whole cells.
fn stage(
    scratch: &mut Scratch,
    matrix: &Matrix,
    product: &Product,
    fill: impl Fn(usize, &mut [f32]),
) {
    let (k, width) = (matrix.plan.cols, matrix.plan.cells * CELL);
    scratch.vectors.resize(product.m as usize * width, 0.0);
    for (m, vector) in scratch.vectors.chunks_exact_mut(width).enumerate() {
        let (numbers, rest) = vector.split_at_mut(k);
        fill(m, numbers);
        rest.fill(0.0);
    }
}

/// Multiplies the staged vectors with panels `range`.
fn multiply(
    functions: &Functions,
    scratch: &mut Scratch,
    (matrix, product): (&Matrix, &Product),
    range: Range<usize>,
    y: Place,
) {
    let (m, cells) = (product.m as usize, matrix.plan.cells);
    let width = cells * CELL;
    let Scratch {
        vectors,
        activations,
        ..
    } = scratch;
    match matrix.plan.format {
        Format::Quant(quant) => {
            if activations.len() < m {
                activations.resize_with(m, Default::default);
            }
            for (into, x) in activations.iter_mut().zip(vectors.chunks_exact(width)) {
                functions.quantise(into, x, quant.offset);
            }
            for at in range {
                for (batch, x) in activations[..m].chunks(BATCH).enumerate() {
                    let dots = functions.quant(quant, matrix.panel(at), cells, x);
                    store(product, &dots, (batch * BATCH, x.len()), at, y);
                }
            }
        }
        Format::Float(float) => {
            for at in range {
                for (batch, x) in vectors.chunks(BATCH * width).enumerate() {
                    let mut rows = [&[][..]; BATCH];
                    let n = x.len() / width;
                    for (row, x) in rows.iter_mut().zip(x.chunks_exact(width)) {
                        *row = x;
                    }
                    let dots = functions.float(float, matrix.panel(at), cells, &rows[..n]);
                    store(product, &dots, (batch * BATCH, n), at, y);
                }
            }
        }
    }
}

/// `y = alpha dots + beta y` for `count` vectors from `first` on and the outputs of panel `at`.
fn store(product: &Product, dots: &Dots, (first, count): (usize, usize), at: usize, y: Place) {
    let (alpha, beta) = (product.alpha, product.beta);
    let n = ROWS.min(product.n as usize - ROWS * at);
    for (m, dots) in dots[..count].iter().enumerate() {
        let start = (first + m) * product.ldc as usize + ROWS * at;
        // SAFETY: the outputs of a panel belong to the part that multiplies it.
        let y = unsafe { y.write::<f32>(start, n) };
        for (y, dot) in y.iter_mut().zip(dots) {
            *y = match beta {
                0.0 => alpha * dot,
                beta => alpha * dot + beta * *y,
            };
        }
    }
}
