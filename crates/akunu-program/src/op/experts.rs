//! The mixture of experts: which experts a row uses, their products, and the sum of their results.
//!
//! The results of a row's experts lie side by side, (rows, used, width).

use crate::activation::GateFunction;
use crate::buffer::Slice;
use crate::matrix::Matrix;
use crate::step::Rows;

/// What becomes of the logits of a router before the best are chosen.
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

/// How experts are chosen and weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Routing {
    /// Experts.
    pub n_experts: u32,
    /// Experts of a row.
    pub n_used: u32,
    /// What becomes of the logits.
    pub gating: Gating,
    /// Groups of experts that lie one behind the other, of which those with the largest sums of their two best numbers are
    /// chosen first: how many there are, and how many are used.
    pub groups: Option<[u32; 2]>,
    /// Whether the weights of a row are divided by their sum.
    pub normalise: bool,
    /// Factor of the weights.
    pub scale: f32,
}

/// Chooses the experts of each row, and their weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Route {
    /// The logits of the router, (rows, n_experts).
    pub logits: Slice,
    /// Added to what the experts are chosen by, (n_experts).
    pub bias: Option<Slice>,
    /// How they are chosen.
    pub routing: Routing,
    /// The chosen experts, (rows, n_used) of u32.
    pub ids: Slice,
    /// Their weights, (rows, n_used).
    pub weights: Slice,
    /// The layer.
    pub layer: u32,
    /// A u32 that becomes `layer + 1` if logits are not finite, unless it is more than 0.
    pub fault: Slice,
}

/// The matrices of all experts, of one format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertMatrix {
    /// All rows, from the first expert's first to the last expert's last.
    pub matrix: Matrix,
    /// Outputs of an expert.
    pub rows: u32,
    /// Rows from one expert to the next, at least as many.
    pub stride: u32,
    /// (n_experts, rows).
    pub bias: Option<Slice>,
    /// Factor of each expert's products, (n_experts).
    pub scale: Option<Slice>,
}

/// `to[r][i] = activation(gate[e] · x[r], up[e] · x[r])`, `e = ids[r][i]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertGate {
    /// The activation.
    pub activation: GateFunction,
    /// The product that is activated.
    pub gate: ExpertMatrix,
    /// The product that it is multiplied by; of the gate's format and stride, and with a bias and a scale if the gate has them.
    pub up: ExpertMatrix,
    /// How many experts there are, and how many a row uses.
    pub experts: [u32; 2],
    /// (rows, inputs).
    pub x: Slice,
    /// (rows, used).
    pub ids: Slice,
    /// (rows, used, outputs).
    pub to: Slice,
}

/// `to[r][i] = weight[e] · x[r][i]`, `e = ids[r][i]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertDown {
    /// The weights.
    pub weight: ExpertMatrix,
    /// How many experts there are, and how many a row uses.
    pub experts: [u32; 2],
    /// (rows, used, inputs).
    pub x: Slice,
    /// (rows, used).
    pub ids: Slice,
    /// (rows, used, outputs).
    pub to: Slice,
}

/// What results are weighed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weights {
    /// Numbers, (rows, used).
    Numbers(Slice),
    /// The sigmoids of these numbers, (rows, used).
    Sigmoids(Slice),
    /// One number for all.
    One(f32),
}

/// `to[r] = Σ_i weights[r][i] * x[r][i]`, or `to[r] += …`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weigh {
    /// Which rows.
    pub rows: Rows,
    /// (rows, used, width).
    pub x: Slice,
    /// The weights.
    pub weights: Weights,
    /// Results of a row.
    pub n_used: u32,
    /// Elements of a result.
    pub width: u32,
    /// (rows, width).
    pub to: Slice,
    /// Whether the sum is added to what is there.
    pub add: bool,
}
