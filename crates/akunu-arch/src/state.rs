//! Mixers with a state of fixed size: what a token keeps of those before it does not grow with them.

use crate::linear::Linear;
use crate::weights::{NamedMatrix, NamedVector};

/// A convolution over the last tokens between two gates: LFM2.
///
/// ```text
/// b, c, x = W_in h;   y = W_out (c * conv(b * x))
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ShortConv<M = NamedMatrix, V = NamedVector> {
    /// Channels.
    pub width: u32,
    /// The convolution of each channel.
    pub conv: Taps<V>,
    /// b, c and x.
    pub input: Linear<M, V>,
    /// The product of the result.
    pub output: Linear<M, V>,
}

/// A causal convolution of each channel by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Taps<V = NamedVector> {
    /// Tokens that a result depends on.
    pub count: u32,
    /// (channels, count).
    pub weight: V,
    /// (channels).
    pub bias: Option<V>,
}

/// The gated delta rule: Qwen3-Next, Qwen3.5 and their like. `akunu_program::op::DeltaRule` has the formulas.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaNet<M = NamedMatrix, V = NamedVector> {
    /// Heads of queries and keys.
    pub key_heads: u32,
    /// Heads of values, a multiple of the others.
    pub value_heads: u32,
    /// Elements of every head.
    pub head_dim: u32,
    /// Which of them belong together.
    pub order: HeadOrder,
    /// Queries, keys and values.
    pub qkv: Linear<M, V>,
    /// Their convolution.
    pub conv: Taps<V>,
    /// The gate of the result.
    pub gate: Linear<M, V>,
    /// How much a token corrects, before the sigmoid.
    pub beta: Linear<M, V>,
    /// How much it forgets, before the softplus.
    pub alpha: Linear<M, V>,
    /// Factors of the softplus, (value_heads), at most 0.
    pub decay: V,
    /// Added before the softplus, (value_heads).
    pub dt_bias: V,
    /// The norm of the result's heads, (head_dim).
    pub norm: V,
    /// Added under the roots.
    pub eps: f32,
    /// The product of the result.
    pub output: Linear<M, V>,
}

/// Mamba-2: Granite 4 hybrid, Mamba-2 itself. What is computed is in `akunu_program::op::Ssd`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ssd<M = NamedMatrix, V = NamedVector> {
    /// Heads.
    pub heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Groups of heads, which share B and C.
    pub groups: u32,
    /// Numbers that each element remembers.
    pub state_size: u32,
    /// The gate, x, B, C and the time steps; without the gate if it has a separate product.
    pub input: Linear<M, V>,
    /// How the gate z is applied to the states' result y.
    pub gate: SsdGate<M, V>,
    /// The convolution of x, B and C.
    pub conv: Taps<V>,
    /// Added to the time steps, (heads).
    pub dt_bias: V,
    /// (heads), negative.
    pub a: V,
    /// (heads).
    pub d: V,
    /// Added under the root of the norm.
    pub eps: f32,
    /// The product of the result.
    pub output: Linear<M, V>,
}

/// How the result y of Mamba-2 and its gate z become one.
#[derive(Clone, Debug, PartialEq)]
pub enum SsdGate<M = NamedMatrix, V = NamedVector> {
    /// `norm(y silu(z))`, group by group, with these weights, (heads * head_dim).
    Normed(V),
    /// `y silu(z)`; z is this product.
    Alone(Linear<M, V>),
}

/// Which key head a value head reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// Value head h reads key head `h mod key_heads`: GGUF files.
    Tiled,
    /// Value head h reads key head `h div (value_heads / key_heads)`: folders.
    Grouped,
}

/// Numbers of a sequence's state in one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateSize {
    /// The inputs of the convolution, of the tokens before the next one.
    pub inputs: u32,
    /// The memory of all tokens.
    pub memory: u32,
}

impl StateSize {
    /// All of them.
    pub fn numbers(self) -> u64 {
        u64::from(self.inputs) + u64::from(self.memory)
    }
}

impl<V> Taps<V> {
    fn state(&self, channels: u32) -> u32 {
        (self.count - 1) * channels
    }
}

impl<M, V> ShortConv<M, V> {
    /// The size of a sequence's state.
    pub fn state(&self) -> StateSize {
        StateSize {
            inputs: self.conv.state(self.width),
            memory: 0,
        }
    }

    /// All products, in the order of use.
    pub(crate) fn linears(&self) -> Vec<&Linear<M, V>> {
        vec![&self.input, &self.output]
    }
}

impl<M, V> Ssd<M, V> {
    /// Elements of x, of the gate and of the result.
    pub fn width(&self) -> u32 {
        self.heads * self.head_dim
    }

    /// Elements of x, B and C.
    pub fn xbc_dim(&self) -> u32 {
        self.width() + 2 * self.groups * self.state_size
    }

    /// Elements of all that the input gives.
    pub fn input_dim(&self) -> u32 {
        self.before_xbc() + self.xbc_dim() + self.heads
    }

    /// Elements of those before x, B and C: the gate.
    pub fn before_xbc(&self) -> u32 {
        match self.gate {
            SsdGate::Normed(_) => self.width(),
            SsdGate::Alone(_) => 0,
        }
    }

    /// The size of a sequence's state.
    pub fn state(&self) -> StateSize {
        StateSize {
            inputs: self.conv.state(self.xbc_dim()),
            memory: self.width() * self.state_size,
        }
    }

    /// All products, in the order of use.
    pub(crate) fn linears(&self) -> Vec<&Linear<M, V>> {
        match &self.gate {
            SsdGate::Normed(_) => vec![&self.input, &self.output],
            SsdGate::Alone(gate) => vec![gate, &self.input, &self.output],
        }
    }
}

impl<M, V> DeltaNet<M, V> {
    /// Elements of the queries, keys and values of a token.
    pub fn qkv_dim(&self) -> u32 {
        (2 * self.key_heads + self.value_heads) * self.head_dim
    }

    /// Elements of its values.
    pub fn value_dim(&self) -> u32 {
        self.value_heads * self.head_dim
    }

    /// The size of a sequence's state.
    pub fn state(&self) -> StateSize {
        StateSize {
            inputs: self.conv.state(self.qkv_dim()),
            memory: self.value_dim() * self.head_dim,
        }
    }

    /// All products, in the order of use.
    pub(crate) fn linears(&self) -> Vec<&Linear<M, V>> {
        let inputs = [&self.qkv, &self.gate, &self.beta, &self.alpha];
        inputs.into_iter().chain([&self.output]).collect()
    }
}
