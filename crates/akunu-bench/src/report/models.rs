//! A step of whole models, and the share of each kernel: the launches of one kernel alone, with the same buffers.

use super::material::{Material, Recipe, fits};
use super::part::Given;
use super::record::{Model, Record, Share};
use super::target::Target;
use crate::decoder::{Decoder, MODELS, SMALL};
use akunu_kernels::KernelCall;
use akunu_program::{DeviceError, Room};
use std::collections::BTreeMap;
use std::time::Instant;

/// Tokens that have been read before.
const CONTEXT: u32 = 1024;
/// Runs, of which the shortest counts.
const RUNS: usize = 7;

pub fn run(target: &mut dyn Target, given: &Given) -> Result<(), DeviceError> {
    let (models, context, runs) = match given.is_small {
        true => (std::slice::from_ref(&SMALL), 64, 1),
        false => (MODELS, CONTEXT, RUNS),
    };
    for model in models {
        Record::Begin {
            what: model.name.to_owned(),
        }
        .print();
        match measure(target, model, (context, runs)) {
            Err(lost @ DeviceError::Lost { .. }) => return Err(lost),
            Err(error) => Record::skipped(model.name, error).print(),
            Ok(()) => {}
        }
    }
    Ok(())
}

fn measure(
    target: &mut dyn Target,
    model: &Decoder,
    (context, runs): (u32, usize),
) -> Result<(), DeviceError> {
    let recipe = Recipe::of(model, context, &*target.rules())?;
    if !fits(target, &recipe) {
        let megabytes = recipe.bytes() / 1_000_000;
        Record::skipped(
            model.name,
            format!("{megabytes} MB are more than the GPU has left"),
        )
        .print();
        return Ok(());
    }
    let material = recipe.on(target)?;
    let measured = measure_on(target, model.name, (&recipe, &material), runs);
    material.release(target);
    measured
}

fn measure_on(
    target: &mut dyn Target,
    model: &str,
    (recipe, material): (&Recipe, &Material),
    runs: usize,
) -> Result<(), DeviceError> {
    let launches = material.calls.len();
    let cost = recipe.plan.cost();
    let whole = shortest(target, (recipe, material), material.calls.clone(), runs)?;
    Record::Model(Model {
        model: model.to_owned(),
        milliseconds: whole * 1e3,
        launches,
        barriers: (0..launches)
            .filter(|&at| recipe.plan.barrier_before(at))
            .count(),
        bytes: cost.bytes_read + cost.bytes_written,
    })
    .print();
    let mut kernels: BTreeMap<String, Vec<KernelCall>> = BTreeMap::new();
    for call in &material.calls {
        let name = call.key.kernel.row().name();
        kernels.entry(name).or_default().push(call.clone());
    }
    for (kernel, calls) in kernels {
        let launches = calls.len();
        let seconds = shortest(target, (recipe, material), calls, runs)?;
        Record::Share(Share {
            model: model.to_owned(),
            kernel,
            launches,
            milliseconds: seconds * 1e3,
        })
        .print();
    }
    Ok(())
}

/// The shortest run of some of the launches, each from the same row.
fn shortest(
    target: &mut dyn Target,
    (recipe, material): (&Recipe, &Material),
    calls: Vec<KernelCall>,
    runs: usize,
) -> Result<f64, DeviceError> {
    let plan = target.load_kernels(calls, Room::default())?;
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        recipe.rewind(target, material)?;
        let begin = Instant::now();
        target.run(plan, None)?;
        best = best.min(begin.elapsed().as_secs_f64());
    }
    target.unload(plan);
    Ok(best)
}
