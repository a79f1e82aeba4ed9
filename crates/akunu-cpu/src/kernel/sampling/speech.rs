//! What may not follow in a transcript. Parts share the rows.

use akunu_kernels::kernel::sampling::speech_rules::{self, Allowed, Said};
use akunu_types::params::{Row, SamplingRule, SpeechRulesParams};

use super::argmax::{first_largest, largest};
use super::bitmask::forbid;
use super::field::Field;
use crate::call::Call;
use crate::isa::Level;
use crate::part::Part;

/// Runs the kernel.
pub(crate) fn speech_rules(call: &Call, part: &mut Part) {
    let p: SpeechRulesParams = call.params();
    let speech_rules::Buffers {
        logits,
        masks,
        history,
        outputs,
        rows,
        rules,
    } = call.buffers();
    let (n_rows, n) = (p.n_rows as usize, p.vocab_size as usize);
    let (n_sequences, stride) = (p.n_sequences as usize, p.history_stride as usize);
    let masks = masks.read::<u32>(2 * n.div_ceil(32));
    let history = history.read::<u32>(n_sequences * stride);
    let outputs = outputs.read::<u32>(n_rows);
    let rows = rows.read::<Row>(p.row_capacity as usize);
    let rules = rules.read::<SamplingRule>(n_sequences);
    for at in part.range(n_rows) {
        let row = &rows[outputs[at] as usize];
        if !row.is_active() {
            continue;
        }
        let sequence = row.sequence as usize;
        let rule = &rules[sequence];
        let said = Said::of(row, rule, &history[sequence * stride..][..stride]);
        let (later, first) = masks.split_at(n.div_ceil(32));
        let mask = if said.is_empty() { first } else { later };
        let allowed = Allowed::after(&said, rule.has_times != 0, &p);
        let list = part.scratch.take::<u64>(n + 1);
        // SAFETY: `own`: parts have different rows.
        unsafe {
            let logits = logits.write::<f32>(at * n, n);
            for (logits, &mask) in logits.chunks_mut(32).zip(mask) {
                forbid(logits, mask);
            }
            let (text, times) = logits.split_at_mut(n.min(p.first_time as usize));
            keep(&allowed, (&mut *text, &mut *times));
            if log_sum_exp(call.level, times, list) > largest(call.level, text) {
                text.fill(f32::NEG_INFINITY);
            }
        }
    }
}

/// Forbids text and times that may not follow.
fn keep(allowed: &Allowed, (text, times): (&mut [f32], &mut [f32])) {
    let first_time = text.len() as u32;
    let n_text = allowed.text.min(first_time) as usize;
    text[..n_text].fill(f32::NEG_INFINITY);
    let place = |time: u32| (time.saturating_sub(first_time) as usize).min(times.len());
    let [first, end] = [allowed.times.start, allowed.times.end].map(place);
    times[end..].fill(f32::NEG_INFINITY);
    times[..first].fill(f32::NEG_INFINITY);
}

/// The logarithm of the sum of the weights of these logits; `list` has room for all of them.
fn log_sum_exp(level: Level, logits: &[f32], list: &mut [u64]) -> f32 {
    match first_largest(level, logits) {
        Some(place) if logits[place] > f32::NEG_INFINITY => {
            logits[place] + Field::new(level, logits, place, list).log_sum()
        }
        _ => f32::NEG_INFINITY,
    }
}
