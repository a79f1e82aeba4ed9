//! The rows of a step: the next token of each single, and a piece of a prompt.

use akunu_kernels::program::Choose;

use super::part::{Outcome, Part};
use crate::error::EngineError;
use crate::runtime::{Kind, Runtime};

/// What a part does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Idle,
    /// Reads its last token and chooses the next one.
    Single,
    /// Reads as many tokens of its prompt.
    Reader(usize),
}

/// How the tokens of a step are chosen.
pub(super) fn how(parts: &[Part], roles: &[Role]) -> Choose {
    let active = parts
        .iter()
        .zip(roles)
        .filter(|(_, role)| **role != Role::Idle);
    let mut choices = active.map(|(part, _)| part.answer.options.sampling.choice());
    match choices.all(|choice| choice == Choose::Best) {
        true => Choose::Best,
        false => Choose::ByRule,
    }
}

/// Puts the rows of all singles together.
pub(super) fn push_singles(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
) -> Result<(), EngineError> {
    let n_active = roles.iter().filter(|role| **role != Role::Idle).count();
    runtime.begin(n_active)?;
    for (part, _) in parts
        .iter_mut()
        .zip(roles)
        .filter(|(_, role)| **role == Role::Single)
    {
        let sequence = &mut part.session.sequence;
        runtime.set_rule(sequence, part.answer.options.sampling.rule())?;
        if let Some(last) = part.answer.last {
            runtime.push_single(sequence, last)?;
        }
    }
    Ok(())
}

/// A single round: singles, and a piece of a prompt.
pub(super) fn mixed_step(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
) -> Result<(), EngineError> {
    push_singles(runtime, parts, roles)?;
    let mut ends_prompt = false;
    let reader = roles
        .iter()
        .position(|role| matches!(role, Role::Reader(_)));
    if let Some(at) = reader
        && let Role::Reader(n) = roles[at]
    {
        let part = &mut parts[at];
        let sequence = &mut part.session.sequence;
        runtime.set_rule(sequence, part.answer.options.sampling.rule())?;
        let piece = &part.answer.prompt[sequence.cached..][..n];
        runtime.push_run(sequence, piece)?;
        ends_prompt = sequence.cached + n == part.answer.prompt.len();
        if ends_prompt {
            runtime.want_last();
        }
    }
    let n_singles = roles.iter().filter(|role| **role == Role::Single).count();
    let n_chosen = n_singles + usize::from(ends_prompt);
    let kind = match n_chosen {
        0 => Kind::Layers,
        _ => Kind::Step(how(parts, roles)),
    };
    runtime.run(kind)?;
    let mut chosen = vec![0; n_chosen];
    runtime.read_tokens(&mut chosen)?;
    let singles = parts
        .iter_mut()
        .zip(roles)
        .filter(|(_, role)| **role == Role::Single);
    for (row, (part, _)) in singles.enumerate() {
        part.take(runtime, &chosen[row..=row], row);
    }
    if let Some(at) = reader
        && let Role::Reader(n) = roles[at]
    {
        let part = &mut parts[at];
        let sequence = &mut part.session.sequence;
        let piece = part.answer.prompt[sequence.cached..][..n].to_vec();
        runtime.stored(sequence, &piece);
        part.outcome = Outcome::Read;
        if ends_prompt {
            sequence.known = sequence.cached + 1;
            part.answer.prompt.clear();
            part.answer.chosen(&chosen[n_singles..]);
            part.outcome = Outcome::Chosen { row: n_singles };
        }
    }
    Ok(())
}
