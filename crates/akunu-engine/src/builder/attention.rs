//! The attention block of a layer: q, k and v, rotary positions, the cache, and attention itself.

use std::mem::offset_of;

use akunu_arch::RopePairing;
use akunu_kernels::kernel::attention::selection::{self, AttentionShape};
use akunu_kernels::plan::Slice;
use akunu_kernels::{Constant, Constants, KernelId, Patch, PipelineKey};
use akunu_types::params::{AttentionParams, RoPEBatchKVWriteParams, RoPEQKVWriteParams};

use super::product::Output;
use super::{Builder, Lane, at};
use crate::error::EngineError;

impl Builder<'_> {
    pub(super) fn attention_block(&mut self, layer: usize) -> Result<(), EngineError> {
        let name = |part: &str| format!("layers.{layer}.{part}");
        let x = Slice::from(self.activations.x);
        self.norm(self.activations.h.into(), &name("attention_norm.weight"), x)?;
        for (part, place) in ["q", "k", "v"].into_iter().zip(self.qkv(0)) {
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
        // All lanes are turned before any attends: so one barrier is enough.
        for lane in self.lanes.clone() {
            self.rope(layer, lane)?;
        }
        for lane in self.lanes.clone() {
            self.attend(layer, lane)?;
        }
        let output = self.weights.matrix(&name("attention.output.weight"));
        let post = self.config.arch.has_post_attention_norm;
        let post = post.then(|| name("post_attention_norm.weight"));
        let attention = self.activations.attention.into();
        let into = self.residual(post.is_some());
        self.product(&output, attention, into, "attention output")?;
        self.add_normalised(post)
    }

    /// Where q, k and v of a row and those after it lie.
    fn qkv(&self, row: u32) -> [Slice; 3] {
        let (row, rows) = (u64::from(row), u64::from(self.rows));
        let (q, kv) = (
            u64::from(self.config.q_dim()),
            u64::from(self.config.kv_dim()),
        );
        let elements = [row * q, rows * q + row * kv, rows * (q + kv) + row * kv];
        elements.map(|elements| at(self.activations.qkv, elements))
    }

    /// Turns q and k of a lane and stores its k and v.
    fn rope(&mut self, layer: usize, lane: Lane) -> Result<(), EngineError> {
        if self.rows == 1 {
            self.rope_one(layer, lane)
        } else {
            self.rope_many(layer, lane)
        }
    }

    fn rope_one(&mut self, layer: usize, lane: Lane) -> Result<(), EngineError> {
        let (config, cache) = (self.config, lane.memory.layers[layer]);
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
        let mut bindings = vec![self.activations.qkv.into(), cache.k.into(), cache.v.into()];
        let kernel = match (config.arch.has_qk_norm, config.arch.rope) {
            (true, _) => {
                bindings.extend(self.qk_norms(layer));
                KernelId::HeadNormRopeNeoxKvWrite
            }
            (false, Some(RopePairing::Interleaved)) => KernelId::RopeQkvWrite,
            (false, _) => KernelId::RopeNeoxQkvWrite,
        };
        bindings.push(lane.memory.divisors[layer]);
        let patch = Patch::position(offset_of!(RoPEQKVWriteParams, pos)).ahead(lane.ahead);
        self.push_patched(kernel, freq_table(), &params, bindings, patch)
    }

    fn rope_many(&mut self, layer: usize, lane: Lane) -> Result<(), EngineError> {
        let (config, cache) = (self.config, lane.memory.layers[layer]);
        let rope = config.layers[layer].rope;
        let params = RoPEBatchKVWriteParams {
            seq_len: lane.n_rows,
            n_heads: config.n_heads,
            n_kv_heads: config.n_kv_heads,
            head_dim: config.head_dim,
            max_seq_len: cache.slots,
            theta: rope.theta,
            freq_scale: rope.freq_scale,
            eps: config.norm_eps,
            ..Default::default()
        };
        let [q, k, v] = self.qkv(lane.first_row);
        let mut bindings = vec![q, k, v, cache.k.into(), cache.v.into()];
        let kernel = match (config.arch.has_qk_norm, config.arch.rope) {
            (true, _) => {
                bindings.extend(self.qk_norms(layer));
                KernelId::HeadNormRopeNeoxBatchKvWrite
            }
            (false, Some(RopePairing::Interleaved)) => KernelId::RopeBatchKvWrite,
            (false, _) => KernelId::RopeNeoxBatchKvWrite,
        };
        bindings.push(lane.memory.divisors[layer]);
        let patch = Patch::position(offset_of!(RoPEBatchKVWriteParams, pos)).ahead(lane.ahead);
        self.push_patched(kernel, freq_table(), &params, bindings, patch)
    }

    fn qk_norms(&self, layer: usize) -> [Slice; 2] {
        ["q", "k"].map(|part| {
            self.weights
                .vector(&format!("layers.{layer}.attention.{part}_norm.weight"))
        })
    }

    fn attend(&mut self, layer: usize, lane: Lane) -> Result<(), EngineError> {
        let (config, cache) = (self.config, lane.memory.layers[layer]);
        let params = AttentionParams {
            seq_len: lane.n_rows,
            head_dim: config.head_dim,
            n_heads: config.n_heads,
            n_kv_heads: config.n_kv_heads,
            scale: config.attention_scale,
            kv_stride: cache.slots * config.head_dim,
            q_stride: config.q_dim(),
            ..Default::default()
        };
        let shape = AttentionShape {
            n_queries: lane.n_rows,
            n_keys: lane.context,
            head_dim: config.head_dim,
            is_causal: true,
            window: config.layers[layer].window,
            softcap: config.attention_softcap,
            has_tree: false,
        };
        let PipelineKey { kernel, constants } = selection::select(&shape, self.device.chip());
        let [q, ..] = self.qkv(lane.first_row);
        let row = u64::from(lane.first_row) * u64::from(config.q_dim());
        let no_mask = Slice::from(lane.memory.token);
        let bindings = vec![
            q,
            cache.k.into(),
            cache.v.into(),
            at(self.activations.attention, row),
            no_mask,
        ];
        let length = offset_of!(AttentionParams, kv_seq_len);
        let patch = Patch::length(length, lane.n_rows).ahead(lane.ahead);
        self.push_patched(kernel, constants, &params, bindings, patch)
    }
}

fn freq_table() -> Constants {
    Constants::none().with_bool(Constant::FreqTable, true)
}
