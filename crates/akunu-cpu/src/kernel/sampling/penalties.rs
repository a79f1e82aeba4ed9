//! Biases and penalties: a few logits of each row change. Parts share the rows.

use akunu_kernels::kernel::sampling::penalties::{self, DRY_MAX, dry_penalty, has_bit, penalised};
use akunu_types::params::{PenaltiesParams, Row, SamplingRule};

use crate::call::Call;
use crate::part::Part;

/// Adds the biases of each row and penalises what came before.
pub(crate) fn penalties(call: &Call, part: &mut Part) {
    let p: PenaltiesParams = call.params();
    let penalties::Buffers {
        logits,
        outputs,
        rows,
        rules,
        history,
        bias_tokens,
        bias_values,
        breakers,
    } = call.buffers();
    let (vocab_size, stride) = (p.vocab_size as usize, p.history_stride as usize);
    let (n_sequences, bias_stride) = (p.n_sequences as usize, p.bias_stride as usize);
    let outputs = outputs.read::<u32>(p.n_rows as usize);
    let rows = rows.read::<Row>(p.row_capacity as usize);
    let rules = rules.read::<SamplingRule>(n_sequences);
    let history = history.read::<u32>(n_sequences * stride);
    let bias_tokens = bias_tokens.read::<u32>(n_sequences * bias_stride);
    let bias_values = bias_values.read::<f32>(n_sequences * bias_stride);
    let words = vocab_size.div_ceil(32);
    let breakers = breakers.read::<u32>(n_sequences * words);
    for at in part.range(outputs.len()) {
        let row = &rows[outputs[at] as usize];
        if !row.is_active() {
            continue;
        }
        let sequence = row.sequence as usize;
        let rule = &rules[sequence];
        let history = &history[sequence * stride..][..stride];
        // SAFETY: `own`: parts have different rows.
        let logits = unsafe { logits.write::<f32>(at * vocab_size, vocab_size) };
        let own = sequence * bias_stride..sequence * bias_stride + bias_stride;
        let biases = bias_tokens[own.clone()].iter().zip(&bias_values[own]);
        for (&id, value) in biases.take(rule.n_biases as usize) {
            if let Some(logit) = logits.get_mut(id as usize) {
                *logit += value;
            }
        }
        let n_written = row.length.saturating_sub(rule.penalty_start);
        if rule.repetition != 1.0 || rule.frequency != 0.0 || rule.presence != 0.0 {
            let n = n_counted(n_written, rule.penalty_window);
            let recent = part.scratch.take::<u32>(n.min(stride));
            last_tokens(history, row, recent);
            recent.sort_unstable();
            penalise(logits, rule, recent);
        }
        if rule.dry_multiplier > 0.0 {
            let n = n_counted(n_written, rule.dry_window);
            let n = n.min(stride).min(DRY_MAX as usize);
            let memory = part.scratch.take::<u32>(3 * n);
            let (recent, memory) = memory.split_at_mut(n);
            last_tokens(history, row, recent);
            let breakers = &breakers[sequence * words..][..words];
            dry(logits, rule, recent, breakers, memory);
        }
    }
}

/// The last `window` of so many tokens; a window of 0 holds all.
fn n_counted(n_tokens: u32, window: u32) -> usize {
    let window = if window == 0 { n_tokens } else { window };
    window.min(n_tokens) as usize
}

/// The last tokens, from the last one backwards.
fn last_tokens(history: &[u32], row: &Row, into: &mut [u32]) {
    for (into, token) in into.iter_mut().zip((0..row.length as usize).rev()) {
        *into = history[token % history.len()];
    }
}

/// Penalises each of the tokens, which are in order, once.
fn penalise(logits: &mut [f32], rule: &SamplingRule, sorted: &[u32]) {
    for same in sorted.chunk_by(|a, b| a == b) {
        if let Some(logit) = logits.get_mut(same[0] as usize) {
            *logit = penalised(*logit, same.len() as u32, rule);
        }
    }
}

/// Penalises tokens that would go on with a repetition. `memory` has room for two numbers a token.
fn dry(
    logits: &mut [f32],
    rule: &SamplingRule,
    recent: &[u32],
    breakers: &[u32],
    memory: &mut [u32],
) {
    let is_known = |id: u32| (id as usize) < logits.len();
    let is_breaker = |&id: &u32| is_known(id) && has_bit(breakers, id);
    let limit = recent.iter().position(is_breaker).unwrap_or(recent.len());
    let (lengths, order) = memory.split_at_mut(recent.len());
    match_lengths(recent, lengths);
    // The tokens that follow a repetition, those of each token together and the longest first.
    let least = rule.dry_allowed.max(1);
    let mut n = 0;
    for k in 1..recent.len() {
        lengths[k] = lengths[k].min(limit as u32);
        let id = recent[k - 1];
        order[n] = k as u32;
        n += usize::from(lengths[k] >= least && is_known(id) && !has_bit(breakers, id));
    }
    let order = &mut order[..n];
    order.sort_unstable_by_key(|&k| {
        let k = k as usize;
        (recent[k - 1], u32::MAX - lengths[k])
    });
    for same in order.chunk_by(|&a, &b| recent[a as usize - 1] == recent[b as usize - 1]) {
        let k = same[0] as usize;
        logits[recent[k - 1] as usize] -= dry_penalty(rule, lengths[k]);
    }
}

/// The Z function: `lengths[k]` tokens from the first on are those from token k on. Each comparison either ends a match
/// or moves the end of the furthest one, so that it takes time in proportion to the tokens however often they repeat.
fn match_lengths(tokens: &[u32], lengths: &mut [u32]) {
    let (mut start, mut end) = (0, 0);
    for k in 1..tokens.len() {
        let known = if k < end {
            (lengths[k - start] as usize).min(end - k)
        } else {
            0
        };
        let more = tokens[known..].iter().zip(&tokens[k + known..]);
        let length = known + more.take_while(|(a, b)| a == b).count();
        lengths[k] = length as u32;
        if k + length > end {
            (start, end) = (k, k + length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::match_lengths;

    #[test]
    fn lengths_are_those_of_comparing_one_by_one() {
        for modulus in [1, 2, 3, 7] {
            let tokens: Vec<u32> = (0..200u32).map(|i| i * i / 3 % modulus).collect();
            let mut found = vec![0; 200];
            match_lengths(&tokens, &mut found);
            for k in 1..200 {
                let pairs = tokens.iter().zip(&tokens[k..]);
                assert_eq!(found[k] as usize, pairs.take_while(|(a, b)| a == b).count());
            }
        }
    }
}
