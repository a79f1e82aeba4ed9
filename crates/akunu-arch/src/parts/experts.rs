//! The mixtures of experts that decoders have, with the names of their weights.

mod read;

use super::{Parts, in_layer, linear};
use crate::ffn::{
    Activation, ExpertLinear, ExpertNorms, Experts, Ffn, Gated, Gating, Groups, Router,
    SharedExpert, SharedWeight,
};
use crate::layer::Norm;
use crate::linear::Linear;
use crate::weights::{Change, NamedMatrix, NamedVector};

/// How a router chooses where the file does not say.
#[derive(Clone, Copy)]
pub(crate) struct Routing {
    pub gating: Gating,
    pub normalise: bool,
}

/// The sizes of a mixture of experts, and the parts of these sizes.
pub(crate) struct ExpertParts<'a> {
    parts: &'a Parts<'a>,
    routing: Routing,
    count: u32,
    /// Experts of a token, in each layer.
    used: Vec<u32>,
    /// Elements between the products of an expert, in each layer.
    width: Vec<u32>,
    /// Width of the expert of all tokens, in each layer; 0 for none.
    shared_width: Vec<u32>,
    /// Whether each layer has no experts.
    are_dense: Vec<bool>,
    groups: Option<Groups>,
    scale: f32,
}

impl<'a> ExpertParts<'a> {
    /// A feed-forward block: the experts, or one with a gate in the layers that have none.
    pub fn ffn(&self, at: usize, experts: impl Fn(Experts) -> Experts) -> Ffn {
        match self.is_dense(at) {
            true => Ffn::Gated(self.parts.gated(at, Activation::Silu)),
            false => Ffn::Experts(experts(self.experts(at))),
        }
    }

    /// Whether a layer has no experts.
    pub fn is_dense(&self, at: usize) -> bool {
        self.are_dense[at]
    }

    /// The same with an expert of all tokens, as wide as the others, in layers that the file says nothing of.
    pub fn with_shared(mut self) -> ExpertParts<'a> {
        for (shared, width) in self.shared_width.iter_mut().zip(&self.width) {
            *shared = if *shared == 0 { *width } else { *shared };
        }
        self
    }

    /// The same where some files have a bias for the choice.
    pub fn ffn_with_bias_found(&self, at: usize) -> Ffn {
        let name = selection_bias(at);
        let has_bias = self.parts.file.store.tensor(&name).is_some();
        self.ffn(at, |experts| match has_bias {
            true => experts.with_selection_bias(at),
            false => experts,
        })
    }

    /// Experts with a SiLU gate, and one of all tokens if the file has one.
    fn experts(&self, at: usize) -> Experts {
        let (dim, width) = (self.parts.dim, self.width[at]);
        let [gate, up] = self.gate_and_up(at);
        Experts {
            count: self.count,
            used: self.used[at],
            width,
            activation: Activation::Silu,
            router: Router {
                linear: linear(in_layer(at, "ffn.router"), self.count, dim),
                gating: self.routing.gating,
                bias: None,
                groups: self.groups,
                normalise: self.routing.normalise,
                scale: self.scale,
            },
            gate,
            up,
            down: self.linear(at, "down", [dim, width]),
            shared: (self.shared_width[at] > 0).then(|| SharedExpert {
                ffn: self.parts.shared(at, self.shared_width[at]),
                weight: SharedWeight::Number(1.0),
            }),
            norms: None,
        }
    }

    /// Two stacks of matrices, or the halves of one.
    fn gate_and_up(&self, at: usize) -> [ExpertLinear; 2] {
        let (dim, width) = (self.parts.dim, self.width[at]);
        let both = self.linear(at, "gate_up", [2 * width, dim]);
        if self.parts.file.store.tensor(&both.weight.name).is_none() {
            return ["gate", "up"].map(|part| self.linear(at, part, [width, dim]));
        }
        [0, width].map(|first| ExpertLinear {
            weight: both.weight.part(first, both.weight.rows - width),
            rows: width,
            ..both.clone()
        })
    }

    fn linear(&self, at: usize, part: &str, [rows, cols]: [u32; 2]) -> ExpertLinear {
        let name = in_layer(at, &format!("ffn.experts.{part}.weight"));
        ExpertLinear {
            weight: NamedMatrix::stacked(name, self.count, [rows, cols]),
            rows,
            stride: rows,
            bias: None,
            scale: None,
        }
    }
}

