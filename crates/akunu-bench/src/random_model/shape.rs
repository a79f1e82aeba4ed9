//! The shapes of real models. Dense ones are written as the architecture `llama`, mixtures of experts as their own.

mod dims;
mod hybrid;
mod mixtures;

use akunu_gguf::GgufHeader;

use self::dims::Arch;
pub use self::dims::ModelDims;
use self::hybrid::QWEN35_0_8B;
use self::mixtures::{GPT_OSS_20B, MIXTURE, OLMOE_7B, QWEN3_30B};

/// A model whose shapes are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// SmolLM2-135M
    #[value(name = "135M")]
    Smollm2_135m,
    /// Qwen1.5-0.5B, without the biases that a llama has not: each head has keys and values of its own
    #[value(name = "0.5B")]
    Qwen1_5_0_5b,
    /// Qwen3-0.6B, without the norms of queries and keys that a llama has not
    #[value(name = "0.6B")]
    Qwen3_0_6b,
    /// Qwen3.5-0.8B, with its block for multi-token prediction
    #[value(name = "0.8B")]
    Qwen35_0_8b,
    /// Llama-3.2-1B
    #[value(name = "1B")]
    Llama3_2_1b,
    /// Qwen2.5-Coder-1.5B, without the biases that a llama has not
    #[value(name = "1.5B")]
    Qwen2_5_1_5b,
    /// Llama-3-8B
    #[value(name = "8B")]
    Llama3_8b,
    /// No real model: a mixture of 64 experts that a small machine can hold
    #[value(name = "1.7B-A0.3B")]
    Mixture,
    /// OLMoE-1B-7B: 64 experts, 8 of them used
    #[value(name = "7B-A1B")]
    Olmoe7b,
    /// gpt-oss-20b: 32 experts, 4 of them used
    #[value(name = "20B-A4B")]
    GptOss20b,
    /// Qwen3-30B-A3B: 128 experts, 8 of them used
    #[value(name = "30B-A3B")]
    Qwen3_30b,
}

const SMOLLM2_135M: ModelDims = ModelDims {
    name: "SmolLM2-135M",
    arch: Arch::Llama,
    experts: None,
    dim: 576,
    n_layers: 30,
    ffn: 1536,
    n_heads: 9,
    n_kv_heads: 3,
    head_dim: 64,
    n_vocab: 49_152,
    tied: true,
    context: 8192,
    rope_base: 100_000.0,
};

const QWEN1_5_0_5B: ModelDims = ModelDims {
    name: "Qwen1.5-0.5B",
    arch: Arch::Llama,
    experts: None,
    dim: 1024,
    n_layers: 24,
    ffn: 2816,
    n_heads: 16,
    n_kv_heads: 16,
    head_dim: 64,
    n_vocab: 151_936,
    tied: true,
    context: 32_768,
    rope_base: 1_000_000.0,
};

const QWEN3_0_6B: ModelDims = ModelDims {
    name: "Qwen3-0.6B",
    arch: Arch::Llama,
    experts: None,
    dim: 1024,
    n_layers: 28,
    ffn: 3072,
    n_heads: 16,
    n_kv_heads: 8,
    head_dim: 128,
    n_vocab: 151_936,
    tied: true,
    context: 40_960,
    rope_base: 1_000_000.0,
};

const LLAMA3_2_1B: ModelDims = ModelDims {
    name: "Llama-3.2-1B",
    arch: Arch::Llama,
    experts: None,
    dim: 2048,
    n_layers: 16,
    ffn: 8192,
    n_heads: 32,
    n_kv_heads: 8,
    head_dim: 64,
    n_vocab: 128_256,
    tied: true,
    context: 131_072,
    rope_base: 500_000.0,
};

const QWEN2_5_1_5B: ModelDims = ModelDims {
    name: "Qwen2.5-Coder-1.5B",
    arch: Arch::Llama,
    experts: None,
    dim: 1536,
    n_layers: 28,
    ffn: 8960,
    n_heads: 12,
    n_kv_heads: 2,
    head_dim: 128,
    n_vocab: 151_936,
    tied: true,
    context: 32_768,
    rope_base: 1_000_000.0,
};

const LLAMA3_8B: ModelDims = ModelDims {
    name: "Llama-3-8B",
    arch: Arch::Llama,
    experts: None,
    dim: 4096,
    n_layers: 32,
    ffn: 14_336,
    n_heads: 32,
    n_kv_heads: 8,
    head_dim: 128,
    n_vocab: 128_256,
    tied: false,
    context: 8192,
    rope_base: 500_000.0,
};

