//! The shapes of real models, all written as the architecture `llama`.

use akunu_gguf::GgufHeader;

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
    /// Llama-3.2-1B
    #[value(name = "1B")]
    Llama3_2_1b,
    /// Llama-3-8B
    #[value(name = "8B")]
    Llama3_8b,
}

/// The numbers that make a llama.
#[derive(Debug)]
pub struct ModelDims {
    /// The model's name.
    pub name: &'static str,
    pub dim: u64,
    pub n_layers: u64,
    pub ffn: u64,
    pub n_heads: u64,
    pub n_kv_heads: u64,
    pub head_dim: u64,
    pub n_vocab: u64,
    /// Whether the embedding is the output layer too.
    pub tied: bool,
    pub context: u32,
    pub rope_base: f32,
}

const SMOLLM2_135M: ModelDims = ModelDims {
    name: "SmolLM2-135M",
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

const LLAMA3_8B: ModelDims = ModelDims {
    name: "Llama-3-8B",
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
            Some(layer) => format!("blk.{layer}.{name}.weight"),
            None => format!("{name}.weight"),
        };
        let dims = dims.to_vec();
        Tensor { name, dims, layer }
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
            Shape::Llama3_2_1b => &LLAMA3_2_1B,
            Shape::Llama3_8b => &LLAMA3_8B,
        }
    }

    /// Every tensor, in the order of the file.
    pub fn tensors(self) -> Vec<Tensor> {
        let d = self.dims();
        let mut tensors = vec![Tensor::new("token_embd", &[d.dim, d.n_vocab], None)];
        let (queries, keys) = (d.n_heads * d.head_dim, d.n_kv_heads * d.head_dim);
        for layer in 0..d.n_layers {
            let parts: [(&str, &[u64]); 9] = [
                ("attn_norm", &[d.dim]),
                ("attn_q", &[d.dim, queries]),
                ("attn_k", &[d.dim, keys]),
                ("attn_v", &[d.dim, keys]),
                ("attn_output", &[queries, d.dim]),
                ("ffn_norm", &[d.dim]),
                ("ffn_gate", &[d.dim, d.ffn]),
                ("ffn_up", &[d.dim, d.ffn]),
                ("ffn_down", &[d.ffn, d.dim]),
            ];
            let of_layer = |(name, dims)| Tensor::new(name, dims, Some(layer));
            tensors.extend(parts.into_iter().map(of_layer));
        }
        tensors.push(Tensor::new("output_norm", &[d.dim], None));
        if !d.tied {
            tensors.push(Tensor::new("output", &[d.dim, d.n_vocab], None));
        }
        tensors
    }

    /// Writes the numbers into a header.
    pub fn describe(self, header: &mut GgufHeader) {
        let d = self.dims();
        header.set("general.architecture", "llama");
        header.set("general.name", &format!("{} with random weights", d.name));
        let counts = [
            ("block_count", d.n_layers),
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
            header.set(&format!("llama.{key}"), &(count as u32));
        }
        header.set("llama.context_length", &d.context);
        header.set("llama.rope.freq_base", &d.rope_base);
        header.set("llama.attention.layer_norm_rms_epsilon", &1e-5_f32);
    }
}
