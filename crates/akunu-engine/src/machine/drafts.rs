//! The guesses of a step, and what came of them.

use super::part::{Outcome, Part};
use super::rows::Role;
use crate::runtime::Runtime;
use crate::speculation::{Costs, Rest, Text};

/// Lets every single guess what comes next, as far as it pays, in a step of up to `budget` rows. A step that reads a
/// prompt has rows enough.
pub(super) fn propose(parts: &mut [Part], budget: usize, costs: &Costs) {
    if parts.iter().any(|part| part.is_reader()) {
        return;
    }
    let singles = || parts.iter().filter(|part| part.is_single());
    let mut rest = Rest {
        rows: singles().map(|part| part.answer.pending.len()).sum(),
        tokens: singles().count() as f64,
    };
    let mut n_left = singles().count();
    for part in parts.iter_mut().filter(|part| part.is_single()) {
        let share = budget.saturating_sub(rest.rows).div_ceil(n_left);
        n_left -= 1;
        let room = part.room().min(share);
        let most = room.min(part.answer.wanted().saturating_sub(1));
        if let Err(error) = propose_one(part, most, &mut rest, costs) {
            part.outcome = Outcome::Failed(error);
        }
    }
}

fn propose_one(
    part: &mut Part,
    most: usize,
    rest: &mut Rest,
    costs: &Costs,
) -> Result<(), crate::error::EngineError> {
    let before = &part.session.sequence.tokens;
    let answer = &mut *part.answer;
    let n_prompt = answer.n_prompt();
    let has_rules = !answer.options.rules.is_empty();
    let Some(drafter) = answer.drafter.as_mut().filter(|_| !has_rules) else {
        return Ok(());
    };
    let text = Text {
        before,
        pending: &answer.pending,
        n_prompt,
    };
    part.guess = drafter.propose(text, most, *rest, costs)?;
    part.cut_guesses()?;
    if let (Some(guess), Some(drafter)) = (&part.guess, &part.answer.drafter) {
        rest.rows += guess.tree.len();
        rest.tokens += drafter.expected(guess);
    }
    Ok(())
}

/// Whether some single has something to guess. Nothing is computed ahead then.
pub(super) fn may_propose(parts: &mut [Part], costs: &Costs) -> bool {
    let n = parts.len();
    let rest = Rest {
        rows: n,
        tokens: n as f64,
    };
    parts.iter_mut().any(|part| {
        let most = part.room().min(part.answer.wanted().saturating_sub(1));
        let answer = &mut *part.answer;
        let text = Text {
            before: &part.session.sequence.tokens,
            pending: &answer.pending,
            n_prompt: answer.n_prompt(),
        };
        let drafter = answer.drafter.as_mut();
        drafter.is_some_and(|drafter| drafter.may_propose(text, most, rest, costs))
    })
}

/// What a step of some rows took.
pub(super) struct Took {
    pub seconds: f64,
    /// Whether a program was loaded in that time, which later steps do not do.
    pub has_loaded: bool,
}

/// Takes note of what a step took, and of the guesses that were right.
pub(super) fn learn(runtime: &mut Runtime, parts: &mut [Part], roles: &[Role], took: &Took) {
    if roles.iter().any(|role| matches!(role, Role::Reader(_))) {
        return;
    }
    let singles = || {
        let active = parts.iter().zip(roles);
        active.filter(|(_, role)| **role == Role::Single)
    };
    let n_singles = singles().count();
    let n_guesses: usize = singles().map(|(part, _)| part.n_guesses()).sum();
    let n_rows: usize = n_guesses + singles().map(|(part, _)| part.n_read).sum::<usize>();
    let costs = runtime.costs();
    match (took.has_loaded, n_guesses) {
        (true, _) => {}
        (false, 0) => costs.record_plain(n_rows, took.seconds),
        (false, _) => costs.record(n_rows, took.seconds),
    }
    let plain = costs.of(n_rows - n_guesses);
    let seconds = match took.has_loaded {
        true => costs.of(n_rows),
        false => Some(took.seconds),
    };
    let (extra, token) = match (plain, seconds) {
        (Some(plain), Some(seconds)) => (seconds - plain, plain / n_singles as f64),
        _ => (0.0, 0.0),
    };
    for (part, _) in parts
        .iter_mut()
        .zip(roles)
        .filter(|(_, role)| **role == Role::Single)
    {
        let Some(drafter) = part.answer.drafter.as_mut() else {
            continue;
        };
        match &part.guess {
            Some(guess) => {
                let share = guess.tree.len() as f64 / n_guesses as f64;
                drafter.learn(guess, &part.right, extra * share, token);
            }
            None => drafter.plain(1),
        }
    }
}
