//! Qwen 3.5: a gated delta rule in three of four layers, attention with a gate in the fourth, and a block for multi-token prediction.

use akunu_gguf::GgufHeader;

use super::dims::{Arch, ModelDims};

pub const QWEN35_0_8B: ModelDims = ModelDims {
    name: "Qwen3.5-0.8B",
    arch: Arch::Qwen35,
    experts: None,
    dim: 1024,
    n_layers: 24,
    ffn: 3584,
    n_heads: 8,
    n_kv_heads: 2,
    head_dim: 256,
    n_vocab: 248_320,
    tied: true,
    context: 262_144,
    rope_base: 10_000_000.0,
};

/// Layers from one with attention to the next.
const INTERVAL: u64 = 4;
/// Heads of keys, and of values, in the layers without.
const HEADS: u64 = 16;
/// Elements of such a head.
const HEAD_DIM: u64 = 128;
/// Tokens that a convolution reads.
const TAPS: u64 = 4;
/// Elements of a head that turn.
const TURNED: u32 = 64;

impl ModelDims {
    /// Whether a layer, or the block behind the last one, has attention.
    pub fn has_attention(&self, layer: u64) -> bool {
        self.arch != Arch::Qwen35 || layer == self.n_layers || (layer + 1).is_multiple_of(INTERVAL)
    }

    /// The tensors of a delta rule.
    pub fn delta_rule(&self) -> Vec<(&'static str, Vec<u64>)> {
        let (dim, values) = (self.dim, HEADS * HEAD_DIM);
        vec![
            ("attn_norm.weight", vec![dim]),
            ("attn_qkv.weight", vec![dim, 3 * values]),
            ("attn_gate.weight", vec![dim, values]),
            ("ssm_conv1d.weight", vec![TAPS, 3 * values]),
            ("ssm_beta.weight", vec![dim, HEADS]),
            ("ssm_alpha.weight", vec![dim, HEADS]),
            ("ssm_a", vec![HEADS]),
            ("ssm_dt.bias", vec![HEADS]),
            ("ssm_norm.weight", vec![HEAD_DIM]),
            ("ssm_out.weight", vec![values, dim]),
        ]
    }

    /// The layers of the block for multi-token prediction.
    pub fn n_mtp(&self) -> u64 {
        u64::from(self.arch == Arch::Qwen35)
    }

    /// The tensors of the block besides those of its layer.
    pub fn mtp(&self) -> Vec<(&'static str, Vec<u64>)> {
        vec![
            ("nextn.eh_proj.weight", vec![2 * self.dim, self.dim]),
            ("nextn.enorm.weight", vec![self.dim]),
            ("nextn.hnorm.weight", vec![self.dim]),
            ("nextn.shared_head_norm.weight", vec![self.dim]),
        ]
    }

    /// Writes the numbers that only such a model has.
    pub fn describe_states(&self, header: &mut GgufHeader) {
        if self.arch != Arch::Qwen35 {
            return;
        }
        let arch = self.arch.name();
        for (key, count) in [
            ("ssm.conv_kernel", TAPS),
            ("ssm.state_size", HEAD_DIM),
            ("ssm.group_count", HEADS),
            ("ssm.time_step_rank", HEADS),
            ("ssm.inner_size", HEADS * HEAD_DIM),
            ("full_attention_interval", INTERVAL),
            ("nextn_predict_layers", self.n_mtp()),
        ] {
            header.set(&format!("{arch}.{key}"), &(count as u32));
        }
        header.set(&format!("{arch}.rope.dimension_count"), &TURNED);
    }
}
