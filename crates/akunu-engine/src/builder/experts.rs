//! The mixture of experts as operations.
//!
//! ```text
//! ids, w = route(Wrouter x);   y += Σ w[i] * Wdown[i] (act(Wgate[i] x) * Wup[i] x);   y += shared expert of x
//! ```

use akunu_arch::{ExpertLinear, Experts, Gating, Router, SharedExpert, SharedWeight};
use akunu_program::{self as program, ExpertMatrix, Op, Routing, Slice, Weights, op};

use super::{Builder, Of, RouterFault, Sum, gate_function};
use crate::weights::Weight;

impl Builder<'_> {
    /// The experts of each row of x.
    pub(super) fn experts(
        &mut self,
        experts: &Experts<Weight, Slice>,
        x: Slice,
        sum: Sum,
        fault: RouterFault,
    ) {
        let (count, used, dim) = (experts.count, experts.used, self.dim);
        let vectors = [count, used, used, used * experts.width, used * dim];
        let vectors = vectors.map(|width| self.scratch.take(width));
        let [logits, ids, weights, activated, results] = vectors.each_ref().map(|v| v.slice());
        self.products(Of::all(x, "router"), &[(&experts.router.linear, logits)]);
        self.ops.push(Op::Route(op::Route {
            logits,
            bias: experts.router.bias,
            routing: routing(&experts.router, [count, used]),
            ids,
            weights,
            layer: fault.layer,
            fault: fault.place,
        }));
        self.ops.push(Op::ExpertGate(op::ExpertGate {
            activation: gate_function(experts.activation),
            gate: matrix(&experts.gate),
            up: matrix(&experts.up),
            experts: [count, used],
            x,
            ids,
            to: activated,
        }));
        self.ops.push(Op::ExpertDown(op::ExpertDown {
            weight: matrix(&experts.down),
            experts: [count, used],
            x: activated,
            ids,
            to: results,
        }));
        self.ops.push(Op::Weigh(op::Weigh {
            x: results,
            weights: Weights::Numbers(weights),
            n_used: used,
            width: dim,
            to: sum.to,
            add: sum.add,
        }));
        if let Some(shared) = &experts.shared {
            self.shared_expert(shared, x, sum.to);
        }
        // Until here all of them live: devices may read them later than they are used.
        drop(vectors);
    }

    /// Adds the result of an expert that all rows have.
    fn shared_expert(&mut self, shared: &SharedExpert<Weight, Slice>, x: Slice, to: Slice) {
        let [activated, _gate, _up] = self.gate(&shared.ffn, x);
        let down = Of::all(activated.slice(), "shared down");
        let [logit, result] = [1, self.dim].map(|width| self.scratch.take(width));
        let weights = match &shared.weight {
            SharedWeight::Number(1.0) => {
                let added = Of { add: true, ..down };
                return self.products(added, &[(&shared.ffn.down, to)]);
            }
            SharedWeight::Number(number) => Weights::One(*number),
            SharedWeight::Gate(gate) => {
                self.products(Of::all(x, "shared gate"), &[(gate, logit.slice())]);
                Weights::Sigmoids(logit.slice())
            }
        };
        self.products(down, &[(&shared.ffn.down, result.slice())]);
        self.ops.push(Op::Weigh(op::Weigh {
            x: result.slice(),
            weights,
            n_used: 1,
            width: self.dim,
            to,
            add: true,
        }));
    }
}

fn routing(router: &Router<Weight, Slice>, [n_experts, n_used]: [u32; 2]) -> Routing {
    Routing {
        n_experts,
        n_used,
        gating: match router.gating {
            Gating::Softmax => program::Gating::Softmax,
            Gating::Sigmoid => program::Gating::Sigmoid,
            Gating::SoftmaxOfChosen => program::Gating::SoftmaxOfChosen,
            Gating::SqrtSoftplus => program::Gating::SqrtSoftplus,
        },
        groups: router.groups.map(|groups| [groups.count, groups.used]),
        normalise: router.normalise,
        scale: router.scale,
    }
}

fn matrix(linear: &ExpertLinear<Weight, Slice>) -> ExpertMatrix {
    ExpertMatrix {
        matrix: linear.weight.matrix,
        rows: linear.rows,
        stride: linear.stride,
        bias: linear.bias,
        scale: linear.scale,
    }
}
