//! `cargo xtask gpu`: every kernel of the table on an NVIDIA GPU, as PTX, against its twin.
//!
//! The GPU's machine needs the CUDA driver and nothing else: PTX made elsewhere (`cargo xtask shaders
//! --target ptx`) is taken with `--ptx`. Under NVIDIA's checkers, with allocations of the exact size:
//!
//! ```text
//! compute-sanitizer --tool memcheck  xtask gpu --ptx FOLDER --exact
//! compute-sanitizer --tool racecheck xtask gpu --ptx FOLDER --exact
//! ```

use crate::failure::Failure;
use crate::workspace;
use akunu_kernels::KernelId;
use akunu_kernels::table::KernelRow;
use akunu_sim::cuda::{CudaError, Gpu, Guards, Program};
use akunu_sim::{Toolchain, ptx};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Options of the command.
#[derive(clap::Args)]
pub struct Args {
    /// A folder of PTX made before; without it, PTX is made here, which needs clang
    #[arg(long, value_name = "FOLDER")]
    ptx: Option<PathBuf>,
    /// Only kernels whose name contains this
    #[arg(long)]
    filter: Option<String>,
    /// No guard bytes: allocations of the exact size, for compute-sanitizer
    #[arg(long)]
    exact: bool,
}

/// What became of one kernel.
struct Outcome {
    kernel: String,
    cases: usize,
    /// The largest error of the cases that passed.
    worst: f64,
    /// What is wrong, a line a case.
    failures: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let gpu = Gpu::open().map_err(|error| Failure::Found(error.to_string()))?;
    println!("{}", gpu.describe());
    let kernels = workspace::root().join("kernels");
    let folder = match &args.ptx {
        Some(folder) => folder.clone(),
        None => compile(&kernels)?,
    };
    let guards = if args.exact {
        Guards::None
    } else {
        Guards::Bytes
    };
    let is_wanted = |row: &KernelRow| {
        let part = args.filter.as_deref().unwrap_or_default();
        row.name().contains(part)
    };
    let mut programs = HashMap::new();
    let mut outcomes = Vec::new();
    for row in KernelId::all().into_iter().map(KernelId::row) {
        if !is_wanted(&row) {
            continue;
        }
        let file = row.source_path();
        let program = programs
            .entry(file.clone())
            .or_insert_with(|| Program::load(&gpu, &kernels, &file, &folder));
        let (outcome, is_lost) = outcome(&row, program.as_ref(), guards);
        println!("{}", line(&outcome));
        outcomes.push(outcome);
        if is_lost {
            break;
        }
    }
    summarise(&outcomes)
}

/// Makes the PTX of every file, with function constants left to the launch.
fn compile(kernels: &Path) -> Result<PathBuf, Failure> {
    let found = |error: akunu_sim::SimError| Failure::Found(error.to_string());
    let folder = workspace::root().join("target/shaders/ptx");
    let toolchain = Toolchain::find().map_err(found)?;
    for file in ptx::compile_folder(&toolchain, kernels, &folder).map_err(found)? {
        file.result.map_err(found)?;
    }
    Ok(folder)
}

/// Runs all cases of a kernel. Also tells whether the GPU is lost: after a kernel has crashed, the
/// driver refuses all further work of this process.
fn outcome(
    row: &KernelRow,
    program: Result<&Program<'_>, &CudaError>,
    guards: Guards,
) -> (Outcome, bool) {
    let cases = (row.cases)(row.dtype);
    let mut outcome = Outcome {
        kernel: row.name(),
        cases: cases.len(),
        worst: 0.0,
        failures: Vec::new(),
    };
    let program = match program {
        Ok(program) => program,
        Err(error) => {
            outcome.failures.push(error.to_string());
            return (outcome, false);
        }
    };
    for case in &cases {
        match program.run_case(row, case, guards) {
            Ok(nmse) => outcome.worst = outcome.worst.max(nmse),
            Err(error) => {
                outcome.failures.push(format!("{}: {error}", case.label));
                if matches!(error, CudaError::Call { .. }) {
                    return (outcome, true);
                }
            }
        }
    }
    (outcome, false)
}

fn line(outcome: &Outcome) -> String {
    let Outcome { kernel, cases, .. } = outcome;
    let state = if outcome.failures.is_empty() {
        format!("ok {:.0e}", outcome.worst)
    } else {
        format!("FAILS in {}", outcome.failures.len())
    };
    let mut text = format!("{kernel:36} {cases:>4} cases  {state}");
    for failure in &outcome.failures {
        text.push_str("\n    ");
        text.push_str(failure);
    }
    text
}

fn summarise(outcomes: &[Outcome]) -> Result<(), Failure> {
    let cases: usize = outcomes.iter().map(|outcome| outcome.cases).sum();
    let failures: usize = outcomes.iter().map(|outcome| outcome.failures.len()).sum();
    let summary = format!(
        "{} kernels, {cases} cases, {failures} failures",
        outcomes.len()
    );
    if failures > 0 {
        return Err(Failure::Found(summary));
    }
    println!("\n{summary}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(failures: &[&str]) -> Outcome {
        Outcome {
            kernel: "rmsnorm_f32".to_owned(),
            cases: 3,
            worst: 1e-9,
            failures: failures.iter().map(|&words| words.to_owned()).collect(),
        }
    }

    /// A failure must end the command with an error that counts it.
    #[test]
    fn failures_are_counted_and_fail_the_command() {
        assert!(summarise(&[outcome(&[])]).is_ok());
        let failed = summarise(&[outcome(&[]), outcome(&["tail: wrong"])]);
        let words = failed.expect_err("one case failed").to_string();
        assert_eq!(words, "2 kernels, 6 cases, 1 failures");
    }

    #[test]
    fn a_failing_kernel_is_followed_by_its_reasons() {
        assert!(line(&outcome(&[])).ends_with("ok 1e-9"));
        let text = line(&outcome(&["tail: wrong"]));
        assert!(text.contains("FAILS in 1\n    tail: wrong"), "{text}");
    }
}
