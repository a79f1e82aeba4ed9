//! Layers with a state: a kernel for each operation.

use std::mem::offset_of;

use akunu_program::{ConvForm, Count, op};
use akunu_types::params::ShortConvParams;

use super::lowering::Lowering;
use crate::kernel::state::short_conv;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;

impl Lowering<'_> {
    pub(super) fn short_conv(&mut self, conv: &op::ShortConv) {
        let params = ShortConvParams {
            stride: conv.stride,
            width: conv.width,
            taps: conv.taps,
            n_blocks: conv.state.n_blocks,
            gated: match conv.form {
                ConvForm::Silu => 0,
                ConvForm::Gated => 1,
            },
            has_bias: u32::from(conv.bias.is_some()),
            ..Default::default()
        };
        let field = RowField::new(offset_of!(ShortConvParams, n_rows), Count::Rows);
        let buffers = short_conv::Buffers {
            x: conv.x,
            weight: conv.weight,
            // A bias that is not there is not touched.
            bias: conv.bias.unwrap_or(conv.weight),
            rows: self.step().rows.into(),
            states: conv.state.blocks.into(),
            to: conv.to,
        };
        let key = PipelineKey::plain(KernelId::ShortConv);
        self.push(KernelCall::new(key, &params, buffers, "convolution").with_rows([field]));
    }
}
