//! From logits to the next token, on the device: penalties, masks, selection and the choice.
//!
//! Greedy: (penalty, mask,) [`argmax`]. Random: (penalty, mask,) [`topk_select`] once or twice, then
//! [`gumbel_topk`]. Both serve some rows of logits at once: row i of the logits belongs to row `outputs[i]`
//! of the row table, whose sequence has the rule of the choice and the history. They leave the token in
//! `tokens[i]`, which the next step's embedding lookup reads, and in the history; [`advance_rows`] then moves
//! the rows on, so that a chain of steps needs nothing of the host.
//!
//! The history is (n_sequences, history_stride) tokens, of each sequence the last ones: token t, counted from
//! 0, lies at `t % history_stride`. A row of length n has seen tokens `0 .. n` and chooses token n.

pub mod advance_rows;
pub mod argmax;
pub mod argmax_partial;
mod cases;
pub mod grammar_bitmask;
pub mod gumbel_topk;
pub mod philox;
pub mod repetition_penalty;
pub mod temperature_scale;
pub mod topk_select;
pub mod whisper_suppress;

use akunu_types::params::Row;

use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::twin::Twin;

/// What the kernels that choose do besides reading their candidates: of the history, binding 3, a token a
/// row is written, and of the row table, binding 5 in the order of bindings, a row each is read.
fn choice_work(once: Work, n_rows: u32) -> Work {
    let (history, rows) = (once.traffic[3].written, once.traffic[5].read);
    once.with(3, Traffic::written(bytes::<u32>(&[n_rows]).min(history)))
        .with(5, Traffic::read(bytes::<Row>(&[n_rows]).min(rows)))
}

/// Stores what `choose` takes for each row of candidates: 0 and no history for an idle one. The bindings
/// are those of both kernels that choose: 2 tokens, 3 history, 5 outputs, 6 rows.
fn choose_all(t: &mut Twin, history_stride: u32, choose: impl Fn(usize, &Row) -> u32) {
    let (outputs, rows) = (t.read::<u32>(5), t.read::<Row>(6));
    for (at, &output) in outputs.iter().enumerate() {
        let row = &rows[output as usize];
        let token = if row.is_active() { choose(at, row) } else { 0 };
        t.write::<u32>(2)[at] = token;
        if row.is_active() && history_stride > 0 {
            let place = row.sequence as usize * history_stride as usize
                + (row.length % history_stride) as usize;
            t.write::<u32>(3)[place] = token;
        }
    }
}

/// The place of the largest value: the first of equals, never a NaN; `None` if there is nothing else.
fn first_largest(values: impl IntoIterator<Item = f32>) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (at, value) in values.into_iter().enumerate() {
        let wins = match best {
            Some((_, largest)) => value > largest,
            None => !value.is_nan(),
        };
        if wins {
            best = Some((at, value));
        }
    }
    best.map(|(at, _)| at)
}
