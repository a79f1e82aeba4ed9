//! The repetition penalty: a few logits of each row change, each once. Parts share the rows.

use akunu_types::params::{RepetitionPenaltyParams, Row, SamplingRule};

use crate::call::Call;
use crate::part::{Part, Scratch};

/// A positive logit of a token that came before is divided by the penalty, a negative one multiplied.
pub(crate) fn repetition_penalty(call: &Call, part: &mut Part) {
    let p: RepetitionPenaltyParams = call.params();
    let [logits, outputs, rows, rules, history] = call.bindings();
    let (vocab_size, stride) = (p.vocab_size as usize, p.history_stride as usize);
    let n_sequences = p.n_sequences as usize;
    let outputs = outputs.read::<u32>(p.n_rows as usize);
    let rows = rows.read::<Row>(p.row_capacity as usize);
    let rules = rules.read::<SamplingRule>(n_sequences);
    let history = history.read::<u32>(n_sequences * stride);
    for at in part.range(outputs.len()) {
        let row = &rows[outputs[at] as usize];
        let sequence = row.sequence as usize;
        if !row.is_active() || rules[sequence].penalty == 1.0 {
            continue;
        }
        let rule = &rules[sequence];
        let history = &history[sequence * stride..][..stride];
        let listed = listed(history, row, rule, part.scratch);
        // SAFETY: parts have different rows.
        let logits = unsafe { logits.write::<f32>(at * vocab_size, vocab_size) };
        penalise(logits, listed, rule.penalty);
    }
}

/// The tokens of a row that are penalised, in ascending order.
fn listed<'m>(
    history: &[u32],
    row: &Row,
    rule: &SamplingRule,
    scratch: &'m mut Scratch,
) -> &'m [u32] {
    let window = match rule.penalty_window {
        0 => usize::MAX,
        window => window as usize,
    };
    let length = row.length as usize;
    let n = window.min(length).min(history.len());
    let listed = scratch.take::<u32>(n);
    for (listed, token) in listed.iter_mut().zip(length - n..) {
        *listed = history[token % history.len()];
    }
    listed.sort_unstable();
    listed
}

/// Penalises each of the listed tokens once.
fn penalise(logits: &mut [f32], listed: &[u32], penalty: f32) {
    for same in listed.chunk_by(|a, b| a == b) {
        if let Some(logit) = logits.get_mut(same[0] as usize) {
            *logit = if *logit > 0.0 {
                *logit / penalty
            } else {
                *logit * penalty
            };
        }
    }
}
