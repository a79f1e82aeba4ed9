//! From logits to the next token, on the device: penalties, masks, selection and the choice.
//!
//! Greedy: [`argmax`] alone. By rules: [`penalties`], then [`draw`], which sees the whole vocabulary. Both ways serve some
//! rows of logits at once: row i of the logits belongs to row `outputs[i]` of the row table, whose sequence has the rule of
//! the choice and the history. They leave the token in `tokens[i]`, which the next step's embedding lookup reads, and in
//! the history; [`token_scores`] records how probable it was, where somebody asks; [`advance_rows`] then moves the rows on,
//! so that a chain of steps needs nothing of the host. Before the choice [`grammar_bitmask`] forbids what a grammar does not
//! allow, and [`speech_rules`] what may not follow in a transcript.
//!
//! The history is (n_sequences, history_stride) tokens, of each sequence the last ones: token t, counted from
//! 0, lies at `t % history_stride`. A row of length n has seen tokens `0 .. n` and chooses token n.

pub mod advance_rows;
pub mod argmax;
pub mod argmax_partial;
pub mod candidates;
#[cfg(feature = "testing")]
mod cases;
pub mod draw;
pub mod grammar_bitmask;
pub mod penalties;
pub mod philox;
pub mod speech_rules;
pub mod token_scores;

use akunu_types::params::Row;

/// Notes the token that a row chose in the history of its sequence.
fn note_token(history: &mut [u32], row: &Row, history_stride: u32, token: u32) {
    if history_stride > 0 {
        let first = row.sequence as usize * history_stride as usize;
        history[first + (row.length % history_stride) as usize] = token;
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