/// A tensor's name and place.
#[derive(Debug)]
pub struct Tensor {
    /// As GGUF calls it.
    pub name: String,
    /// The length of a row first.
    pub dims: Vec<u64>,
    /// The layer it belongs to.
    pub layer: Option<u64>,
}

impl Tensor {
    fn new(name: &str, dims: &[u64], layer: Option<u64>) -> Tensor {
        let name = match layer {
            Some(layer) => format!("blk.{layer}.{name}"),
            None => name.to_string(),
        };
        let dims = dims.to_vec();
        Tensor { name, dims, layer }
    }

    /// Whether it scales a norm, and so is all ones.
    pub fn is_norm(&self) -> bool {
        self.name.ends_with("norm.weight")
    }

    /// Whether it holds rates of decay, which are negative.
    pub fn is_rate(&self) -> bool {
        self.name.ends_with("ssm_a")
    }

    /// Whether its values always are 32-bit floats: norms, biases, sinks and routers.
    pub fn is_f32(&self) -> bool {
        let ends = [".bias", "ffn_gate_inp.weight", "ssm_conv1d.weight"];
        self.dims.len() == 1 || ends.iter().any(|end| self.name.ends_with(end))
    }

    /// How many values it holds.
    pub fn n_values(&self) -> u64 {
        self.dims.iter().product()
    }
}

impl Shape {
    /// Its numbers.
    pub fn dims(self) -> &'static ModelDims {
        match self {
            Shape::Smollm2_135m => &SMOLLM2_135M,
            Shape::Qwen1_5_0_5b => &QWEN1_5_0_5B,
            Shape::Qwen3_0_6b => &QWEN3_0_6B,
            Shape::Qwen35_0_8b => &QWEN35_0_8B,
            Shape::Llama3_2_1b => &LLAMA3_2_1B,
            Shape::Qwen2_5_1_5b => &QWEN2_5_1_5B,
            Shape::Llama3_8b => &LLAMA3_8B,
            Shape::Mixture => &MIXTURE,
            Shape::Olmoe7b => &OLMOE_7B,
            Shape::GptOss20b => &GPT_OSS_20B,
            Shape::Qwen3_30b => &QWEN3_30B,
        }
    }

    /// Every tensor, in the order of the file.
    pub fn tensors(self) -> Vec<Tensor> {
        let d = self.dims();
        let of_model = |name, dims: &[u64]| Tensor::new(name, dims, None);
        let mut tensors = vec![of_model("token_embd.weight", &[d.dim, d.n_vocab])];
        for layer in 0..d.n_layers + d.n_mtp() {
            let of_layer = |(name, dims): (&str, Vec<u64>)| Tensor::new(name, &dims, Some(layer));
            let mixer = match d.has_attention(layer) {
                true => d.attention(),
                false => d.delta_rule(),
            };
            let of_mtp = if layer < d.n_layers {
                Vec::new()
            } else {
                d.mtp()
            };
            let all = mixer.into_iter().chain(d.feed_forward()).chain(of_mtp);
            tensors.extend(all.map(of_layer));
        }
        tensors.push(of_model("output_norm.weight", &[d.dim]));
        if !d.tied {
            tensors.push(of_model("output.weight", &[d.dim, d.n_vocab]));
        }
        tensors
    }

    /// Writes the numbers into a header.
    pub fn describe(self, header: &mut GgufHeader) {
        let d = self.dims();
        let arch = d.arch.name();
        header.set("general.architecture", arch);
        header.set("general.name", &format!("{} with random weights", d.name));
        let counts = [
            ("block_count", d.n_layers + d.n_mtp()),
            ("embedding_length", d.dim),
            ("feed_forward_length", d.ffn),
            ("attention.head_count", d.n_heads),
            ("attention.head_count_kv", d.n_kv_heads),
            ("attention.key_length", d.head_dim),
            ("attention.value_length", d.head_dim),
            ("rope.dimension_count", d.head_dim),
            ("vocab_size", d.n_vocab),
        ];
        for (key, count) in counts {
            header.set(&format!("{arch}.{key}"), &(count as u32));
        }
        header.set(&format!("{arch}.context_length"), &d.context);
        header.set(&format!("{arch}.rope.freq_base"), &d.rope_base);
        let epsilon = format!("{arch}.attention.layer_norm_rms_epsilon");
        header.set(&epsilon, &1e-5_f32);
        d.describe_experts(header);
        d.describe_states(header);
    }
}
