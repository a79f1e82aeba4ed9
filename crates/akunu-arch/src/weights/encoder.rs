//! The weights of an encoder of BERT's kind.
//!
//! ```text
//! x = norm(tokens + types + positions)
//! for each layer:  x = norm(x + Wo attention(Wq x, Wk x, Wv x));  x = norm(x + Wdown act(Wup x))
//! ```
//!
//! or, where blocks normalise what they read (the first one reads what is normalised already):
//!
//! ```text
//! for each layer:  h = norm(x);  x = x + Wo attention(Wq h, Wk h, Wv h);  x = x + Wdown act(Wup norm(x))
//! x = norm(x)
//! ```
//!
//! A classifier reads `v`, which is `x[0]` or the mean of all `x`, and adds `scores = Wc tanh(Wp v)`,
//! `scores = Wc norm(gelu(Wp v))` or, without a head, `scores = Wc v`.

use super::WeightShape;
use crate::config::ModelConfig;
use crate::descriptor::ClassifierHead;

pub(super) fn weight_shapes(config: &ModelConfig) -> Vec<WeightShape> {
    let mut all = Shapes {
        config,
        shapes: Vec::new(),
    };
    let dim = config.dim;
    all.matrix("token_embedding.weight", config.vocab_size, dim);
    all.table("token_types.weight", config.n_token_types);
    let entries = match config.n_positions {
        0 => 0,
        n => n + config.arch.first_position,
    };
    all.table("position_embedding.weight", entries);
    if let Some(relative) = config.arch.relative {
        all.elementwise("relative_bias.weight", [relative.n_buckets, config.n_heads]);
    }
    all.norm("token_embedding_norm");
    for layer in 0..config.layers.len() {
        all.layer(layer);
    }
    if config.arch.norms_inputs {
        all.norm("output_norm");
    }
    if config.n_labels > 0 {
        if let Some(head) = config.classifier_head {
            all.linear("pooler", dim, dim, config.has_head_bias);
            if head == ClassifierHead::GeluNorm {
                all.norm("pooler_norm");
            }
        }
        all.matrix("classifier.weight", config.n_labels, dim);
        all.vector("classifier.bias", config.n_labels);
    }
    all.shapes
}

struct Shapes<'a> {
    config: &'a ModelConfig,
    shapes: Vec<WeightShape>,
}

impl Shapes<'_> {
    fn layer(&mut self, layer: usize) {
        let name = format!("layers.{layer}");
        let (dim, ffn) = (self.config.dim, self.config.ffn_dim);
        let (q, kv) = (self.config.q_dim(), self.config.kv_dim());
        let arch = &self.config.arch;
        if arch.norms_inputs && layer > 0 {
            self.norm(&format!("{name}.attention_norm"));
        }
        if arch.has_qkv_bias {
            for (part, rows) in [("q", q), ("k", kv), ("v", kv)] {
                self.linear(&format!("{name}.attention.{part}"), rows, dim, true);
            }
        } else {
            self.linear(&format!("{name}.attention.qkv"), q + 2 * kv, dim, false);
        }
        let has_bias = arch.has_linear_bias;
        self.linear(&format!("{name}.attention.output"), dim, q, has_bias);
        let norm = if arch.norms_inputs {
            "ffn_norm"
        } else {
            "attention_output_norm"
        };
        self.norm(&format!("{name}.{norm}"));
        if arch.has_fused_gate {
            self.linear(&format!("{name}.ffn.up"), 2 * ffn, dim, has_bias);
        } else {
            if arch.activation.is_gated() {
                self.linear(&format!("{name}.ffn.gate"), ffn, dim, has_bias);
            }
            self.linear(&format!("{name}.ffn.up"), ffn, dim, has_bias);
        }
        self.linear(&format!("{name}.ffn.down"), dim, ffn, has_bias);
        if !arch.norms_inputs {
            self.norm(&format!("{name}.layer_output_norm"));
        }
    }

    fn linear(&mut self, name: &str, rows: u32, cols: u32, has_bias: bool) {
        self.matrix(&format!("{name}.weight"), rows, cols);
        if has_bias {
            self.vector(&format!("{name}.bias"), rows);
        }
    }

    fn norm(&mut self, name: &str) {
        self.vector(&format!("{name}.weight"), self.config.dim);
        if self.config.arch.has_norm_bias {
            self.vector(&format!("{name}.bias"), self.config.dim);
        }
    }

    fn matrix(&mut self, name: &str, rows: u32, cols: u32) {
        self.shapes.push(WeightShape {
            name: name.into(),
            rows,
            cols,
            is_elementwise: false,
        });
    }

    fn vector(&mut self, name: &str, len: u32) {
        self.elementwise(name, [1, len]);
    }

    /// Learned vectors, where the model has them.
    fn table(&mut self, name: &str, rows: u32) {
        if rows > 0 {
            self.elementwise(name, [rows, self.config.dim]);
        }
    }

    fn elementwise(&mut self, name: &str, [rows, cols]: [u32; 2]) {
        self.shapes.push(WeightShape {
            name: name.into(),
            rows,
            cols,
            is_elementwise: true,
        });
    }
}
