//! Writes the plan of a model: which kernels run on which buffers, for one row or for many, of one
//! sequence or of several.
//!
//! A layer reads
//!
//! ```text
//! x = norm(h);  q, k, v = Wq x, Wk x, Wv x;  turn q and k, store k and v
//! h += [post-norm] Wo attention(q)
//! x = norm(h);  h += [post-norm] Wdown (act(Wgate x) * Wup x)
//! ```
//!
//! A product that ends in the residual stream is accumulated there (beta = 1). Products and norms take
//! all rows at once; turning, storing and attention are written for each [`Lane`], because only they
//! ask which sequence a row belongs to and where it stands there. What differs between models comes
//! from fields of the config; nothing here asks for a name.

mod attention;
mod lane;
mod product;

use std::ops::Range;

use akunu_arch::ModelConfig;
use akunu_kernels::plan::Slice;
use akunu_kernels::{Buffer, Constants, Device, Dispatch, KernelId, Patch, PipelineKey};
use akunu_types::SharedStruct;
use akunu_types::params::{
    EmbeddingParams, LogitSoftcapParams, RMSNormParams, TemperatureScaleParams,
};

pub(crate) use self::lane::{Choice, Lane};
use self::product::{Output, group_size};
use crate::error::EngineError;
use crate::memory::Activations;
use crate::weights::Weights;

/// A plan being written.
pub(crate) struct Builder<'a> {
    pub device: &'a mut dyn Device,
    pub config: &'a ModelConfig,
    pub weights: &'a Weights,
    pub activations: &'a Activations,
    /// The sequences that the rows belong to.
    pub lanes: Vec<Lane<'a>>,
    /// Tokens that go through the layers at once, those of all lanes.
    pub rows: u32,
    pub dispatches: Vec<Dispatch>,
}

