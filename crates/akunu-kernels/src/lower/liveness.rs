//! Who reads what an operation leaves.

use akunu_program::{Op, Rows, Slice};

/// Whether a later operation overwrites `slice`, which has something of every row, before anything reads it, or the outputs are
/// gathered first: what is left in the rows then is of no use.
pub(super) fn is_overwritten(ops: &[Op], slice: Slice) -> bool {
    let all = (Rows::All, slice);
    for op in ops {
        if may_read(op, slice) {
            return false;
        }
        match op {
            Op::Norm(norm) if (norm.rows, norm.to) == all => return true,
            Op::Product(product) if (product.rows, product.to) == all && !product.add => {
                return true;
            }
            Op::Gate(gate) if gate.to == slice => return true,
            Op::Attend(attend) if attend.to == slice => return true,
            Op::Gather(_) => return true,
            _ => {}
        }
    }
    false
}

/// Whether one of these operations reads `slice`, or is not known not to. What outputs have left is of no use after them.
pub(super) fn is_read_later(ops: &[Op], slice: Slice) -> bool {
    ops.iter().any(|op| may_read(op, slice))
}

/// Whether an operation reads `slice`, or is not known not to.
fn may_read(op: &Op, slice: Slice) -> bool {
    match op {
        Op::Norm(norm) => norm.x == slice,
        Op::AddNorm(norm) => norm.x == slice,
        Op::HeadNorm(norm) => norm.x == slice,
        Op::Product(product) => product.x == slice,
        Op::Gate(gate) => [gate.gate, gate.up].contains(&slice),
        Op::RopeStore(store) => [store.q, store.k, store.v].contains(&slice),
        Op::ScaleQueries(scale) => scale.q == slice,
        Op::Attend(attend) => attend.q == slice,
        Op::Gather(gather) => gather.from == slice,
        Op::Softcap(softcap) => softcap.x == slice,
        Op::Mask(mask) => mask.logits == slice,
        Op::KeepLogits(keep) => keep.logits == slice,
        Op::Choose(choose) => choose.logits == slice,
        Op::Score(_) | Op::Advance => false,
        _ => true,
    }
}
