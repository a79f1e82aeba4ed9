//! The shapes of mixtures of experts.

use akunu_gguf::GgufHeader;

use super::dims::{Arch, ExpertDims, ModelDims};

pub const MIXTURE: ModelDims = ModelDims {
    name: "A small mixture",
    arch: Arch::Qwen3Moe,
    experts: Some(ExpertDims {
        count: 64,
        used: 8,
        ffn: 512,
    }),
    dim: 1024,
    n_layers: 16,
    ffn: 512,
    n_heads: 16,
    n_kv_heads: 4,
    head_dim: 64,
    n_vocab: 49_152,
    tied: true,
    context: 32_768,
    rope_base: 1_000_000.0,
};

pub const OLMOE_7B: ModelDims = ModelDims {
    name: "OLMoE-1B-7B",
    arch: Arch::Olmoe,
    experts: Some(ExpertDims {
        count: 64,
        used: 8,
        ffn: 1024,
    }),
    dim: 2048,
    n_layers: 16,
    ffn: 1024,
    n_heads: 16,
    n_kv_heads: 16,
    head_dim: 128,
    n_vocab: 50_304,
    tied: false,
    context: 4096,
    rope_base: 10_000.0,
};

pub const GPT_OSS_20B: ModelDims = ModelDims {
    name: "gpt-oss-20b",
    arch: Arch::GptOss,
    experts: Some(ExpertDims {
        count: 32,
        used: 4,
        ffn: 2880,
    }),
    dim: 2880,
    n_layers: 24,
    ffn: 2880,
    n_heads: 64,
    n_kv_heads: 8,
    head_dim: 64,
    n_vocab: 201_088,
    tied: false,
    context: 131_072,
    rope_base: 150_000.0,
};

pub const QWEN3_30B: ModelDims = ModelDims {
    name: "Qwen3-30B-A3B",
    arch: Arch::Qwen3Moe,
    experts: Some(ExpertDims {
        count: 128,
        used: 8,
        ffn: 768,
    }),
    dim: 2048,
    n_layers: 48,
    ffn: 6144,
    n_heads: 32,
    n_kv_heads: 4,
    head_dim: 128,
    n_vocab: 151_936,
    tied: false,
    context: 40_960,
    rope_base: 1_000_000.0,
};

impl ExpertDims {
    /// The tensors of a layer: those of all experts lie in one.
    pub(super) fn tensors(&self, model: &ModelDims) -> Vec<(&'static str, Vec<u64>)> {
        let ExpertDims { count, ffn, .. } = *self;
        let dim = model.dim;
        let norm = match model.arch {
            Arch::GptOss => "post_attention_norm.weight",
            _ => "ffn_norm.weight",
        };
        let mut tensors = vec![
            (norm, vec![dim]),
            ("ffn_gate_inp.weight", vec![dim, count]),
            ("ffn_gate_exps.weight", vec![dim, ffn, count]),
            ("ffn_up_exps.weight", vec![dim, ffn, count]),
            ("ffn_down_exps.weight", vec![ffn, dim, count]),
        ];
        if model.arch == Arch::GptOss {
            tensors.extend([
                ("ffn_gate_inp.bias", vec![count]),
                ("ffn_gate_exps.bias", vec![ffn, count]),
                ("ffn_up_exps.bias", vec![ffn, count]),
                ("ffn_down_exps.bias", vec![dim, count]),
            ]);
        }
        tensors
    }
}

impl ModelDims {
    /// Writes the numbers that only a mixture has.
    pub(super) fn describe_experts(&self, header: &mut GgufHeader) {
        let Some(experts) = &self.experts else { return };
        let arch = self.arch.name();
        for (key, count) in [
            ("expert_count", experts.count),
            ("expert_used_count", experts.used),
            ("expert_feed_forward_length", experts.ffn),
        ] {
            header.set(&format!("{arch}.{key}"), &(count as u32));
        }
        if self.arch == Arch::GptOss {
            header.set("gpt-oss.attention.sliding_window", &128_u32);
            header.set("gpt-oss.rope.scaling.type", "yarn");
            header.set("gpt-oss.rope.scaling.factor", &32.0_f32);
            let context = "gpt-oss.rope.scaling.original_context_length";
            header.set(context, &4096_u32);
        }
    }
}
