//! The embeddings of tokens.

use std::mem::offset_of;

use akunu_program::{Count, op};
use akunu_types::params::{EmbeddingParams, EmbeddingScaleParams, MLXParams};

use super::lowering::Lowering;
use super::product::mlx_params;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;
use crate::weight::mlx_constants;

impl Lowering<'_> {
    pub(super) fn embed(
        &mut self,
        &op::Embed {
            ref table,
            scale,
            to,
        }: &op::Embed,
    ) {
        let bindings = vec![self.step().tokens.into(), table.place, to];
        let kernel = KernelId::EmbeddingLookup(table.dtype);
        let call = if table.dtype.is_mlx() {
            let params = mlx_params(table, 0.0);
            let field = RowField::new(offset_of!(MLXParams, M), Count::Rows);
            let key = PipelineKey {
                kernel,
                constants: mlx_constants(&table.mlx),
            };
            KernelCall::new(key, &params, bindings, "embedding").with_rows([field])
        } else {
            let params = EmbeddingParams {
                dim: table.cols,
                vocab_size: table.rows,
                ..Default::default()
            };
            let field = RowField::new(offset_of!(EmbeddingParams, num_tokens), Count::Rows);
            KernelCall::new(PipelineKey::plain(kernel), &params, bindings, "embedding")
                .with_rows([field])
        };
        self.push(call);
        let Some(factor) = scale else { return };
        let params = EmbeddingScaleParams {
            factor,
            ..Default::default()
        };
        let count = offset_of!(EmbeddingScaleParams, count);
        let key = PipelineKey::plain(KernelId::EmbeddingScale);
        self.push(
            KernelCall::new(key, &params, vec![to], "embedding scale")
                .with_rows([RowField::times(count, Count::Rows, table.cols)]),
        );
    }
}
