//! What an adapter adds to a product, between its two matrices.

use crate::kernel::common::scale_rows;
use std::mem::offset_of;

use akunu_program::{Rows, op};
use akunu_types::params::ScaleRowsParams;

use super::lowering::Lowering;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

impl Lowering<'_> {
    /// Multiplies each row by the factor of its sequence.
    pub(super) fn scale_rows(&mut self, scale: &op::ScaleRows) {
        let step = self.step();
        let params = ScaleRowsParams {
            cols: scale.width,
            row_capacity: self.program.room.rows(),
            n_sequences: step.n_sequences,
            by_output: u32::from(scale.rows == Rows::Outputs),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(ScaleRowsParams, n_rows), scale.rows.count());
        let buffers = scale_rows::Buffers {
            x: scale.x,
            rows: step.rows.into(),
            outputs: step.outputs.into(),
            factors: scale.factors,
        };
        let key = PipelineKey::plain(KernelId::ScaleRows);
        self.push(KernelCall::new(key, &params, buffers, "adapter scale").with_rows([field]));
    }
}
