//! Keys under both of their names.

/// A key: its names in GGUF metadata, after that of the architecture, and in `config.json`. The first that is there counts.
#[derive(Clone, Copy)]
pub struct Key {
    /// In GGUF metadata, after the architecture's name and a dot.
    pub gguf: &'static [&'static str],
    /// In `config.json`.
    pub config: &'static [&'static str],
}

impl Key {
    /// A key with these names.
    pub const fn new(gguf: &'static [&'static str], config: &'static [&'static str]) -> Key {
        Key { gguf, config }
    }

    /// A key that both call the same.
    pub const fn same(names: &'static [&'static str; 1]) -> Key {
        Key::new(names, names)
    }
}

pub const LAYERS: Key = Key::new(
    &["block_count"],
    &["num_hidden_layers", "n_layer", "num_layers"],
);
/// The kind of each layer, in folders of Nemotron-H.
pub const LAYER_KINDS: &str = "layers_block_type";
/// Layers at the end that a plain decoder does without.
pub const GUESSING_LAYERS: Key = Key::new(&["nextn_predict_layers"], &[]);
pub const DIM: Key = Key::new(&["embedding_length"], &["hidden_size", "n_embd"]);
/// A model of nothing but experts may say only theirs.
pub const FFN: Key = Key::new(
    &["feed_forward_length", "expert_feed_forward_length"],
    &[
        "prefix_dense_intermediate_size",
        "intermediate_size",
        "n_inner",
        "moe_intermediate_size",
    ],
);
pub const HEADS: Key = Key::new(
    &["attention.head_count"],
    &["num_attention_heads", "n_head"],
);
pub const KV_HEADS: Key = Key::new(&["attention.head_count_kv"], &["num_key_value_heads"]);
pub const HEAD_DIM: Key = Key::new(&["attention.key_length"], &["head_dim"]);
pub const CONTEXT: Key = Key::new(
    &["context_length"],
    &["max_position_embeddings", "n_positions"],
);
pub const EPS: Key = Key::new(
    &[
        "attention.layer_norm_rms_epsilon",
        "attention.layer_norm_epsilon",
    ],
    &[
        "norm_eps",
        "norm_epsilon",
        "rms_norm_eps",
        "layer_norm_eps",
        "layer_norm_epsilon",
    ],
);
/// An encoder's is local attention.
pub const WINDOW: Key = Key::new(
    &["attention.sliding_window"],
    &["local_attention", "sliding_window"],
);
