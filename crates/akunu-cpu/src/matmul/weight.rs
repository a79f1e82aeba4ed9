//! The weight of a product.

use akunu_kernels::kernel::matmul::product::Product;

use super::float_gemv::Rows;
use crate::call::Call;
use crate::panels::format::Quant;
use crate::panels::matrix::PackedMatrix;

/// A weight as a product reads it.
#[derive(Clone, Copy)]
pub(crate) enum Weight<'a> {
    /// Quantised, laid out when the plan was prepared.
    Panels(&'a PackedMatrix),
    /// Floating-point numbers, as the file has them.
    Rows(Rows<'a>),
}

impl<'a> Weight<'a> {
    /// The weight of binding `at`; `None` if it cannot be read in either way.
    pub fn of(call: &Call<'a>, at: usize, product: &Product) -> Option<Weight<'a>> {
        if let Some(matrix) = call.panels.find(call.slices[at]) {
            let shape = (product.n as usize, product.k as usize);
            return ((matrix.shape.rows, matrix.shape.cols) == shape)
                .then_some(Weight::Panels(matrix));
        }
        let bytes = call.places[at].read(product.weight.bytes());
        Rows::of(&product.weight, bytes).map(Weight::Rows)
    }

    /// How its numbers are stored, where they are quantised.
    pub fn quant(&self) -> Option<Quant> {
        match self {
            Weight::Panels(matrix) => Some(matrix.shape.quant),
            Weight::Rows(_) => None,
        }
    }

    /// How many groups of [`ROWS`] rows it has.
    pub fn groups(&self) -> usize {
        match self {
            Weight::Panels(matrix) => matrix.shape.count(),
            Weight::Rows(rows) => rows.groups(),
        }
    }
}
