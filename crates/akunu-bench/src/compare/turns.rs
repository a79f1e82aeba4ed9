//! Rounds of both programs, in turn.

use akunu_repo::{Failure, process};
use std::process::Command;

/// What each round of both programs gave: ours, then the peer, in turn.
pub fn alternate<M>(
    rounds: u32,
    mut ours: impl FnMut() -> Result<M, Failure>,
    mut peer: impl FnMut() -> Result<M, Failure>,
) -> Result<(Vec<M>, Vec<M>), Failure> {
    let mut both = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        both.0.push(ours()?);
        both.1.push(peer()?);
        eprintln!("  round {round} of {rounds}");
    }
    Ok(both)
}

/// The day, as 2026-11-17.
pub fn today() -> Result<String, Failure> {
    let date = process::output(Command::new("date").args(["-u", "+%F"]))?;
    Ok(date.trim().into())
}
