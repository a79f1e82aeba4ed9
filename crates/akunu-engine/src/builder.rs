//! Writes the plan of a model: which kernels run on which buffers, for one row or for many.
//!
//! A layer reads
//!
//! ```text
//! x = norm(h);  q, k, v = Wq x, Wk x, Wv x;  turn q and k, store k and v
//! h += [post-norm] Wo attention(q)
//! x = norm(h);  h += [post-norm] Wdown (act(Wgate x) * Wup x)
//! ```
//!
//! A product that ends in the residual stream is accumulated there (beta = 1). What differs between
//! models comes from fields of the config; nothing here asks for a name.

use std::mem::offset_of;

use akunu_arch::{Activation, ModelConfig, RopePairing};
use akunu_kernels::kernel::attention::selection::{self, AttentionShape};
use akunu_kernels::kernel::matmul::select::product_kernel;
use akunu_kernels::plan::Slice;
use akunu_kernels::{Buffer, Constant, Constants, Device, Dispatch, KernelId, Patch, PipelineKey};
use akunu_types::SharedStruct;
use akunu_types::params::{
    AttentionParams, ElementwiseParams, EmbeddingParams, GEMMParams, LogitSoftcapParams, MLXParams,
    MatrixParams, RMSNormParams, RoPEBatchKVWriteParams, RoPEQKVWriteParams,
    TemperatureScaleParams,
};

use crate::error::EngineError;
use crate::memory::Memory;
use crate::weights::{Matrix, Weights};

/// A plan being written.
pub(crate) struct Builder<'a> {
    pub device: &'a mut dyn Device,
    pub config: &'a ModelConfig,
    pub weights: &'a Weights,
    pub memory: &'a Memory,
    /// Positions that the cache holds.
    pub context: u32,
    /// Tokens that go through the layers at once.
    pub rows: u32,
    pub dispatches: Vec<Dispatch>,
}

/// What a product does with the output it finds.
#[derive(Clone, Copy)]
enum Output {
    Overwrite(Slice),
    AddTo(Slice),
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

    /// The logits of one row of the residual stream.
    pub fn logits(&mut self, row: u32) -> Result<(), EngineError> {
        let rows = std::mem::replace(&mut self.rows, 1);
        let h = at(self.memory.h, u64::from(row) * u64::from(self.config.dim));
        let x = Slice::from(self.memory.x);
        self.norm(h, "output_norm.weight", x)?;
        let name = if self.config.tied_embeddings {
            "token_embedding"
        } else {
            "output"
        };
        let matrix = self.weights.matrix(&format!("{name}.weight"));
        let logits = self.memory.logits.into();
        self.product(&matrix, x, Output::Overwrite(logits), "logits")?;
        if let Some(cap) = self.config.final_softcap {
            let count = self.config.vocab_size;
            let params = LogitSoftcapParams {
                cap,
                count,
                ..Default::default()
            };
            self.plain(KernelId::LogitSoftcap, &params, vec![logits], "logit cap")?;
        }
        self.rows = rows;
        Ok(())
    }

    fn embed(&mut self, tokens: Buffer) -> Result<(), EngineError> {
        let table = self.weights.matrix("token_embedding.weight");
        let bindings = vec![tokens.into(), table.place, self.memory.h.into()];
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
        let h = vec![self.memory.h.into()];
        self.plain(KernelId::TemperatureScale, &params, h, "embedding scale")
    }

    fn attention_block(&mut self, layer: usize) -> Result<(), EngineError> {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let x = Slice::from(self.memory.x);
        self.norm(self.memory.h.into(), &name("attention_norm.weight"), x)?;
        for (part, place) in ["q", "k", "v"].into_iter().zip(self.qkv()) {
            let matrix = self
                .weights
                .matrix(&name(&format!("attention.{part}.weight")));
            self.product(&matrix, x, Output::Overwrite(place), "q, k, v")?;
            if self.config.arch.has_qkv_bias {
                let bias = self
                    .weights
                    .vector(&name(&format!("attention.{part}.bias")));
                self.bias(place, bias, matrix.rows)?;
            }
        }
        self.rope(layer)?;
        self.attend(layer)?;
        let output = self.weights.matrix(&name("attention.output.weight"));
        let post = self.config.arch.has_post_attention_norm;
        let post = post.then(|| name("post_attention_norm.weight"));
        let attention = self.memory.attention.into();
        let into = self.residual(post.is_some());
        self.product(&output, attention, into, "attention output")?;
        self.add_normalised(post)
    }

