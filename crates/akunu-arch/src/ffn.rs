//! Feed-forward blocks: of two products, of three with a gate, and a mixture of many.

use crate::linear::Linear;
use crate::norm::Norm;
use crate::weights::{NamedMatrix, NamedVector};

/// The feed-forward block.
#[derive(Clone, Debug, PartialEq)]
pub enum Ffn<M = NamedMatrix, V = NamedVector> {
    /// None: the layer has only a mixer.
    None,
    /// `down activation(up x)`.
    Dense(Dense<M, V>),
    /// `down (activation(gate x) * up x)`.
    Gated(Gated<M, V>),
    /// A few of many such blocks, which a router chooses for each token.
    Experts(Experts<M, V>),
}

impl<M, V> Ffn<M, V> {
    /// Elements between its products; of experts, those of one.
    pub fn width(&self) -> u32 {
        match self {
            Ffn::None => 0,
            Ffn::Dense(dense) => dense.width,
            Ffn::Gated(gated) => gated.width,
            Ffn::Experts(experts) => experts.width,
        }
    }
}

/// `down activation(up x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<M = NamedMatrix, V = NamedVector> {
    /// Elements between the products.
    pub width: u32,
    /// The function of the first product.
    pub activation: DenseActivation,
    /// The first product.
    pub up: Linear<M, V>,
    /// The second product.
    pub down: Linear<M, V>,
}

/// The activation of a block without a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseActivation {
    /// GELU by the error function.
    GeluErf,
    /// GELU by the tanh formula.
    Gelu,
    /// `max(x, 0)²`.
    ReluSquared,
}

/// `down (activation(gate x) * up x)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gated<M = NamedMatrix, V = NamedVector> {
    /// Elements between the products.
    pub width: u32,
    /// The activation of the gate.
    pub activation: Activation,
    /// The product that is activated.
    pub gate: Linear<M, V>,
    /// The product that it is multiplied by.
    pub up: Linear<M, V>,
    /// The last product.
    pub down: Linear<M, V>,
}

/// The activation of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// GELU by the tanh formula.
    Gelu,
    /// GELU by the error function.
    GeluErf,
    /// That of gpt-oss: `g * sigmoid(1.702 g) * (u + 1)`, with `g = min(gate, 7)` and `u = up` clamped to 7.
    SwigluOai,
}

impl<M, V> Gated<M, V> {
    /// Its products, in the order of use.
    pub(crate) fn linears(&self) -> [&Linear<M, V>; 3] {
        [&self.gate, &self.up, &self.down]
    }
}

/// A mixture of experts: `y = Σ_i w_i * down_i(activation(gate_i x) * up_i x)` over the experts that a router chooses for a
/// token, and what an expert that all tokens share adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Experts<M = NamedMatrix, V = NamedVector> {
    /// Experts.
    pub count: u32,
    /// Experts of a token.
    pub used: u32,
    /// Elements between the products of an expert.
    pub width: u32,
    /// The activation of their gates.
    pub activation: Activation,
    /// The router that chooses the experts.
    pub router: Router<M, V>,
    /// The products that are activated.
    pub gate: ExpertLinear<M, V>,
    /// The products that those are multiplied by.
    pub up: ExpertLinear<M, V>,
    /// The last products.
    pub down: ExpertLinear<M, V>,
    /// The expert of all tokens.
    pub shared: Option<SharedExpert<M, V>>,
    /// Norms within the block, if it has an expert of all tokens that is normalised by itself.
    pub norms: Option<ExpertNorms<V>>,
}

/// Norms of a block whose shared expert is a separate block: `shared_output(shared(x)) + output(experts(input(h)))`, where
/// the router reads `router(h)` and h is the residual stream.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertNorms<V = NamedVector> {
    /// The vector that the router reads.
    pub router: Norm<V>,
    /// The vector that experts read.
    pub input: Norm<V>,
    /// Norm of the experts' result.
    pub output: Norm<V>,
    /// Norm of the result of the expert of all tokens.
    pub shared_output: Norm<V>,
}

/// Chooses the experts of a token from `l = W x`.
#[derive(Clone, Debug, PartialEq)]
pub struct Router<M = NamedMatrix, V = NamedVector> {
    /// (experts, dim).
    pub linear: Linear<M, V>,
    /// The function that is applied to the logits.
    pub gating: Gating,
    /// Added for the choice, and not to the weights, (experts).
    pub bias: Option<V>,
    /// Groups that are chosen first.
    pub groups: Option<Groups>,
    /// Whether the weights of a token are divided by their sum.
    pub normalise: bool,
    /// Factor of the weights.
    pub scale: f32,
}

/// The function that is applied to the logits of a router before the best are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gating {
    /// The softmax of all.
    Softmax,
    /// The sigmoid of each.
    Sigmoid,
    /// Nothing; the weights of the chosen experts are a softmax of their logits.
    SoftmaxOfChosen,
    /// The root of the softplus of each.
    SqrtSoftplus,
}

/// Equal groups of experts that lie one behind the other, of which those with the largest sums of their two best numbers are
/// chosen first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// How many there are.
    pub count: u32,
    /// How many are used.
    pub used: u32,
}

/// One product of each expert. The matrices lie one behind the other in a tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpertLinear<M = NamedMatrix, V = NamedVector> {
    /// From the first expert's first row to the last one's last.
    pub weight: M,
    /// Outputs of an expert.
    pub rows: u32,
    /// Rows from one expert to the next.
    pub stride: u32,
    /// (experts, rows).
    pub bias: Option<V>,
    /// Factor of each expert's products, (experts).
    pub scale: Option<V>,
}

/// An expert of all tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedExpert<M = NamedMatrix, V = NamedVector> {
    /// Its products.
    pub ffn: Gated<M, V>,
    /// What its result is multiplied by.
    pub weight: SharedWeight<M, V>,
}

/// What the result of an expert of all tokens is multiplied by.
#[derive(Clone, Debug, PartialEq)]
pub enum SharedWeight<M = NamedMatrix, V = NamedVector> {
    /// A number.
    Number(f32),
    /// The sigmoid of this product with one output.
    Gate(Linear<M, V>),
}

impl<M, V> Experts<M, V> {
    /// Products of all tokens, in the order of use.
    pub(crate) fn linears(&self) -> Vec<&Linear<M, V>> {
        let mut all = vec![&self.router.linear];
        if let Some(shared) = &self.shared {
            all.extend(shared.ffn.linears());
            if let SharedWeight::Gate(gate) = &shared.weight {
                all.push(gate);
            }
        }
        all
    }
}