impl Parts<'_> {
    /// The expert of all tokens.
    pub(crate) fn shared(&self, at: usize, width: u32) -> Gated {
        let dim = self.dim;
        let both = in_layer(at, "ffn.shared.gate_up");
        let both = NamedMatrix::new(format!("{both}.weight"), 2 * width, dim);
        let linear =
            |part, rows, cols| linear(in_layer(at, &format!("ffn.shared.{part}")), rows, cols);
        let [gate, up] = match self.file.store.tensor(&both.name) {
            None => [linear("gate", width, dim), linear("up", width, dim)],
            Some(_) => [0, width].map(|first| Linear {
                weight: both.part(first, width),
                bias: None,
            }),
        };
        Gated {
            width,
            activation: Activation::Silu,
            gate,
            up,
            down: linear("down", dim, width),
        }
    }
}

/// The name of the bias for the choice.
fn selection_bias(at: usize) -> String {
    in_layer(at, "ffn.selection_bias")
}

impl Experts {
    /// The same with a bias for the choice.
    pub(crate) fn with_selection_bias(mut self, at: usize) -> Experts {
        self.router.bias = Some(NamedVector::new(selection_bias(at), 1, self.count));
        self
    }

    /// The same where results are multiplied by a number if there is an expert of all tokens, and the result of that, too.
    pub(crate) fn with_share(mut self, share: f32) -> Experts {
        if let Some(shared) = &mut self.shared {
            shared.weight = SharedWeight::Number(share);
            self.router.scale *= share;
        }
        self
    }

    /// The same as `transformers` stores gpt-oss: gate and up are alternate rows of one tensor, and matrices that are not
    /// quantised are transposed.
    pub(crate) fn with_rows_in_turn(mut self, is_transposed: bool) -> Experts {
        let (both, down) = (self.gate.weight.clone(), self.down.weight.clone());
        let whole = NamedMatrix::stacked(both.name, self.count, [2 * self.width, both.cols]);
        let stored = |matrix: NamedMatrix| match is_transposed {
            true => matrix.transposed(),
            false => matrix,
        };
        for (linear, first) in [(&mut self.gate, 0), (&mut self.up, 1)] {
            linear.weight = stored(whole.every(first, 2));
            linear.stride = self.width;
        }
        self.down.weight = stored(down);
        self
    }

    /// The same with biases of the router and of the products of each expert.
    pub(crate) fn with_biases(mut self) -> Experts {
        self.router.linear = self.router.linear.with_bias();
        let count = self.count;
        for linear in [&mut self.gate, &mut self.up, &mut self.down] {
            let module = linear.weight.name.trim_end_matches(".weight");
            let bias = NamedVector::new(format!("{module}.bias"), count, linear.rows);
            linear.bias = Some(NamedVector {
                every: [linear.weight.first, linear.weight.step],
                ..bias
            });
        }
        self
    }

    /// The same as a layer of Gemma 4 has it: next to the plain block, with its own norms and a factor for each expert.
    pub(crate) fn beside_gated(mut self, parts: &Parts, at: usize) -> Experts {
        let norm = |name: &str| parts.norm(in_layer(at, name));
        let router = norm("ffn.router_norm");
        let change = Change::Times(1.0 / (parts.dim as f32).sqrt());
        self.norms = Some(ExpertNorms {
            router: Norm {
                weight: NamedVector {
                    change,
                    ..router.weight
                },
                ..router
            },
            input: norm("ffn.experts_norm"),
            output: norm("ffn.experts_output_norm"),
            shared_output: norm("ffn.shared_output_norm"),
        });
        self.shared = Some(SharedExpert {
            ffn: parts.gated(at, Activation::Gelu),
            weight: SharedWeight::Number(1.0),
        });
        let scale = in_layer(at, "ffn.experts.down.scale");
        self.down.scale = Some(NamedVector::new(scale, 1, self.count));
        self.activation = Activation::Gelu;
        self
    }

    /// The same with a gate of the expert of all tokens.
    pub(crate) fn with_shared_gate(mut self, at: usize, dim: u32) -> Experts {
        if let Some(shared) = &mut self.shared {
            let gate = linear(in_layer(at, "ffn.shared_gate"), 1, dim);
            shared.weight = SharedWeight::Gate(gate);
        }
        self
    }
}
