//! Layers with a state of fixed size: a row goes on from the state in one block and leaves its own in another.
//!
//! ```text
//! for each active row, in order:   S = block[from], or zeros;   S, y = step(S, x);   block[to] = S, unless there is none
//! ```
//!
//! Active rows of one sequence lie together, and no two sequences write one block. So a thread that takes a part of a state takes it
//! from the first row of a sequence to the last: nobody else touches those numbers, and nobody waits. A state that the next row
//! of the sequence overwrites need not be stored. An idle row stores nothing.

#[cfg(feature = "testing")]
mod awkward;
pub mod delta_rule;
pub mod gated_norm;
pub mod short_conv;
pub mod split_heads;
pub mod ssd;

use akunu_types::params::Row;

/// The numbers of a state before a row: those of a block, or zeros.
fn loaded(states: &[f32], size: usize, row: &Row) -> Vec<f32> {
    let block = row
        .state_from()
        .and_then(|block| states.chunks_exact(size).nth(block as usize));
    block.map_or_else(|| vec![0.0; size], <[f32]>::to_vec)
}

/// Leaves a state in the block of a row, if it has one.
fn store(states: &mut [f32], state: &[f32], row: &Row) {
    let block = row
        .state_to()
        .and_then(|block| states.chunks_exact_mut(state.len()).nth(block as usize));
    if let Some(block) = block {
        block.copy_from_slice(state);
    }
}
