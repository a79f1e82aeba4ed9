//! Products with a weight, in whichever format it is.

use crate::kernel::common::bias_add;
use crate::kernel::matmul;
use std::mem::offset_of;

use akunu_program::{Matrix, MlxLayout, Op, Rows, Slice, Storage, op};
use akunu_types::params::{GEMMParams, MLXParams, MatrixParams};

use super::lowering::{Lowering, ProductShape};
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::{BufferSet, KernelId};
use crate::weight::constants_of;

pub(super) fn as_product(op: &Op) -> Option<&op::Product> {
    match op {
        Op::Product(product) => Some(product),
        _ => None,
    }
}

impl Lowering<'_> {
    /// The product alone, without its bias.
    fn product(&mut self, product: &op::Product) {
        let &op::Product {
            ref weight, x, to, ..
        } = product;
        if self.halved.is_some_and(|halved| halved.x == to) {
            self.halved = None;
        }
        let kernel = self.rules.product_kernel(&ProductShape {
            dtype: weight.dtype,
            rows: self.program.room.of(product.rows.count()),
            outputs: weight.rows,
            x_offset: x.offset,
        });
        let buffers = matmul::product::Buffers {
            x,
            weight: weight.place,
            y: to,
        };
        self.push_product((kernel, weight.cols), product, buffers);
    }

    /// Lowers products of one vector that follow each other, q, k and v for example: their biases come after the last of
    /// them, so that nothing stands between the products; how many operations.
    pub(super) fn products_of_one_vector(&mut self, ops: &[Op]) -> Option<usize> {
        let first = as_product(ops.first()?)?;
        let is_like_the_first =
            |other: &&op::Product| (other.rows, other.x) == (first.rows, first.x);
        let products: Vec<&op::Product> = ops
            .iter()
            .map_while(as_product)
            .take_while(is_like_the_first)
            .collect();
        let mut rest = &products[..];
        while let Some((product, after)) = rest.split_first() {
            rest = match self.rules.products(self, rest) {
                Some(n_together) => &rest[n_together..],
                None => {
                    self.product(product);
                    after
                }
            };
        }
        for product in &products {
            if let Some(bias) = product.bias {
                self.bias(product.rows, product.to, bias, product.weight.rows);
            }
        }
        Some(products.len())
    }

    /// One kernel of the product; `lda` is from one row of its x to the next.
    pub(super) fn push_product(
        &mut self,
        (kernel, lda): (KernelId, u32),
        product: &op::Product,
        buffers: impl BufferSet<Item = Slice>,
    ) {
        let &op::Product {
            ref weight,
            add,
            label,
            ..
        } = product;
        let rows = product.rows.count();
        let beta = if add { 1.0 } else { 0.0 };
        let key = PipelineKey {
            kernel,
            constants: constants_of(weight.storage),
        };
        let call = match weight.storage {
            Storage::Mlx(mlx) => {
                let field = RowField::new(offset_of!(MLXParams, M), rows);
                let params = MLXParams {
                    lda,
                    ..mlx_params(weight, mlx, beta)
                };
                KernelCall::new(key, &params, buffers, label).with_rows([field])
            }
            Storage::Rows => {
                let params = GEMMParams {
                    N: weight.rows,
                    K: weight.cols,
                    lda,
                    ldb: weight.cols,
                    ldc: weight.rows,
                    alpha: 1.0,
                    beta,
                    ..Default::default()
                };
                let field = RowField::new(offset_of!(GEMMParams, M), rows);
                KernelCall::new(key, &params, buffers, label).with_rows([field])
            }
        };
        self.push(call);
    }

    pub(super) fn bias(&mut self, rows: Rows, to: Slice, bias: Slice, width: u32) {
        let params = MatrixParams {
            cols: width,
            ..Default::default()
        };
        let field = RowField::new(offset_of!(MatrixParams, rows), rows.count());
        let key = PipelineKey::plain(KernelId::BiasAdd);
        self.push(
            KernelCall::new(key, &params, bias_add::Buffers { x: to, bias }, "bias")
                .with_rows([field]),
        );
    }
}

pub(super) fn mlx_params(weight: &Matrix, mlx: MlxLayout, beta: f32) -> MLXParams {
    MLXParams {
        N: weight.rows,
        K: weight.cols,
        group_size: mlx.group_size,
        packed_at: mlx.packed_at,
        scales_at: mlx.scales_at,
        biases_at: mlx.biases_at,
        scale_type: mlx.scale_type.code(),
        lda: weight.cols,
        ldc: weight.rows,
        alpha: 1.0,
        beta,
        ..Default::default()
    }
}