impl Builder<'_> {
    /// Looks up the tokens and runs every layer; the result is in the residual stream.
    pub fn layers(&mut self, tokens: Buffer) -> Result<(), EngineError> {
        self.embed(tokens)?;
        for layer in 0..self.config.layers.len() {
            self.attention_block(layer)?;
            self.ffn_block(layer)?;
        }
        Ok(())
    }

    /// The logits of some rows of the residual stream, (rows, vocab).
    pub fn logits(&mut self, rows: Range<u32>, to: Slice) -> Result<(), EngineError> {
        let h = at(
            self.activations.h,
            u64::from(rows.start) * u64::from(self.config.dim),
        );
        let all_rows = std::mem::replace(&mut self.rows, rows.end - rows.start);
        let x = Slice::from(self.activations.x);
        self.norm(h, "output_norm.weight", x)?;
        let name = if self.config.tied_embeddings {
            "token_embedding"
        } else {
            "output"
        };
        let matrix = self.weights.matrix(&format!("{name}.weight"));
        self.product(&matrix, x, Output::Overwrite(to), "logits")?;
        if let Some(cap) = self.config.final_softcap {
            let params = LogitSoftcapParams {
                cap,
                count: self.rows * self.config.vocab_size,
                ..Default::default()
            };
            self.plain(KernelId::LogitSoftcap, &params, vec![to], "logit cap")?;
        }
        self.rows = all_rows;
        Ok(())
    }

    fn embed(&mut self, tokens: Buffer) -> Result<(), EngineError> {
        let table = self.weights.matrix("token_embedding.weight");
        let bindings = vec![tokens.into(), table.place, self.activations.h.into()];
        let kernel = KernelId::EmbeddingLookup(table.dtype);
        if table.dtype.is_mlx() {
            let params = self.mlx_params(&table, 0.0);
            self.push(kernel, group_size(&table), &params, bindings, "embedding")?;
        } else {
            let params = EmbeddingParams {
                num_tokens: self.rows,
                dim: self.config.dim,
                vocab_size: table.rows,
                ..Default::default()
            };
            self.plain(kernel, &params, bindings, "embedding")?;
        }
        let Some(scale) = self.config.embedding_scale else {
            return Ok(());
        };
        let count = self.rows * self.config.dim;
        let params = TemperatureScaleParams {
            inv_temperature: scale,
            count,
            ..Default::default()
        };
        let h = vec![self.activations.h.into()];
        self.plain(KernelId::TemperatureScale, &params, h, "embedding scale")
    }

    fn ffn_block(&mut self, layer: usize) -> Result<(), EngineError> {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let x = Slice::from(self.activations.x);
        self.norm(self.activations.h.into(), &name("ffn_norm.weight"), x)?;
        let (gate, up) = (
            Slice::from(self.activations.gate),
            Slice::from(self.activations.up),
        );
        for (part, place) in [("gate", gate), ("up", up)] {
            let matrix = self.weights.matrix(&name(&format!("ffn.{part}.weight")));
            self.product(&matrix, x, Output::Overwrite(place), "gate and up")?;
        }
        let down = self.weights.matrix(&name("ffn.down.weight"));
        let post = self
            .config
            .arch
            .has_post_ffn_norm
            .then(|| name("post_ffn_norm.weight"));
        let into = self.residual(post.is_some());
        self.gated_product(&down, gate, up, into)?;
        self.add_normalised(post)
    }

    /// Where a block's product goes: into the residual stream, or aside when a norm comes between.
    fn residual(&self, has_post_norm: bool) -> Output {
        if has_post_norm {
            Output::Overwrite(self.activations.y.into())
        } else {
            Output::AddTo(self.activations.h.into())
        }
    }

    /// Adds the normalised output of a block to the residual stream, when the model has that norm.
    fn add_normalised(&mut self, weight: Option<String>) -> Result<(), EngineError> {
        let Some(weight) = weight else { return Ok(()) };
        let bindings = vec![
            self.activations.y.into(),
            self.weights.vector(&weight),
            self.activations.h.into(),
        ];
        let params = self.norm_params();
        self.plain(KernelId::RmsNormResidual, &params, bindings, "post norm")
    }

    fn norm(&mut self, from: Slice, weight: &str, to: Slice) -> Result<(), EngineError> {
        let bindings = vec![from, self.weights.vector(weight), to];
        let params = self.norm_params();
        self.plain(KernelId::RmsNorm, &params, bindings, "norm")
    }

    fn norm_params(&self) -> RMSNormParams {
        let (dim, eps) = (self.config.dim, self.config.norm_eps);
        RMSNormParams {
            dim,
            eps,
            n_rows: self.rows,
            ..Default::default()
        }
    }

    /// A dispatch without constants and patch.
    pub fn plain<P: SharedStruct>(
        &mut self,
        kernel: KernelId,
        params: &P,
        bindings: Vec<Slice>,
        label: &'static str,
    ) -> Result<(), EngineError> {
        self.push(kernel, Constants::none(), params, bindings, label)
    }

    /// A dispatch without patch.
    pub fn push<P: SharedStruct>(
        &mut self,
        kernel: KernelId,
        constants: Constants,
        params: &P,
        bindings: Vec<Slice>,
        label: &'static str,
    ) -> Result<(), EngineError> {
        let key = PipelineKey { kernel, constants };
        let dispatch = Dispatch::new(self.device, key, params, bindings, label)?;
        self.dispatches.push(dispatch);
        Ok(())
    }

    /// A dispatch whose params change with the position.
    pub fn push_patched<P: SharedStruct>(
        &mut self,
        kernel: KernelId,
        constants: Constants,
        params: &P,
        bindings: Vec<Slice>,
        patch: Patch,
    ) -> Result<(), EngineError> {
        self.push(kernel, constants, params, bindings, "position")?;
        if let Some(last) = self.dispatches.last_mut() {
            last.patch = patch;
        }
        Ok(())
    }
}

/// Element `elements` of a buffer of floats.
pub(crate) fn at(buffer: Buffer, elements: u64) -> Slice {
    Slice {
        buffer,
        offset: 4 * elements as usize,
    }
}
