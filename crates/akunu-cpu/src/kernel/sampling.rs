//! From logits to a token.
//!
//! Parts share the parts of the logits; what is left after that is a few hundred values, which part 0
//! looks at.

mod argmax;
mod penalty;
mod topk;

pub(crate) use argmax::{Argmax, ArgmaxPartial};
pub(crate) use penalty::repetition_penalty;
pub(crate) use topk::TopKSelect;

use akunu_kernels::kernel::sampling::gumbel_topk;
use akunu_types::params::GumbelTopKParams;

use crate::call::{Call, Place};
use crate::part::Part;

/// Draws a token from the candidates.
pub(crate) fn gumbel_topk(call: &Call, part: &mut Part) {
    if part.index != 0 {
        return;
    }
    let p: GumbelTopKParams = call.params();
    let [values, ids, token, history] = call.bindings();
    let (values, ids) = (values.read(p.k as usize), ids.read::<u32>(p.k as usize));
    let drawn = ids[gumbel_topk::draw(&p, values, ids)];
    store_token(drawn, p.pos, token, history_of(history, p.history_len));
}

/// The history, as long as the params say.
fn history_of<'a>(history: Place<'a>, len: u32) -> &'a mut [u32] {
    // SAFETY: part 0 alone touches it.
    unsafe { history.write(0, len as usize) }
}

/// Stores a chosen token where the next step and the host look for it. Called by part 0 alone.
fn store_token(chosen: u32, pos: u32, token: Place, history: &mut [u32]) {
    // SAFETY: part 0 alone touches it.
    let token = unsafe { token.write::<u32>(0, 1) };
    token[0] = chosen;
    if let Some(slot) = history.get_mut((pos as usize).saturating_add(1)) {
        *slot = chosen;
    }
}
