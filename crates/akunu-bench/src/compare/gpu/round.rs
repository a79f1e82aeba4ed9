//! A round of one program on a GPU: how many tokens its tests have, and what it measured.

use serde::{Deserialize, Serialize};

/// How many tokens the tests have: each pair is of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuSizes {
    /// Tokens that are written in each test, by each sequence.
    pub decode: u32,
    /// Tokens of context before those that one sequence writes.
    pub depths: [u32; 2],
    /// Tokens of the prompts.
    pub prompts: [u32; 2],
    /// Sequences that write at once, without a context.
    pub sequences: [u32; 2],
}

/// Runs of each test in a process, after one to warm up; their mean is a round's figure.
pub const RUNS: u32 = 3;

/// Tokens a second of one round of one program, in the order of [`GpuSizes`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speeds {
    pub depths: [f64; 2],
    pub prompts: [f64; 2],
    /// Of all sequences together.
    pub sequences: [f64; 2],
}

/// A GPU that a record names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    pub name: String,
    /// The newest CUDA that its driver knows.
    pub driver: String,
}
