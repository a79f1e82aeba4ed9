//! From logits to the next token, on the device: penalties, masks, selection and the choice.
//!
//! Greedy: (penalty, mask,) [`argmax`]. Random: (penalty, mask,) [`topk_select`] once or twice, then
//! [`gumbel_topk`]. Both leave the token in `token[0]`, which the next step's embedding lookup
//! reads, and in `history[pos + 1]`, so that a chain of steps leaves all its tokens in one buffer.

pub mod argmax;
pub mod argmax_partial;
pub mod grammar_bitmask;
pub mod gumbel_topk;
pub mod philox;
pub mod repetition_penalty;
pub mod temperature_scale;
pub mod topk_select;
pub mod whisper_suppress;

use crate::cost::{Traffic, Work};
use crate::table::Args;

/// The history, binding 3 of the kernels that choose, gets one token where there is room.
fn one_token_of_history(_: &Args, once: Work) -> Work {
    let room = once.traffic[3].written;
    once.with(3, Traffic::written(room.min(size_of::<u32>())))
}

/// Stores a chosen token where the next step and the host look for it.
fn store_token(history: &mut [u32], pos: u32, token: u32) {
    if let Some(slot) = history.get_mut((pos as usize).saturating_add(1)) {
        *slot = token;
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
