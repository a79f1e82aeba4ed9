//! Layers with a state.

use akunu_program::{ConvForm, Op, StatePool, op};

use super::{DIM, at, buffer};

/// Every operation that has a state.
pub fn of_states() -> Vec<Op> {
    let state = StatePool {
        blocks: buffer(40),
        n_blocks: 3,
    };
    vec![Op::ShortConv(op::ShortConv {
        form: ConvForm::Gated,
        x: at(41),
        stride: 3 * DIM,
        width: DIM,
        taps: 3,
        weight: at(42),
        bias: None,
        to: at(43),
        state,
    })]
}
