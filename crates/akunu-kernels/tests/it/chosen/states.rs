//! Layers with a state.

use akunu_program::{ConvForm, GateFunction, GateOrder, HeadOrder, Op, StatePool, op};

use super::{DIM, at, buffer};

/// Every operation that has a state.
pub fn of_states() -> Vec<Op> {
    let state = StatePool {
        blocks: buffer(40),
        n_blocks: 3,
    };
    let conv = Op::ShortConv(op::ShortConv {
        form: ConvForm::Gated,
        x: at(41),
        stride: 3 * DIM,
        width: DIM,
        taps: 3,
        weight: at(42),
        bias: None,
        to: at(43),
        state,
    });
    let rule = Op::DeltaRule(op::DeltaRule {
        qkv: at(41),
        beta: at(44),
        alpha: at(45),
        decay: at(46),
        dt_bias: at(47),
        key_heads: 1,
        value_heads: 2,
        head_dim: 128,
        order: HeadOrder::Tiled,
        eps: 1e-6,
        to: at(48),
        state,
    });
    let ssd = Op::Ssd(op::Ssd {
        xbc: at(41),
        dt: at(44),
        dt_stride: 2,
        dt_bias: at(45),
        a: at(46),
        d: at(47),
        heads: 2,
        head_dim: 64,
        groups: 1,
        state_size: 128,
        to: at(48),
        state,
    });
    let norm = Op::GatedNorm(op::GatedNorm {
        x: at(48),
        gate: at(49),
        gate_stride: DIM,
        order: GateOrder::AfterNorm,
        weight: at(42),
        own_weights: false,
        pieces: 2,
        width: 128,
        eps: 1e-6,
        to: at(50),
    });
    let split = Op::SplitHeads(op::SplitHeads {
        x: at(51),
        n_heads: 4,
        head_dim: 128,
        first: at(52),
        second: at(53),
    });
    let gate = Op::Gate(op::Gate {
        activation: GateFunction::Sigmoid,
        gate: at(53),
        up: at(52),
        to: at(54),
        width: DIM,
    });
    vec![conv, rule, ssd, norm, split, gate]
}
