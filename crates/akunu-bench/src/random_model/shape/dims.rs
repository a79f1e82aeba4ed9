//! The sizes of a model, and the tensors that follow from them.

use akunu_gguf::GgufHeader;

/// What the layers of an architecture have beside those of a llama.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arch {
    Llama,
    /// Norms of all queries and all keys of a token.
    Olmoe,
    /// Norms of each head's queries and keys.
    Qwen3Moe,
    /// Biases everywhere, attention sinks and a window.
    GptOss,
    /// Delta rules in most layers, and gates of attention.
    Qwen35,
}

impl Arch {
    /// GGUF's `general.architecture`.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Llama => "llama",
            Arch::Olmoe => "olmoe",
            Arch::Qwen3Moe => "qwen3moe",
            Arch::GptOss => "gpt-oss",
            Arch::Qwen35 => "qwen35",
        }
    }
}

/// The sizes of a model.
#[derive(Debug)]
pub struct ModelDims {
    /// The model's name.
    pub name: &'static str,
    /// What it is written as.
    pub arch: Arch,
    /// The experts of each layer, in place of one feed-forward block.
    pub experts: Option<ExpertDims>,
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

/// The experts of a layer.
#[derive(Debug)]
pub struct ExpertDims {
    /// How many there are.
    pub count: u64,
    /// How many a token uses.
    pub used: u64,
    /// Elements between the products of an expert.
    pub ffn: u64,
}

impl ModelDims {
    /// The tensors of a layer's attention.
    pub fn attention(&self) -> Vec<(&'static str, Vec<u64>)> {
        let (dim, queries) = (self.dim, self.n_heads * self.head_dim);
        let keys = self.n_kv_heads * self.head_dim;
        let gates = match self.arch {
            Arch::Qwen35 => queries,
            Arch::Llama | Arch::Olmoe | Arch::Qwen3Moe | Arch::GptOss => 0,
        };
        let mut tensors = vec![
            ("attn_norm.weight", vec![dim]),
            ("attn_q.weight", vec![dim, queries + gates]),
            ("attn_k.weight", vec![dim, keys]),
            ("attn_v.weight", vec![dim, keys]),
            ("attn_output.weight", vec![queries, dim]),
        ];
        let norms = match self.arch {
            Arch::Olmoe => Some([queries, keys]),
            Arch::Qwen3Moe | Arch::Qwen35 => Some([self.head_dim; 2]),
            Arch::Llama | Arch::GptOss => None,
        };
        if let Some([of_queries, of_keys]) = norms {
            tensors.push(("attn_q_norm.weight", vec![of_queries]));
            tensors.push(("attn_k_norm.weight", vec![of_keys]));
        }
        if self.arch == Arch::GptOss {
            tensors.extend([
                ("attn_q.bias", vec![queries]),
                ("attn_k.bias", vec![keys]),
                ("attn_v.bias", vec![keys]),
                ("attn_output.bias", vec![dim]),
                ("attn_sinks.weight", vec![self.n_heads]),
            ]);
        }
        tensors
    }

    /// The tensors of a layer's feed-forward block, or of its experts.
    pub fn feed_forward(&self) -> Vec<(&'static str, Vec<u64>)> {
        match &self.experts {
            Some(experts) => experts.tensors(self),
            None => vec![
                (self.ffn_norm(), vec![self.dim]),
                ("ffn_gate.weight", vec![self.dim, self.ffn]),
                ("ffn_up.weight", vec![self.dim, self.ffn]),
                ("ffn_down.weight", vec![self.ffn, self.dim]),
            ],
        }
    }
}

impl ModelDims {
    /// What the norm before the feed-forward block is called.
    fn ffn_norm(&self) -> &'static str {
        match self.arch {
            Arch::GptOss | Arch::Qwen35 => "post_attention_norm.weight",
            Arch::Llama | Arch::Olmoe | Arch::Qwen3Moe => "ffn_norm.weight",
        }
    }
}

impl ExpertDims {
    /// The tensors of a layer: those of all experts lie in one.
    fn tensors(&self, model: &ModelDims) -> Vec<(&'static str, Vec<u64>)> {
        let ExpertDims { count, ffn, .. } = *self;
        let dim = model.dim;
        let norm = model.ffn_norm();
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
    pub fn describe_experts(&self, header: &mut GgufHeader) {
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
