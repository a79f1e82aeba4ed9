//! The attention block of a layer: q, k and v, rotary positions, the cache, and attention itself.

use std::mem::offset_of;

use akunu_arch::RopePairing;
use akunu_kernels::kernel::attention::selection::{self, AttentionShape};
use akunu_kernels::plan::Slice;
use akunu_kernels::{Constant, Constants, KernelId, Patch, PipelineKey};
use akunu_types::params::{AttentionParams, RoPEBatchKVWriteParams, RoPEQKVWriteParams};

use super::product::Output;
use super::{Builder, at};
use crate::error::EngineError;

impl Builder<'_> {
    pub(super) fn attention_block(&mut self, layer: usize) -> Result<(), EngineError> {
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

    /// Where q, k and v of all rows lie.
    pub(super) fn qkv(&self) -> [Slice; 3] {
        let rows = u64::from(self.rows);
        let (q, kv) = (
            u64::from(self.config.q_dim()),
            u64::from(self.config.kv_dim()),
        );
        [0, rows * q, rows * (q + kv)].map(|elements| at(self.memory.qkv, elements))
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
}

fn freq_table() -> Constants {
    Constants::none().with_bool(Constant::FreqTable, true)
}
