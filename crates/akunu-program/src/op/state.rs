//! Layers with a state: a memory of fixed size for each sequence, instead of keys and values.
//!
//! Each state is in a block of its layer's [`StatePool`], under the same block number in all layers. A row names two blocks
//! ([`Row::states`](akunu_types::params::Row)): it continues from the state in the first and writes its own to the second.
//!
//! ```text
//! for each row, in order:   S = block[from], or zeros;   S, y = step(S, x);   block[to] = S, if the row names one
//! ```
//!
//! So a row can follow any other of its sequence: the one before it, or its parent in a tree of guesses. A state that nothing
//! has overwritten can be gone on from again: to give up what came after it costs nothing.

use crate::buffer::{Buffer, Slice};

/// The states of one layer, (n_blocks, numbers of a state).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatePool {
    /// All blocks.
    pub blocks: Buffer,
    /// How many there are.
    pub n_blocks: u32,
}

/// The inputs of a short convolution, and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConvForm {
    /// `to = silu(conv(x) + bias)`; a row of x begins with the inputs, (width).
    Silu,
    /// `to = c * (conv(b * x) + bias)`; a row of x begins with b, c and x, (3, width).
    Gated,
    /// `to = conv(x) + bias`; a row of x begins with the inputs, (width).
    Plain,
}

/// A causal convolution of each channel over the last tokens of its sequence.
///
/// ```text
/// conv(x)[r][c] = Σ_t weight[c][t] * x[r - (taps - 1) + t][c]
/// ```
///
/// The state holds the inputs of the last `taps - 1` tokens, the oldest first: (taps - 1, width).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortConv {
    /// Its inputs and its result.
    pub form: ConvForm,
    /// (rows, stride).
    pub x: Slice,
    /// Elements from one row of x to the next.
    pub stride: u32,
    /// Channels.
    pub width: u32,
    /// Tokens that a result depends on, 2 to 4.
    pub taps: u32,
    /// (width, taps).
    pub weight: Slice,
    /// (width).
    pub bias: Option<Slice>,
    /// (rows, width).
    pub to: Slice,
    /// The states.
    pub state: StatePool,
}

/// Which key head a value head reads, where there are fewer of those.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// Value head h reads key head `h mod key_heads`: GGUF files.
    Tiled,
    /// Value head h reads key head `h div (value_heads / key_heads)`: folders.
    Grouped,
}

/// The gated delta rule: a state of (head_dim, head_dim) for each value head, which forgets a share of itself and then
/// corrects what it has for a key.
///
/// ```text
/// q, k = q / |q|, k / |k|    |x| = sqrt(Σ x² + eps);    q /= sqrt(head_dim)
/// β = sigmoid(beta);   g = decay * softplus(alpha + dt_bias)
/// S *= e^g;   d = β (v - Sᵀ k);   S += k dᵀ;   to = Sᵀ q
/// ```
///
/// A state is (value_heads, head_dim, head_dim), and element \[i\]\[j\] of a head belongs to element i of keys and j of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeltaRule {
    /// Queries, keys and values, (rows, (2 * key_heads + value_heads) * head_dim).
    pub qkv: Slice,
    /// (rows, value_heads), before the sigmoid.
    pub beta: Slice,
    /// (rows, value_heads).
    pub alpha: Slice,
    /// Factors of the softplus, (value_heads), at most 0.
    pub decay: Slice,
    /// (value_heads).
    pub dt_bias: Slice,
    /// Heads of queries and keys.
    pub key_heads: u32,
    /// Heads of values, a multiple of the others.
    pub value_heads: u32,
    /// Elements of every head.
    pub head_dim: u32,
    /// Which of them belong together.
    pub order: HeadOrder,
    /// Added under the roots.
    pub eps: f32,
    /// (rows, value_heads, head_dim).
    pub to: Slice,
    /// The states.
    pub state: StatePool,
}

/// Mamba-2: a state of (head_dim, state_size) for each head, of which a share that depends on the token is forgotten.
///
/// ```text
/// Δ = softplus(dt + dt_bias);   S = e^(Δ a) S + Δ x Bᵀ;   to = S C + d x
/// ```
///
/// Head h reads B and C of group `h div (heads / groups)`. A state is (heads, head_dim, state_size).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ssd {
    /// x, B and C, (rows, heads * head_dim + 2 * groups * state_size).
    pub xbc: Slice,
    /// A row begins with (heads).
    pub dt: Slice,
    /// Elements from one row of dt to the next.
    pub dt_stride: u32,
    /// (heads).
    pub dt_bias: Slice,
    /// (heads), negative.
    pub a: Slice,
    /// (heads).
    pub d: Slice,
    /// Heads.
    pub heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Groups of heads.
    pub groups: u32,
    /// Numbers that each element remembers.
    pub state_size: u32,
    /// (rows, heads * head_dim).
    pub to: Slice,
    /// The states.
    pub state: StatePool,
}

/// Whether a gate comes before or after the norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateOrder {
    /// `to = norm(x) * weight * silu(gate)`: the delta rule.
    AfterNorm,
    /// `to = norm(x * silu(gate)) * weight`: Mamba-2.
    BeforeNorm,
}

/// The norm of pieces of a row by their root mean square, and a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GatedNorm {
    /// (rows, pieces, width).
    pub x: Slice,
    /// A row begins with (pieces, width).
    pub gate: Slice,
    /// Elements from one row of gates to the next.
    pub gate_stride: u32,
    /// Which comes first.
    pub order: GateOrder,
    /// (width) for all pieces, or (pieces, width).
    pub weight: Slice,
    /// Whether each piece has different weights.
    pub own_weights: bool,
    /// Pieces that are normalised by themselves.
    pub pieces: u32,
    /// Elements of a piece.
    pub width: u32,
    /// Added under the root.
    pub eps: f32,
    /// (rows, pieces, width).
    pub to: Slice,
}

/// Takes queries apart that have a gate behind each head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitHeads {
    /// (rows, n_heads, 2, head_dim).
    pub x: Slice,
    /// Heads.
    pub n_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// The first half of each, (rows, n_heads, head_dim).
    pub first: Slice,
    /// The second.
    pub second: Slice,
}
