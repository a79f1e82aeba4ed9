//! Mixers with a state, and the gate of attention.

use akunu_arch::{
    Attention, BlockNorms, DeltaNet, HeadOrder, Linear, ShortConv, Ssd, SsdGate, Taps,
};
use akunu_program::op::StatePool;
use akunu_program::{GateFunction, Op, Slice, op};

use super::scratch::Vector;
use super::{Builder, Of};
use crate::weights::Weight;

/// The states of one layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerStates {
    /// The inputs of its convolution.
    pub inputs: StatePool,
    /// The memory of all tokens; its blocks are empty in a layer that only has a convolution.
    pub memory: StatePool,
}

impl LayerStates {
    /// All of it.
    pub fn pools(&self) -> [StatePool; 2] {
        [self.inputs, self.memory]
    }
}

/// The input of a convolution, (rows, stride), and its form.
struct Convolved {
    x: Slice,
    stride: u32,
    width: u32,
    form: op::ConvForm,
}

impl Builder<'_> {
    /// `y = W_out (c * conv(b * x))`, with b, c and x side by side.
    pub(super) fn short_conv(
        &mut self,
        conv: &ShortConv<Weight, Slice>,
        norms: &BlockNorms<Slice>,
        states: &LayerStates,
    ) {
        let x = self.input(norms);
        let (width, stride) = (conv.width, 3 * conv.width);
        let input = self.scratch.take(stride);
        self.products(Of::all(x, "b, c, x"), &[(&conv.input, input.slice())]);
        let of = Convolved {
            x: input.slice(),
            stride,
            width,
            form: op::ConvForm::Gated,
        };
        let to = self.convolve(&conv.conv, &of, states.inputs);
        self.add_to_stream(&conv.output, to.slice(), norms, "convolution output");
    }

    /// The gated delta rule: a convolution of queries, keys and values, the rule, a norm with a gate.
    pub(super) fn delta_net(
        &mut self,
        net: &DeltaNet<Weight, Slice>,
        norms: &BlockNorms<Slice>,
        states: &LayerStates,
    ) {
        let x = self.input(norms);
        let (width, value_dim) = (net.qkv_dim(), net.value_dim());
        let widths = [width, value_dim, net.value_heads, net.value_heads];
        let vectors = widths.map(|width| self.scratch.take(width));
        let [qkv, gate, beta, alpha] = vectors.each_ref().map(Vector::slice);
        let products: [(&Linear<Weight, Slice>, Slice); 4] = [
            (&net.qkv, qkv),
            (&net.gate, gate),
            (&net.beta, beta),
            (&net.alpha, alpha),
        ];
        for products in products.chunks(2) {
            self.products(Of::all(x, "delta rule"), products);
        }
        let of = Convolved {
            x: qkv,
            stride: width,
            width,
            form: op::ConvForm::Silu,
        };
        let convolved = self.convolve(&net.conv, &of, states.inputs);
        let [found, to] = [(); 2].map(|()| self.scratch.take(value_dim));
        self.ops.push(Op::DeltaRule(op::DeltaRule {
            qkv: convolved.slice(),
            beta,
            alpha,
            decay: net.decay,
            dt_bias: net.dt_bias,
            key_heads: net.key_heads,
            value_heads: net.value_heads,
            head_dim: net.head_dim,
            order: match net.order {
                HeadOrder::Tiled => op::HeadOrder::Tiled,
                HeadOrder::Grouped => op::HeadOrder::Grouped,
            },
            eps: net.eps,
            to: found.slice(),
            state: states.memory,
        }));
        self.ops.push(Op::GatedNorm(op::GatedNorm {
            x: found.slice(),
            gate,
            gate_stride: value_dim,
            order: op::GateOrder::AfterNorm,
            weight: net.norm,
            own_weights: false,
            pieces: net.value_heads,
            width: net.head_dim,
            eps: net.eps,
            to: to.slice(),
        }));
        self.add_to_stream(&net.output, to.slice(), norms, "delta rule output");
    }

    /// Mamba-2: a convolution of x, B and C, the states, a norm with a gate.
    pub(super) fn ssd(
        &mut self,
        mamba: &Ssd<Weight, Slice>,
        norms: &BlockNorms<Slice>,
        (x, states): (Slice, &LayerStates),
    ) {
        let (width, xbc, stride) = (mamba.width(), mamba.xbc_dim(), mamba.input_dim());
        let input = self.scratch.take(stride);
        let all = input.slice();
        self.products(Of::all(x, "gate, x, B, C, dt"), &[(&mamba.input, all)]);
        let behind = |elements: u32| Slice {
            offset: all.offset + size_of::<f32>() * elements as usize,
            ..all
        };
        let of = Convolved {
            x: behind(mamba.before_xbc()),
            stride,
            width: xbc,
            form: op::ConvForm::Silu,
        };
        let convolved = self.convolve(&mamba.conv, &of, states.inputs);
        let [found, to] = [(); 2].map(|()| self.scratch.take(width));
        self.ops.push(Op::Ssd(op::Ssd {
            xbc: convolved.slice(),
            dt: behind(mamba.before_xbc() + xbc),
            dt_stride: stride,
            dt_bias: mamba.dt_bias,
            a: mamba.a,
            d: mamba.d,
            heads: mamba.heads,
            head_dim: mamba.head_dim,
            groups: mamba.groups,
            state_size: mamba.state_size,
            to: found.slice(),
            state: states.memory,
        }));
        let _gate = match &mamba.gate {
            SsdGate::Normed(weight) => {
                self.ops.push(Op::GatedNorm(op::GatedNorm {
                    x: found.slice(),
                    gate: all,
                    gate_stride: stride,
                    order: op::GateOrder::BeforeNorm,
                    weight: *weight,
                    own_weights: true,
                    pieces: mamba.groups,
                    width: width / mamba.groups,
                    eps: mamba.eps,
                    to: to.slice(),
                }));
                None
            }
            SsdGate::Alone(linear) => {
                let gate = self.scratch.take(width);
                self.products(Of::all(x, "gate"), &[(linear, gate.slice())]);
                self.ops.push(Op::Gate(op::Gate {
                    activation: GateFunction::Silu,
                    gate: gate.slice(),
                    up: found.slice(),
                    to: to.slice(),
                    width,
                }));
                Some(gate)
            }
        };
        self.add_to_stream(&mamba.output, to.slice(), norms, "Mamba-2 output");
    }

    fn convolve(&mut self, taps: &Taps<Slice>, of: &Convolved, state: StatePool) -> Vector {
        let to = self.scratch.take(of.width);
        self.ops.push(Op::ShortConv(op::ShortConv {
            form: of.form,
            x: of.x,
            stride: of.stride,
            width: of.width,
            taps: taps.count,
            weight: taps.weight,
            bias: taps.bias,
            to: to.slice(),
            state,
        }));
        to
    }

    /// Queries and the gate of the result, whose heads lie behind theirs.
    pub(super) fn split_queries(
        &mut self,
        attention: &Attention<Weight, Slice>,
        x: Slice,
        q: Slice,
    ) -> Vector {
        let gate = self.scratch.take(attention.q_dim());
        self.ops.push(Op::SplitHeads(op::SplitHeads {
            x,
            n_heads: attention.heads,
            head_dim: attention.head_dim,
            first: q,
            second: gate.slice(),
        }));
        gate
    }

    /// The result of attention, times the sigmoid of its gate.
    pub(super) fn gated_result(&mut self, gate: &Vector, found: Slice, width: u32) -> Vector {
        let to = self.scratch.take(width);
        self.ops.push(Op::Gate(op::Gate {
            activation: GateFunction::Sigmoid,
            gate: gate.slice(),
            up: found,
            to: to.slice(),
            width,
        }));
        to
    }
}
