//! The draw of a token from the whole vocabulary, by rules. Parts share the rows.

use akunu_kernels::kernel::sampling::candidates::choose;
use akunu_kernels::kernel::sampling::draw;
use akunu_types::params::{DrawParams, SamplingRule};

use super::Choices;
use super::argmax::first_largest;
use super::field::Field;
use crate::call::Call;
use crate::isa::Level;
use crate::part::Part;

/// Runs the kernel.
pub(crate) fn draw(call: &Call, part: &mut Part) {
    let p: DrawParams = call.params();
    let draw::Buffers {
        logits,
        tokens,
        history,
        outputs,
        rows,
        rules,
        mu,
    } = call.buffers();
    let (n_rows, n) = (p.n_rows as usize, p.vocab_size as usize);
    let logits = logits.read::<f32>(n_rows * n);
    let rules = rules.read::<SamplingRule>(p.n_sequences as usize);
    let choices = Choices {
        outputs: outputs.read(n_rows),
        rows: rows.read(p.row_capacity as usize),
        tokens,
        history,
        history_stride: p.history_stride as usize,
    };
    for at in part.range(n_rows) {
        let row = choices.row(at);
        let mut token = 0;
        if row.is_active() {
            let logits = &logits[at * n..][..n];
            let sequence = row.sequence as usize;
            let list = part.scratch.take::<u64>(n + 1);
            let rule = &rules[sequence];
            let mut bound = 0.0;
            // SAFETY: `own`: parts have different rows, and a sequence with mirostat has one.
            unsafe {
                if rule.mirostat_tau > 0.0 {
                    bound = mu.piece::<f32>(sequence, 1)[0];
                }
                token = drawn(call.level, rule, (row.position, &mut bound), logits, list);
                if rule.mirostat_tau > 0.0 {
                    mu.write::<f32>(sequence, 1)[0] = bound;
                }
            }
        }
        // SAFETY: `own`: parts have different rows.
        unsafe { choices.store(at, token) };
    }
}

/// The token that a rule takes of these logits, at a position and with mirostat's bound.
fn drawn(
    level: Level,
    rule: &SamplingRule,
    (position, mu): (u32, &mut f32),
    logits: &[f32],
    list: &mut [u64],
) -> u32 {
    let place = first_largest(level, logits).unwrap_or(0);
    let is_free = logits[place] > f32::NEG_INFINITY && rule.temperature > 0.0;
    if is_free {
        let mut field = Field::new(level, logits, place, list);
        choose(rule, position, mu, &mut field)
    } else {
        place as u32
    }
}
