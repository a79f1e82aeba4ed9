//! The mixture of experts as operations.
//!
//! ```text
//! ids, w = route(Wrouter x);   y += Σ w[i] * Wdown[i] (act(Wgate[i] x) * Wup[i] x);   y += shared expert of x
//! ```
//!
//! With separate norms, the router and the experts read norms of the residual stream instead of x, and both sums are normalised
//! before they are added.

use akunu_arch::{ExpertLinear, ExpertNorms, Experts, Gating, Router, SharedExpert, SharedWeight};
use akunu_program::{self as program, ExpertMatrix, Op, Routing, Rows, Slice, Weights, op};

use super::{Builder, Norm, Of, RouterFault, Sum, gate_function};
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
        if let Some(norms) = &experts.norms {
            return self.normed_experts(experts, norms, x, sum, fault);
        }
        self.routed(experts, [x, x], sum, fault);
        if let Some(shared) = &experts.shared {
            self.shared_expert(shared, x, sum.to);
        }
    }

    /// The chosen experts and the shared one, each with separate norms.
    fn normed_experts(
        &mut self,
        experts: &Experts<Weight, Slice>,
        norms: &ExpertNorms<Slice>,
        x: Slice,
        sum: Sum,
        fault: RouterFault,
    ) {
        let vectors = [(); 4].map(|()| self.scratch.take(self.dim));
        let [for_router, for_experts, routed, of_all] = vectors.each_ref().map(|v| v.slice());
        let (h, rows) = (self.stream.slice(), (Rows::All, self.dim));
        self.norm(rows, &norms.router, h, for_router);
        self.norm(rows, &norms.input, h, for_experts);
        let own = Sum {
            to: routed,
            add: false,
        };
        self.routed(experts, [for_router, for_experts], own, fault);
        let added = |x: Slice, norm: &Norm| {
            Op::AddNorm(op::AddNorm {
                x,
                weight: norm.weight,
                to: sum.to,
                dim: rows.1,
                eps: norm.eps,
            })
        };
        match (&experts.shared, sum.add) {
            (Some(shared), add) => {
                let [activated, _gate, _up] = self.gate(&shared.ffn, x);
                let down = Of::all(activated.slice(), "shared down");
                self.products(down, &[(&shared.ffn.down, of_all)]);
                match add {
                    true => self.ops.push(added(of_all, &norms.shared_output)),
                    false => self.norm(rows, &norms.shared_output, of_all, sum.to),
                }
                self.ops.push(added(routed, &norms.output));
            }
            (None, true) => self.ops.push(added(routed, &norms.output)),
            (None, false) => self.norm(rows, &norms.output, routed, sum.to),
        }
        // Until here all of them live: devices may read them later than they are used.
        drop(vectors);
    }

    /// The sum of the experts that the router chooses, which read separate vectors.
    fn routed(
        &mut self,
        experts: &Experts<Weight, Slice>,
        [for_router, x]: [Slice; 2],
        sum: Sum,
        fault: RouterFault,
    ) {
        let (count, used, dim) = (experts.count, experts.used, self.dim);
        let vectors = [count, used, used, used * experts.width, used * dim];
        let vectors = vectors.map(|width| self.scratch.take(width));
        let [logits, ids, weights, activated, results] = vectors.each_ref().map(|v| v.slice());
        self.products(
            Of::all(for_router, "router"),
            &[(&experts.router.linear, logits)],
        );
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
            rows: Rows::All,
            x: results,
            weights: Weights::Numbers(weights),
            n_used: used,
            width: dim,
            to: sum.to,
            add: sum.add,
        }));
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
            rows: Rows::All,
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

/// The matrices as operations name them.
pub(super) fn matrix(linear: &ExpertLinear<Weight, Slice>) -> ExpertMatrix {
    ExpertMatrix {
        matrix: linear.weight.matrix,
        rows: linear.rows,
        stride: linear.stride,
        bias: linear.bias,
        scale: linear.scale,
    }
}
