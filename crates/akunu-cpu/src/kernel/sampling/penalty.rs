//! The repetition penalty: a few logits change, each once.

use akunu_kernels::Constant;
use akunu_types::params::RepetitionPenaltyParams;

use crate::call::Call;
use crate::part::Part;

/// A positive logit of a token that came before is divided by the penalty, a negative one multiplied.
pub(crate) fn repetition_penalty(call: &Call, part: &mut Part) {
    if part.index != 0 {
        return;
    }
    let p: RepetitionPenaltyParams = call.params();
    let [logits, history] = call.bindings();
    let n = p.n_tokens as usize;
    let window = call.args.constants.u32(Constant::PenaltyWindow);
    let window = window.map_or(n, |window| n.min(window as usize));
    let listed = part.scratch.take::<u32>(window);
    listed.copy_from_slice(&history.read::<u32>(n)[n - window..]);
    listed.sort_unstable();
    // SAFETY: part 0 alone touches the logits.
    let logits = unsafe { logits.write::<f32>(0, p.vocab_size as usize) };
    let mut before = None;
    for &id in listed.iter() {
        if before.replace(id) == Some(id) {
            continue;
        }
        if let Some(logit) = logits.get_mut(id as usize) {
            *logit = if *logit > 0.0 {
                *logit / p.penalty
            } else {
                *logit * p.penalty
            };
        }
    }
}
