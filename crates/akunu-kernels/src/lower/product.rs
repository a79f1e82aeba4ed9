//! Products with a weight, in whichever format it is.

use std::mem::offset_of;

use akunu_types::params::{GEMMParams, HalfRowsParams, MLXParams, MatrixParams};

use super::Lowering;
use crate::kernel::matmul::select::{product_kernel, reads_halves, tensor_kernel};
use crate::kernel::nvidia::tensor_gemm;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField, Slice};
use crate::program::{GateFunction, Matrix, Op, Rows};
use crate::step::Count;
use crate::table::KernelId;

impl Lowering<'_> {
    /// `to = x · weightᵀ`, or `to += …`.
    pub(super) fn product(
        &mut self,
        rows: Rows,
        weight: &Matrix,
        x: Slice,
        (to, add): (Slice, bool),
        label: &'static str,
    ) {
        let n_rows = self.program.room.of(rows.count());
        if self.halved.is_some_and(|(halved, _)| halved == to) {
            self.halved = None;
        }
        if let Some(chip) = self.chip
            && let Some(kernel) = tensor_kernel(weight.dtype, (n_rows, weight.rows), chip)
            && let Some(halves) = self.halve((rows, x), weight.cols)
        {
            return self.push_tensor_product((kernel, rows), weight, halves, (to, add, label));
        }
        let kernel = match self.chip {
            None => KernelId::Gemv(weight.dtype),
            Some(chip) => product_kernel(weight.dtype, (n_rows, weight.rows), x.offset, chip),
        };
        let bindings = vec![x, weight.place, to];
        self.push_product(kernel, rows.count(), weight, bindings, (add, label));
    }

    /// Lowers products of one vector that follow each other, q, k and v for example: their biases come after the last of
    /// them, so that nothing stands between the products; how many operations.
    pub(super) fn biased_products(&mut self, ops: &[Op]) -> Option<usize> {
        let &Op::Product { rows, x, .. } = ops.first()? else {
            return None;
        };
        let is_like_the_first = |op: &&Op| match **op {
            Op::Product {
                rows: other_rows,
                x: other_x,
                ..
            } => (other_rows, other_x) == (rows, x),
            _ => false,
        };
        let n_ops = ops.iter().take_while(is_like_the_first).count();
        let mut biases = Vec::with_capacity(n_ops);
        for op in &ops[..n_ops] {
            if let Op::Product {
                weight,
                to,
                add,
                bias,
                label,
                ..
            } = op
            {
                self.product(rows, weight, x, (*to, *add), label);
                biases.extend(bias.map(|bias| (*to, bias, weight.rows)));
            }
        }
        for (to, bias, width) in biases {
            self.bias(rows, to, bias, width);
        }
        Some(n_ops)
    }

    /// The rows of x in halves and their factors, in scratch memory: made now, or by a product before this one.
    fn halve(&mut self, (rows, x): (Rows, Slice), cols: u32) -> Option<[Slice; 2]> {
        let (n_rows, stride) = (self.program.room.of(rows.count()), half_stride(cols));
        let halves = [2, n_rows as usize, stride as usize].iter().product();
        let places = self.scratch([4 * n_rows as usize, halves])?;
        let [factors, halves] = places;
        if self.halved.replace((x, rows)) != Some((x, rows)) {
            let params = HalfRowsParams {
                cols,
                stride,
                ..Default::default()
            };
            let field = RowField::new(offset_of!(HalfRowsParams, rows), rows.count());
            let key = PipelineKey::plain(KernelId::HalfRows);
            let bindings = vec![x, halves, factors];
            self.push(KernelCall::new(key, &params, bindings, "to halves").with_rows([field]));
        }
        Some(places)
    }

    fn push_tensor_product(
        &mut self,
        (kernel, rows): (KernelId, Rows),
        weight: &Matrix,
        [factors, halves]: [Slice; 2],
        (to, add, label): (Slice, bool, &'static str),
    ) {
        let bindings = vec![halves, weight.place, to, factors];
        self.push_product(kernel, rows.count(), weight, bindings, (add, label));
    }

    /// An activation and the product after it in one kernel, where a program has a single row and no other product reads
    /// the activation. Not on a GPU, where every threadgroup of the product would compute the activation again.
    pub(super) fn gated_product(&mut self, op: &Op, rest: &[Op]) -> bool {
        let &Op::Gate {
            activation,
            gate,
            up,
            to: activated,
            ..
        } = op
        else {
            return false;
        };
        let Some(&Op::Product {
            rows: Rows::All,
            ref weight,
            x,
            to,
            add,
            bias: None,
            label,
        }) = rest.first()
        else {
            return false;
        };
        let is_alone = !is_read(&rest[1..], activated);
        if x != activated || self.program.room.rows() != 1 || self.chip.is_some() || !is_alone {
            return false;
        }
        let kernel = match activation {
            GateFunction::Silu => KernelId::GemvSilu(weight.dtype),
            GateFunction::Gelu => KernelId::GemvGelu(weight.dtype),
        };
        let bindings = vec![gate, up, weight.place, to];
        self.push_product(kernel, Count::Rows, weight, bindings, (add, label));
        true
    }

    fn push_product(
        &mut self,
        kernel: KernelId,
        rows: Count,
        weight: &Matrix,
        bindings: Vec<Slice>,
        (add, label): (bool, &'static str),
    ) {
        let beta = if add { 1.0 } else { 0.0 };
        let lda = if reads_halves(kernel) {
            half_stride(weight.cols)
        } else {
            weight.cols
        };
        let call = if weight.dtype.is_mlx() {
            let key = PipelineKey {
                kernel,
                constants: weight.mlx.constants(),
            };
            let field = RowField::new(offset_of!(MLXParams, M), rows);
            let params = MLXParams {
                lda,
                ..mlx_params(weight, beta)
            };
            KernelCall::new(key, &params, bindings, label).with_rows([field])
        } else {
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
            KernelCall::new(PipelineKey::plain(kernel), &params, bindings, label).with_rows([field])
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
        self.push(KernelCall::new(key, &params, vec![to, bias], "bias").with_rows([field]));
    }
}

/// Whether a product reads this activation before the next activation takes its place.
fn is_read(ops: &[Op], activated: Slice) -> bool {
    let is_new = |op: &&Op| matches!(op, Op::Gate { to, .. } if *to == activated);
    let mut until = ops.iter().take_while(|op| !is_new(op));
    until.any(|op| matches!(op, Op::Product { x, .. } if *x == activated))
}

/// Halves from one row to the next, zeros included.
fn half_stride(cols: u32) -> u32 {
    cols.next_multiple_of(tensor_gemm::STEP)
}

pub(super) fn mlx_params(weight: &Matrix, beta: f32) -> MLXParams {
    let mlx = weight.mlx;
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
