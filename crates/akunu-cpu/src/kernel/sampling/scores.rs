//! The record of how probable chosen tokens were. Parts share the rows.

use akunu_kernels::kernel::sampling::candidates::Candidates;
use akunu_kernels::kernel::sampling::token_scores::{self, NO_TOKEN};
use akunu_types::params::{Row, SamplingRule, TokenScoresParams};

use super::argmax::first_largest;
use super::field::Field;
use crate::call::Call;
use crate::isa::Level;
use crate::part::Part;

/// Runs the kernel.
pub(crate) fn token_scores(call: &Call, part: &mut Part) {
    let p: TokenScoresParams = call.params();
    let token_scores::Buffers {
        logits,
        tokens,
        scores,
        best_tokens,
        outputs,
        rows,
        rules,
    } = call.buffers();
    let (n_rows, n) = (p.n_rows as usize, p.vocab_size as usize);
    let max_best = p.max_best as usize;
    let logits = logits.read::<f32>(n_rows * n);
    let tokens = tokens.read::<u32>(n_rows);
    let outputs = outputs.read::<u32>(n_rows);
    let rows = rows.read::<Row>(p.row_capacity as usize);
    let rules = rules.read::<SamplingRule>(p.n_sequences as usize);
    for at in part.range(n_rows) {
        let row = &rows[outputs[at] as usize];
        if !row.is_active() || rules[row.sequence as usize].n_scores == 0 {
            continue;
        }
        let n_best = rules[row.sequence as usize].n_scores as usize - 1;
        let n_best = n_best.min(max_best).min(n);
        let logits = &logits[at * n..][..n];
        let place = (row.step % p.max_steps * p.record_stride) as usize + at;
        let list = part.scratch.take::<u64>(n + 1);
        // SAFETY: `own`: each row of logits has a place of its own in the record.
        unsafe {
            let scores = scores.write::<f32>(place * (max_best + 1), n_best + 1);
            let best_tokens = best_tokens.write::<u32>(place * max_best, n_best);
            record(
                call.level,
                logits,
                (tokens[at], list),
                (scores, best_tokens),
            );
        }
    }
}

/// The scores of a token and of the best ones.
fn record(
    level: Level,
    logits: &[f32],
    (token, list): (u32, &mut [u64]),
    (scores, best_tokens): (&mut [f32], &mut [u32]),
) {
    let place = first_largest(level, logits).unwrap_or(0);
    let mut field = Field::new(level, logits, place, list);
    let log_sum = field.log_sum();
    let score = |token: u32| logits[token as usize] - logits[place] - log_sum;
    scores[0] = score(token);
    scores[1..].fill(f32::NEG_INFINITY);
    best_tokens.fill(NO_TOKEN);
    if best_tokens.is_empty() {
        return;
    }
    field.keep_best(best_tokens.len() as u32);
    for (rank, token) in field.sorted().take(best_tokens.len()).enumerate() {
        best_tokens[rank] = token;
        scores[1 + rank] = score(token);
    }
}
