//! A round of one program on a CPU: how many tokens its tests have, and what it measured.

use serde::{Deserialize, Serialize};

/// How many tokens each test has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// The prompt.
    pub prefill: u32,
    /// The short prompt whose answer's first token is waited for.
    pub first: u32,
    /// Tokens written.
    pub decode: u32,
    /// A short context and a long one.
    pub shallow: u32,
    /// The long one.
    pub deep: u32,
    /// Tokens written after them.
    pub deep_decode: u32,
}

/// What both programs continue, to see that they compute the same.
pub const PROMPT: &str = "The capital of France is";
/// How many tokens they continue it by.
pub const N_GREEDY: u32 = 8;

/// What one round of one program gave.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Tokens a second of the prompt.
    pub prefill: f64,
    /// From a short prompt to the first token.
    pub first_token_ms: f64,
    /// Tokens a second, written.
    pub decode: f64,
    /// From the start to a session that can be asked.
    pub load_ms: f64,
    /// Memory of the process.
    pub resident_bytes: f64,
    /// Tokens a second after a short context.
    pub decode_shallow: f64,
    /// And after a long one.
    pub decode_deep: f64,
}
