//! The weights that a decoder or an encoder needs, with their shapes.

mod encoder;

use std::path::Path;

use akunu_gguf::WeightStore;

use crate::config::ModelConfig;
use crate::descriptor::Role;
use crate::error::ArchError;

/// A weight by its canonical name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightShape {
    /// Canonical name.
    pub name: String,
    /// Rows: the output width, or 1 for a vector.
    pub rows: u32,
    /// Columns: the input width, or the length of a vector.
    pub cols: u32,
    /// Whether it is added or multiplied number by number, and is no factor of a matrix product: norms, biases, and
    /// learned positions.
    pub is_elementwise: bool,
}

/// What a weight of a decoder is.
enum Shape {
    /// Rows and columns.
    Matrix(u32, u32),
    /// Its length.
    Vector(u32),
}

impl Shape {
    fn named(self, name: String) -> WeightShape {
        let (rows, cols, is_elementwise) = match self {
            Shape::Matrix(rows, cols) => (rows, cols, false),
            Shape::Vector(len) => (1, len, true),
        };
        WeightShape {
            name,
            rows,
            cols,
            is_elementwise,
        }
    }
}

/// Every weight that the layers of this model read, in the order of use.
pub fn weight_shapes(config: &ModelConfig) -> Vec<WeightShape> {
    match config.arch.role {
        Role::Encoder => encoder::weight_shapes(config),
        Role::Decoder | Role::EncoderDecoder => decoder_shapes(config),
    }
}

fn decoder_shapes(config: &ModelConfig) -> Vec<WeightShape> {
    use Shape::{Matrix, Vector};
    let mut all = Vec::new();
    let mut add = |name: String, shape: Shape| all.push(shape.named(name));
    let (dim, ffn, q, kv) = (config.dim, config.ffn_dim, config.q_dim(), config.kv_dim());
    let arch = &config.arch;
    let vocabulary = || Matrix(config.vocab_size, dim);
    add("token_embedding.weight".into(), vocabulary());
    for layer in 0..config.layers.len() {
        let mut add = |name: &str, shape| add(format!("layers.{layer}.{name}"), shape);
        add("attention_norm.weight", Vector(dim));
        for (name, rows) in [("q", q), ("k", kv), ("v", kv)] {
            add(&format!("attention.{name}.weight"), Matrix(rows, dim));
            if arch.has_qkv_bias {
                add(&format!("attention.{name}.bias"), Vector(rows));
            }
        }
        if arch.has_qk_norm {
            add("attention.q_norm.weight", Vector(config.head_dim));
            add("attention.k_norm.weight", Vector(config.head_dim));
        }
        add("attention.output.weight", Matrix(dim, q));
        if arch.has_post_attention_norm {
            add("post_attention_norm.weight", Vector(dim));
        }
        add("ffn_norm.weight", Vector(dim));
        if arch.activation.is_gated() {
            add("ffn.gate.weight", Matrix(ffn, dim));
        }
        add("ffn.up.weight", Matrix(ffn, dim));
        add("ffn.down.weight", Matrix(dim, ffn));
        if arch.has_post_ffn_norm {
            add("post_ffn_norm.weight", Vector(dim));
        }
    }
    add("output_norm.weight".into(), Vector(dim));
    if !config.tied_embeddings {
        add("output.weight".into(), vocabulary());
    }
    all
}

impl ModelConfig {
    /// Checks that the file has every weight that a model of this shape reads, in that shape, and that no layer has a bias
    /// that it would leave out.
    pub fn check_weights(&self, store: &WeightStore, path: &Path) -> Result<(), ArchError> {
        let shapes = weight_shapes(self);
        for shape in &shapes {
            let missing = || ArchError::MissingWeight {
                path: path.to_path_buf(),
                name: shape.name.clone(),
                tensors: store.tensor_names(&shape.name),
            };
            let weight = store.tensor(&shape.name).ok_or_else(missing)?;
            let (rows, cols) = (shape.rows as usize, shape.cols as usize);
            if (weight.rows(), weight.cols()) != (rows, cols) {
                return Err(ArchError::WeightShape {
                    path: path.to_path_buf(),
                    name: shape.name.clone(),
                    found_rows: weight.rows(),
                    found_cols: weight.cols(),
                    rows,
                    cols,
                });
            }
        }
        let known = |name: &str| shapes.iter().any(|shape| shape.name == name);
        // An encoder's file may have heads for tasks that nobody asks for.
        let is_used = |name: &str| self.arch.role == Role::Decoder || name.starts_with("layers.");
        match store.iter().find(|weight| {
            weight.name.ends_with(".bias") && is_used(weight.name) && !known(weight.name)
        }) {
            None => Ok(()),
            Some(bias) => Err(ArchError::Unsupported {
                path: path.to_path_buf(),
                what: format!(
                    "the bias `{}` in the architecture `{}`",
                    bias.name, self.arch.name
                ),
            }),
        }
    }
}
