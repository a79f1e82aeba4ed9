//! The rows of a step: the next tokens of each single, and a piece of a prompt.

use akunu_program::Choose;

use super::part::{Outcome, Part};
use crate::error::EngineError;
use crate::guesses::{Accepted, Tree};
use crate::runtime::{Kind, Runtime, StepMasks};

/// What a part does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Idle,
    /// Reads what is pending, and guesses, and chooses what comes next.
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
    let mut choices = active.map(|(part, _)| part.answer.choice());
    match choices.all(|choice| choice == Choose::Best) {
        true => Choose::Best,
        false => Choose::ByRule,
    }
}

/// The outputs of one part: those of what it has read last, and of its guesses.
#[derive(Clone, Copy, Debug)]
struct Outputs {
    /// The part.
    part: usize,
    /// Its first output.
    first: usize,
    n: usize,
}

/// Puts the rows of all singles together. Returns nothing that a chain needs.
pub(super) fn push_singles(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
) -> Result<(), EngineError> {
    push_all(runtime, parts, roles).map(|_| ())
}

fn push_all(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
) -> Result<Vec<Outputs>, EngineError> {
    let n_active = roles.iter().filter(|role| **role != Role::Idle).count();
    runtime.begin(n_active)?;
    let mut outputs = Vec::with_capacity(n_active);
    for (at, part) in parts.iter_mut().enumerate() {
        if roles[at] != Role::Single {
            continue;
        }
        let sequence = &mut part.session.sequence;
        runtime.set_rule(sequence, &part.answer.rule)?;
        let tree = part.guess.as_ref().map(|guess| &guess.tree);
        let first = runtime.push_next(sequence, &part.answer.pending, tree)?;
        let n = part.n_guesses() + 1;
        outputs.push(Outputs { part: at, first, n });
    }
    Ok(outputs)
}

/// Adds the piece of the prompt that is read, and its output if it is the last one.
fn push_reader(
    runtime: &mut Runtime,
    parts: &mut [Part],
    (at, n): (usize, usize),
    outputs: &mut Vec<Outputs>,
) -> Result<(), EngineError> {
    let part = &mut parts[at];
    let sequence = &mut part.session.sequence;
    runtime.set_rule(sequence, &part.answer.rule)?;
    let piece = &part.answer.prompt.tokens[sequence.cached..][..n];
    runtime.push_run(sequence, piece)?;
    if sequence.cached + n == part.answer.prompt.len() {
        let first = runtime.n_outputs();
        runtime.want_last();
        outputs.push(Outputs {
            part: at,
            first,
            n: 1,
        });
    }
    Ok(())
}

/// A single round: singles, and a piece of a prompt.
pub(super) fn mixed_step(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
) -> Result<(), EngineError> {
    let mut outputs = push_all(runtime, parts, roles)?;
    let mut all = roles.iter().enumerate();
    let reader = all.find_map(|(at, role)| match role {
        Role::Reader(n) => Some((at, *n)),
        _ => None,
    });
    if let Some(reader) = reader {
        push_reader(runtime, parts, reader, &mut outputs)?;
    }
    let chosen = match reader {
        Some((at, _)) => run_beside_reader(runtime, parts, roles, &outputs, at)?,
        None => run(runtime, parts, roles, &outputs)?,
    };
    if let Some((at, n)) = reader {
        let part = &mut parts[at];
        let sequence = &mut part.session.sequence;
        let piece = part.answer.prompt.tokens[sequence.cached..][..n].to_vec();
        runtime.stored(sequence, &piece);
        if part.is_running() {
            part.outcome = Outcome::Read;
        }
    }
    for &Outputs { part, first, n } in &outputs {
        let role = roles[part];
        let part = &mut parts[part];
        // Whoever failed between the layers and the choice keeps what it had.
        if !part.is_running() {
            continue;
        }
        let tree = part.guess.as_ref().map(|guess| &guess.tree);
        let Accepted { path, tokens } = tree
            .unwrap_or(&Tree::default())
            .accept(&chosen[first..first + n]);
        let outputs = [0].into_iter().chain(path.iter().map(|node| 1 + node));
        part.note_outputs(runtime, outputs.map(|output| first + output))?;
        let at = runtime.output(first + path.last().map_or(0, |node| 1 + node));
        if matches!(role, Role::Reader(_)) {
            part.answer.prompt.clear();
            part.chose(&tokens, at);
        } else {
            let sequence = &mut part.session.sequence;
            runtime.keep_branch(sequence, part.answer.pending.len(), &path, &tokens)?;
            part.right = path;
            part.take(runtime, &tokens, at);
        }
    }
    Ok(())
}

/// Runs the rows that are there, among them a piece of the prompt of the part `reader`. If no other part would lose
/// by it, its cancel flag ends the step early, with [`DeviceError::Stopped`](akunu_program::DeviceError::Stopped).
fn run_beside_reader(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
    outputs: &[Outputs],
    reader: usize,
) -> Result<Vec<u32>, EngineError> {
    let is_alone = roles.iter().filter(|role| **role != Role::Idle).count() == 1;
    if !is_alone {
        return run(runtime, parts, roles, outputs);
    }
    runtime.stop_when(Some(&parts[reader].answer.options.cancel));
    let ran = run(runtime, parts, roles, outputs);
    runtime.stop_when(None);
    if ran.is_err() {
        // The history of its seat has tokens that were not read.
        runtime.leave_seat(&mut parts[reader].session.sequence);
    }
    ran
}

/// Runs the rows that are there; returns what was chosen for each output.
fn run(
    runtime: &mut Runtime,
    parts: &mut [Part],
    roles: &[Role],
    outputs: &[Outputs],
) -> Result<Vec<u32>, EngineError> {
    let n_outputs: usize = outputs.iter().map(|outputs| outputs.n).sum();
    let how = how(parts, roles);
    let is_hosted = outputs.iter().any(|of| parts[of.part].answer.is_hosted());
    if n_outputs == 0 {
        runtime.run(Kind::Layers)?;
    } else if !is_hosted {
        runtime.run(Kind::Step(how))?;
    } else {
        let ticket = runtime.submit(Kind::Logits, 1)?;
        // A device that runs ahead computes the layers while the host computes the masks.
        let mut masks = StepMasks::new(n_outputs, runtime.vocab_size());
        for of in outputs {
            let part = &mut parts[of.part];
            if let Err(error) = part.put_masks(of.first, &mut masks) {
                part.outcome = Outcome::Failed(error);
            }
        }
        runtime.wait(ticket)?;
        for of in outputs {
            parts[of.part].apply_rules(runtime, of.first)?;
        }
        runtime.choose_masked(how, &masks)?;
    }
    let mut chosen = vec![0; n_outputs];
    runtime.read_tokens(&mut chosen)?;
    Ok(chosen)
}
