//! Pages for what the parts of a step do, and who pauses when there are none.

use super::part::{Outcome, Part};
use super::rows::Role;
use crate::error::EngineError;
use crate::runtime::{RUN_STATES, Runtime};

/// Pages for what each part does.
pub(super) fn reserve_all(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
    n: u32,
) -> Result<(), EngineError> {
    for (part, role) in parts.iter_mut().zip(roles) {
        let (more, states) = match *role {
            Role::Idle => continue,
            Role::Single => (part.n_rows() - 1 + n as usize, 1 + part.n_guesses()),
            Role::Reader(rows) => (rows, RUN_STATES),
        };
        let sequence = &mut part.session.sequence;
        runtime.reserve(sequence, sequence.cached + more)?;
        runtime.reserve_states(sequence, states)?;
    }
    Ok(())
}

/// Takes the pages of the youngest sequence that is not the only one; returns whether there was one.
pub(super) fn pause_youngest(runtime: &mut Runtime, parts: &mut [Part], roles: &[Role]) -> bool {
    let has_pages = |part: &Part| part.is_running() && part.session.sequence.cached > 0;
    let n_active = roles.iter().filter(|role| **role != Role::Idle).count();
    let n_with_pages = parts.iter().filter(|part| has_pages(part)).count();
    let youngest = parts.iter().rposition(has_pages);
    // A sequence that has the step to itself may wait for others with pages.
    let may_pause = |at: usize| n_active > 1 || n_with_pages > 1 || roles[at] == Role::Idle;
    let Some(at) = youngest.filter(|&at| may_pause(at)) else {
        return false;
    };
    let part = &mut parts[at];
    let answer = &mut *part.answer;
    let mut content = match answer.prompt.is_empty() {
        true => part.session.sequence.content(),
        false => std::mem::take(&mut answer.prompt),
    };
    content.tokens.append(&mut answer.pending);
    runtime.free(&mut part.session.sequence);
    part.session.sequence.tokens.clear();
    part.session.sequence.images.clone_from(&content.images);
    answer.prompt = content;
    true
}

/// The first sequence that takes part cannot continue even alone.
pub(super) fn fail_first(parts: &mut [Part], roles: &[Role], error: EngineError) {
    let active = roles.iter().position(|role| *role != Role::Idle);
    if let Some(part) = active.and_then(|at| parts.get_mut(at)) {
        part.outcome = Outcome::Failed(error);
    }
}
