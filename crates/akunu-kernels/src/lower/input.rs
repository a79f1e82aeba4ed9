//! The embeddings of tokens, and the features of images.

use crate::kernel::embedding::{embedding_lookup, embedding_scale, place_rows};
use std::mem::offset_of;

use akunu_program::{Count, Storage, op};
use akunu_types::params::{EmbeddingParams, EmbeddingScaleParams, MLXParams, PlaceRowsParams};

use super::lowering::Lowering;
use super::product::mlx_params;
use crate::pipeline::PipelineKey;
use crate::plan::{KernelCall, RowField};
use crate::table::KernelId;
use crate::weight::constants_of;

impl Lowering<'_> {
    pub(super) fn embed(
        &mut self,
        &op::Embed {
            ref table,
            scale,
            to,
        }: &op::Embed,
    ) {
        let buffers = embedding_lookup::Buffers {
            token: self.step().tokens.into(),
            table: table.place,
            y: to,
        };
        let kernel = KernelId::EmbeddingLookup(table.dtype);
        let key = PipelineKey {
            kernel,
            constants: constants_of(table.storage),
        };
        let call = match table.storage {
            Storage::Mlx(mlx) => {
                let params = mlx_params(table, mlx, 0.0);
                let field = RowField::new(offset_of!(MLXParams, M), Count::Rows);
                KernelCall::new(key, &params, buffers, "embedding").with_rows([field])
            }
            Storage::Rows => {
                let params = EmbeddingParams {
                    dim: table.cols,
                    vocab_size: table.rows,
                    ..Default::default()
                };
                let field = RowField::new(offset_of!(EmbeddingParams, num_tokens), Count::Rows);
                KernelCall::new(key, &params, buffers, "embedding").with_rows([field])
            }
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
            KernelCall::new(
                key,
                &params,
                embedding_scale::Buffers { x: to },
                "embedding scale",
            )
            .with_rows([RowField::times(count, Count::Rows, table.cols)]),
        );
    }

    pub(super) fn place(&mut self, place: &op::Place) {
        let params = PlaceRowsParams {
            dim: place.dim,
            add: u32::from(place.add),
            ..Default::default()
        };
        let buffers = place_rows::Buffers {
            x: place.x,
            features: place.features,
            rows: self.step().rows.into(),
        };
        let field = RowField::new(offset_of!(PlaceRowsParams, n_rows), Count::Rows);
        let key = PipelineKey::plain(KernelId::PlaceRows);
        self.push(KernelCall::new(key, &params, buffers, "image rows").with_rows([field]));
    }
}
