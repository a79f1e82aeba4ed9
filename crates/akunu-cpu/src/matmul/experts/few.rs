//! Experts with a few results: each group of sixteen outputs is multiplied with up to [`BATCH`] vectors at a time.

use super::job::{Job, Outputs, Piece};
use crate::matmul::activation::Activations;
use crate::matmul::batch::{BATCH, Dots};
use crate::matmul::gemv::Gemv;
use crate::matmul::vectors::Vectors;
use crate::matmul::weight::Weight;
use crate::panels::format::{Quant, ROWS};

/// Vectors that a thread has quantised.
#[derive(Default)]
pub struct Few {
    activations: Vec<Activations>,
    /// The row that each was made of.
    rows: Vec<usize>,
}

impl Few {
    /// Forgets all vectors: what they were made of may have changed.
    pub fn forget(&mut self) {
        self.rows.clear();
    }

    /// Quantises vectors, but for those that are still there: experts of the same row have the same.
    fn quantise(&mut self, gemv: Gemv, x: &Vectors, quant: Quant) {
        if self.activations.len() < x.count() {
            (self.activations).resize_with(x.count(), Default::default);
        }
        for at in 0..x.count() {
            let row = x.row(at);
            if self.rows.get(at) == Some(&row) {
                continue;
            }
            gemv.quantise(&mut self.activations[at], x.get(at), quant);
            self.rows.truncate(at);
            self.rows.push(row);
        }
    }
}

impl<const N: usize> Job<'_, '_, N> {
    /// Multiplies a group of outputs of an expert with the vectors of its results.
    pub(super) fn few(
        &self,
        piece: &Piece<N>,
        few: &mut Few,
        store: &mut impl FnMut(Outputs, [&mut [f32]; N]),
    ) {
        let Piece {
            weights, results, ..
        } = *piece;
        let (first, group) = (piece.outputs.start, piece.outputs.start / ROWS);
        let x = self.vectors(results);
        // All matrices have the same format.
        if let Some(quant) = weights.first().and_then(Weight::quant) {
            few.quantise(self.gemv, &x, quant);
        }
        let count = ROWS.min(self.experts.params.N as usize - first);
        for (batch, results) in results.chunks(BATCH).enumerate() {
            let at = batch * BATCH..batch * BATCH + results.len();
            let quantised = few.activations.get(at.clone()).unwrap_or_default();
            let mut dots = weights.each_ref().map(|weight| match weight {
                Weight::Panels(matrix) => {
                    let (quant, cells) = (matrix.shape.quant, matrix.shape.cells);
                    self.gemv
                        .panel(quant, matrix.panel(group), cells, quantised)
                }
                Weight::Rows(rows) => {
                    let mut batch = [&[][..]; BATCH];
                    for (vector, at) in batch.iter_mut().zip(at.clone()) {
                        *vector = x.get(at);
                    }
                    self.gemv
                        .rows(rows, (group, 0..ROWS), &batch[..results.len()])
                }
            });
            store_dots(
                &mut dots,
                count,
                (piece.expert as usize, first, results),
                store,
            );
        }
    }
}

/// Gives the products of a group to `store`, result by result.
fn store_dots<const N: usize>(
    dots: &mut [Dots; N],
    count: usize,
    (expert, first, results): (usize, usize, &[usize]),
    store: &mut impl FnMut(Outputs, [&mut [f32]; N]),
) {
    for (at, &result) in results.iter().enumerate() {
        let outputs = Outputs {
            expert,
            result,
            first,
        };
        store(outputs, dots.each_mut().map(|dots| &mut dots[at][..count]));
    }
}