    fn ffn_block(&mut self, layer: usize) -> Result<(), EngineError> {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let x = Slice::from(self.memory.x);
        self.norm(self.memory.h.into(), &name("ffn_norm.weight"), x)?;
        let (gate, up) = (Slice::from(self.memory.gate), Slice::from(self.memory.up));
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

    /// Where q, k and v of all rows lie.
    fn qkv(&self) -> [Slice; 3] {
        let rows = u64::from(self.rows);
        let (q, kv) = (
            u64::from(self.config.q_dim()),
            u64::from(self.config.kv_dim()),
        );
        [0, rows * q, rows * (q + kv)].map(|elements| at(self.memory.qkv, elements))
    }

    /// Where a block's product goes: into the residual stream, or aside when a norm comes between.
    fn residual(&self, has_post_norm: bool) -> Output {
        if has_post_norm {
            Output::Overwrite(self.memory.y.into())
        } else {
            Output::AddTo(self.memory.h.into())
        }
    }

    /// Adds the normalised output of a block to the residual stream, when the model has that norm.
    fn add_normalised(&mut self, weight: Option<String>) -> Result<(), EngineError> {
        let Some(weight) = weight else { return Ok(()) };
        let bindings = vec![
            self.memory.y.into(),
            self.weights.vector(&weight),
            self.memory.h.into(),
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

    /// `to = weight · x`, or `to += weight · x`, for every row.
    fn product(
        &mut self,
        weight: &Matrix,
        x: Slice,
        to: Output,
        label: &'static str,
    ) -> Result<(), EngineError> {
        let kernel = product_kernel(weight.dtype, self.rows, weight.rows);
        self.push_product(kernel, weight, vec![x, weight.place], to, label)
    }

    /// `to (+)= weight · (act(gate) * up)`: fused for one row, in two steps for many.
    fn gated_product(
        &mut self,
        weight: &Matrix,
        gate: Slice,
        up: Slice,
        to: Output,
    ) -> Result<(), EngineError> {
        let (fused, alone) = match self.config.arch.activation {
            Activation::SiluGate => (KernelId::GemvSilu(weight.dtype), KernelId::SiluGate),
            Activation::GeluGate | Activation::Gelu => {
                (KernelId::GemvGelu(weight.dtype), KernelId::GeluGate)
            }
        };
        if self.rows == 1 {
            return self.push_product(fused, weight, vec![gate, up, weight.place], to, "down");
        }
        let count = self.rows * self.config.ffn_dim;
        let params = ElementwiseParams {
            count,
            ..Default::default()
        };
        let activated = Slice::from(self.memory.activated);
        self.plain(alone, &params, vec![gate, up, activated], "activation")?;
        self.product(weight, activated, to, "down")
    }

    fn push_product(
        &mut self,
        kernel: KernelId,
        weight: &Matrix,
        mut bindings: Vec<Slice>,
        to: Output,
        label: &'static str,
    ) -> Result<(), EngineError> {
        let (place, beta) = match to {
            Output::Overwrite(place) => (place, 0.0),
            Output::AddTo(place) => (place, 1.0),
        };
        bindings.push(place);
        if weight.dtype.is_mlx() {
            let params = self.mlx_params(weight, beta);
            return self.push(kernel, group_size(weight), &params, bindings, label);
        }
        let params = GEMMParams {
            M: self.rows,
            N: weight.rows,
            K: weight.cols,
            lda: weight.cols,
            ldb: weight.cols,
            ldc: weight.rows,
            alpha: 1.0,
            beta,
        };
        self.plain(kernel, &params, bindings, label)
    }

    fn mlx_params(&self, weight: &Matrix, beta: f32) -> MLXParams {
        let packed = weight.dtype.bytes_of((weight.rows * weight.cols) as usize);
        MLXParams {
            M: self.rows,
            N: weight.rows,
            K: weight.cols,
            group_size: weight.group_size,
            bits: (8 * weight.dtype.block_bytes() / weight.dtype.block_len()) as u32,
            weight_bytes: packed.unwrap_or(0) as u32,
            lda: weight.cols,
            ldc: weight.rows,
            alpha: 1.0,
            beta,
            ..Default::default()
        }
    }

    fn bias(&mut self, to: Slice, bias: Slice, width: u32) -> Result<(), EngineError> {
        let params = MatrixParams {
            rows: self.rows,
            cols: width,
            ..Default::default()
        };
        self.plain(KernelId::BiasAdd, &params, vec![to, bias], "bias")
    }

    /// Turns q and k and stores k and v.
    fn rope(&mut self, layer: usize) -> Result<(), EngineError> {
        if self.rows == 1 {
            self.rope_one(layer)
        } else {
            self.rope_many(layer)
        }
    }

    fn rope_one(&mut self, layer: usize) -> Result<(), EngineError> {
        let (config, cache) = (self.config, self.memory.layers[layer]);
        let rope = config.layers[layer].rope;
        let params = RoPEQKVWriteParams {
            n_kv_heads: config.n_kv_heads,
            head_dim: config.head_dim,
            max_seq_len: cache.slots,
            theta: rope.theta,
            n_heads: config.n_heads,
            k_elem_offset: config.q_dim(),
            v_elem_offset: config.q_dim() + config.kv_dim(),
            freq_scale: rope.freq_scale,
            eps: config.norm_eps,
            ..Default::default()
        };
        let mut bindings = vec![self.memory.qkv.into(), cache.k.into(), cache.v.into()];
        let kernel = match (config.arch.has_qk_norm, config.arch.rope) {
            (true, _) => {
                bindings.extend(self.qk_norms(layer));
                KernelId::HeadNormRopeNeoxKvWrite
            }
            (false, Some(RopePairing::Interleaved)) => KernelId::RopeQkvWrite,
            (false, _) => KernelId::RopeNeoxQkvWrite,
        };
        bindings.push(self.memory.divisors[layer]);
        let patch = Patch::position(offset_of!(RoPEQKVWriteParams, pos));
        self.push_patched(kernel, freq_table(), &params, bindings, patch)
    }

    fn rope_many(&mut self, layer: usize) -> Result<(), EngineError> {
        let (config, cache) = (self.config, self.memory.layers[layer]);
        let rope = config.layers[layer].rope;
        let params = RoPEBatchKVWriteParams {
            seq_len: self.rows,
            n_heads: config.n_heads,
            n_kv_heads: config.n_kv_heads,
            head_dim: config.head_dim,
            max_seq_len: cache.slots,
            theta: rope.theta,
            freq_scale: rope.freq_scale,
            eps: config.norm_eps,
            ..Default::default()
        };
        let [q, k, v] = self.qkv();
        let mut bindings = vec![q, k, v, cache.k.into(), cache.v.into()];
        let kernel = match (config.arch.has_qk_norm, config.arch.rope) {
            (true, _) => {
                bindings.extend(self.qk_norms(layer));
                KernelId::HeadNormRopeNeoxBatchKvWrite
            }
            (false, Some(RopePairing::Interleaved)) => KernelId::RopeBatchKvWrite,
            (false, _) => KernelId::RopeNeoxBatchKvWrite,
        };
        bindings.push(self.memory.divisors[layer]);
        let patch = Patch::position(offset_of!(RoPEBatchKVWriteParams, pos));
        self.push_patched(kernel, freq_table(), &params, bindings, patch)
    }

    fn qk_norms(&self, layer: usize) -> [Slice; 2] {
        ["q", "k"].map(|part| {
            self.weights
                .vector(&format!("layers.{layer}.attention.{part}_norm.weight"))
        })
    }

    fn attend(&mut self, layer: usize) -> Result<(), EngineError> {
        let (config, cache) = (self.config, self.memory.layers[layer]);
        let params = AttentionParams {
            seq_len: self.rows,
            head_dim: config.head_dim,
            n_heads: config.n_heads,
            n_kv_heads: config.n_kv_heads,
            scale: config.attention_scale,
            kv_stride: cache.slots * config.head_dim,
            q_stride: config.q_dim(),
            ..Default::default()
        };
        let shape = AttentionShape {
            n_queries: self.rows,
            n_keys: self.context,
            head_dim: config.head_dim,
            is_causal: true,
            window: config.layers[layer].window,
            softcap: config.attention_softcap,
            has_tree: false,
        };
        let PipelineKey { kernel, constants } = selection::select(&shape, self.device.chip());
        let q = self.qkv()[0];
        let no_mask = Slice::from(self.memory.token);
        let bindings = vec![
            q,
            cache.k.into(),
            cache.v.into(),
            self.memory.attention.into(),
            no_mask,
        ];
        let patch = Patch::length(offset_of!(AttentionParams, kv_seq_len), self.rows);
        self.push_patched(kernel, constants, &params, bindings, patch)
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

    fn push<P: SharedStruct>(
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
fn at(buffer: Buffer, elements: u64) -> Slice {
    Slice {
        buffer,
        offset: 4 * elements as usize,
    }
}

fn freq_table() -> Constants {
    Constants::none().with_bool(Constant::FreqTable, true)
}

fn group_size(weight: &Matrix) -> Constants {
    Constants::none().with_u32(Constant::GroupSize, weight.group_size)
}
