//! `cargo xtask test`: everything that must hold before a change is merged, from a bare clone.
//!
//! The steps are a table. A step that fails does not stop the others; the summary at the end names
//! all that failed. A step that this machine cannot run is skipped, with what would make it run; with
//! `--strict`, or `CI=true` in the environment, that is a failure too.

mod beside;
mod programs;
mod steps;
mod summary;

use akunu_repo::Failure;
use beside::Beside;
use std::time::Instant;
use steps::{INSTALL, METAL_STEPS, STEPS, Step};
use summary::{Outcome, Skipping, Verdict, seconds, summarise};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Run only this step; may be given several times
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Only list the steps
    #[arg(long)]
    list: bool,
    /// Fail when a step cannot run on this machine, instead of skipping it; CI=true does the same
    #[arg(long)]
    strict: bool,
    /// Run only the tests of this device: every kernel against its twin, and a small model
    #[arg(long, value_name = "DEVICE", conflicts_with = "only")]
    device: Option<TestDevice>,
}

/// A device that has tests of its own.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum TestDevice {
    /// The GPU of this Mac
    Metal,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let steps = match args.device {
        None => choose(&args.only)?,
        Some(TestDevice::Metal) if cfg!(target_os = "macos") => METAL_STEPS.iter().collect(),
        Some(TestDevice::Metal) => {
            return Err(Failure::Found(
                "the Metal device is on Macs only; elsewhere its calls are tested by the \
                 simulator, as a part of `cargo xtask test`"
                    .to_owned(),
            ));
        }
    };
    if args.list {
        for step in steps {
            println!("  {:<9} {}", step.name, step.what);
        }
        return Ok(());
    }
    let ci = std::env::var("CI").ok();
    let skipping = Skipping::choose(args.strict, ci.as_deref());
    let start = Instant::now();
    let mut outcomes = Vec::new();
    let mut beside = start_beside(&steps, vec![(INSTALL, vec![INSTALL])]);
    for step in &steps {
        let at = beside.iter().position(|(name, _)| *name == step.name);
        let started = at.map(|at| beside.swap_remove(at));
        outcomes.push(run_step(step, started, skipping));
        beside.extend(start_beside(&steps, steps::beside_after(step.name)));
    }
    summarise(&outcomes, start.elapsed())
}

/// Starts those of these steps that are wanted, to run beside the others.
fn start_beside(steps: &[&Step], commands: Vec<(&'static str, Vec<&'static str>)>) -> Vec<Started> {
    let is_wanted = |name: &str| steps.iter().any(|step| step.name == name);
    commands
        .into_iter()
        .filter(|(name, _)| is_wanted(name))
        .map(|(name, command)| (name, Beside::start(&command)))
        .collect()
}

/// A step that was started before its turn.
type Started = (&'static str, Result<Beside, Failure>);

fn run_step(step: &Step, started: Option<Started>, skipping: Skipping) -> Outcome {
    let name = step.name;
    println!("==> {name}: {}", step.what);
    let start = Instant::now();
    let result = match started {
        None => (step.run)(),
        Some((_, started)) => started.and_then(Beside::finish),
    };
    let verdict = Verdict::of(result, skipping);
    let took = start.elapsed();
    let reason = verdict
        .reason()
        .map_or(String::new(), |why| format!(": {why}"));
    println!(
        "<== {name}: {}, {}{reason}\n",
        verdict.word(),
        seconds(took)
    );
    Outcome {
        name,
        took,
        verdict,
    }
}

fn choose(only: &[String]) -> Result<Vec<&'static Step>, Failure> {
    if only.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let find = |name: &String| {
        STEPS.iter().find(|step| step.name == name).ok_or_else(|| {
            let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
            Failure::Usage(format!(
                "there is no step `{name}`; the steps are {}",
                known.join(", ")
            ))
        })
    };
    only.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_step_gets_the_list() {
        let Err(Failure::Usage(refused)) = choose(&["nope".into()]) else {
            panic!("a usage error");
        };
        assert!(
            refused.contains("`nope`") && refused.contains("build, install, fmt, clippy, "),
            "{refused}"
        );
    }
}
