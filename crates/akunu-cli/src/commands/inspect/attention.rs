//! What a model file says about its attention.

use serde::Serialize;

/// How a model attends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// Heads that ask; the largest number where layers differ.
    pub heads: u64,
    /// Heads that hold keys and values; the largest number where layers differ.
    pub kv_heads: u64,
    pub key_length: u64,
    pub value_length: u64,
    /// How far back a token sees in the layers that have a window; how far around it an encoder's does.
    pub window: Option<u64>,
    /// How many layers have the window, where we know the architecture.
    pub windowed_layers: Option<usize>,
    /// Up to which distance of two tokens their score has a bias of its own, where the model has such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bias_distance: Option<u32>,
}
