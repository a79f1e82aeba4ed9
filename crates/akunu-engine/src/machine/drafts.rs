//! The guesses of a step, and what came of them.

use std::time::Instant;

use akunu_program::Choose;

use super::part::{Outcome, Part};
use super::rows::Role;
use crate::error::EngineError;
use crate::model::Model;
use crate::runtime::{Guessing, Runtime};
use crate::speculation::{Costs, MtpPlan, Plan, Rest, Text};

/// Lets every single guess what comes next, as far as it pays, in a step of up to `budget` rows. A step that reads a
/// prompt has rows enough.
pub(super) fn propose(model: &Model, parts: &mut [Part], budget: usize, costs: &Costs) {
    if parts.iter().any(|part| part.is_reader()) {
        return;
    }
    let plans = plan(parts, budget, costs);
    guess(model, parts, &plans);
}

/// Decides what each single guesses. Guesses that the model's own block has to compute are returned, with their parts.
fn plan(parts: &mut [Part], budget: usize, costs: &Costs) -> Vec<(usize, MtpPlan)> {
    let singles = || parts.iter().filter(|part| part.is_single());
    let mut rest = Rest {
        rows: singles().map(|part| part.answer.pending.len()).sum(),
        tokens: singles().count() as f64,
        sequences: singles().count(),
    };
    let mut n_left = singles().count();
    let mut plans = Vec::new();
    let all = parts.iter_mut().enumerate();
    for (at, part) in all.filter(|(_, part)| part.is_single()) {
        let share = budget.saturating_sub(rest.rows).div_ceil(n_left);
        n_left -= 1;
        let room = part.room().min(share);
        let most = room.min(part.answer.wanted().saturating_sub(1));
        match propose_one(part, most, &mut rest, costs) {
            Ok(plan) => plans.extend(plan.map(|plan| (at, plan))),
            Err(error) => part.outcome = Outcome::Failed(error),
        }
    }
    plans
}

fn propose_one(
    part: &mut Part,
    most: usize,
    rest: &mut Rest,
    costs: &Costs,
) -> Result<Option<MtpPlan>, EngineError> {
    let before = &part.session.sequence.tokens;
    let answer = &mut *part.answer;
    let n_prompt = answer.n_prompt();
    let has_rules = !answer.options.rules.is_empty();
    let Some(drafter) = answer.drafter.as_mut().filter(|_| !has_rules) else {
        return Ok(None);
    };
    let text = Text {
        before,
        pending: &answer.pending,
        n_prompt,
    };
    match drafter.propose(text, most, *rest, costs)? {
        Plan::Nothing => {}
        Plan::Guesses(guess) => part.guess = Some(guess),
        Plan::Mtp(plan) => {
            rest.rows += plan.n;
            rest.tokens += drafter.expected_of_mtp(plan);
            return Ok(Some(plan));
        }
    }
    part.cut_guesses()?;
    if let (Some(guess), Some(drafter)) = (&part.guess, &part.answer.drafter) {
        rest.rows += guess.tree.len();
        rest.tokens += drafter.expected(guess);
    }
    Ok(None)
}

/// Lets the model's own block compute guesses, in rounds for all of these parts together.
fn guess(model: &Model, parts: &mut [Part], plans: &[(usize, MtpPlan)]) {
    let n = plans.iter().map(|(_, plan)| plan.n).max().unwrap_or(0);
    if n == 0 {
        return;
    }
    let mut runtime = model.runtime();
    let (begin, n_programs) = (Instant::now(), runtime.n_programs());
    let found = match run(&mut runtime, parts, plans, n as u32) {
        Ok(found) => found,
        // The answers go on without guesses. Whatever is wrong with the device comes again with the next step.
        Err(_) => return,
    };
    // Loading a program takes time that later guesses do not take.
    let seconds = match runtime.n_programs() == n_programs {
        true => begin.elapsed().as_secs_f64(),
        false => 0.0,
    };
    if seconds > 0.0 {
        let round = seconds / n as f64;
        runtime.costs().record_guesses(plans.len(), round);
    }
    drop(runtime);
    for ((at, plan), tokens) in plans.iter().zip(found) {
        let part = &mut parts[*at];
        part.guess = Some(plan.proposal(&tokens, seconds / plans.len() as f64));
        if let Err(error) = part.cut_guesses() {
            part.outcome = Outcome::Failed(error);
        }
    }
}

fn run(
    runtime: &mut Runtime,
    parts: &mut [Part],
    plans: &[(usize, MtpPlan)],
    n: u32,
) -> Result<Vec<Vec<u32>>, EngineError> {
    let mut how = Choose::Best;
    let mut all = Vec::with_capacity(plans.len());
    let is_planned = |at: usize| plans.iter().any(|(planned, _)| *planned == at);
    let planned = parts.iter_mut().enumerate();
    for (_, part) in planned.filter(|(at, _)| is_planned(*at)) {
        let answer = &*part.answer;
        if answer.choice() != Choose::Best {
            how = Choose::ByRule;
        }
        let Some(&next) = answer.pending.last() else {
            continue;
        };
        all.push(Guessing {
            sequence: &mut part.session.sequence,
            rule: &answer.rule,
            next,
        });
    }
    runtime.guess(&mut all, how, n)
}

/// Whether some single has something to guess. Nothing is computed ahead then.
pub(super) fn may_propose(parts: &mut [Part], costs: &Costs) -> bool {
    let n = parts.len();
    let rest = Rest {
        rows: n,
        tokens: n as f64,
        sequences: n,
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
