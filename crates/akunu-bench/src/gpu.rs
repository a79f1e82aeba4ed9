//! `cargo measure gpu`: every kernel of the table on an NVIDIA GPU, as PTX, against its twin; then a model against
//! the CPU device and the twins.
//!
//! Without clang, cargo and models, PTX made elsewhere (`cargo xtask shaders --target ptx`) is taken with `--ptx`, and
//! the kernels alone are run. Under NVIDIA's checkers, with allocations of the exact size:
//!
//! ```text
//! compute-sanitizer --tool memcheck  akunu-bench gpu --ptx FOLDER --exact
//! akunu-bench gpu --ptx FOLDER --racecheck
//! ```

mod sanitizer;
mod time;

pub use time::PRODUCTS;

use akunu_cuda::{CudaDevice, PtxSources};
use akunu_kernels::KernelId;
use akunu_kernels::case::{Cases, Outcome};
use akunu_kernels::flatten::metal_files;
use akunu_kernels::kernel::nvidia;
use akunu_kernels::table::KernelRow;
use akunu_program::DeviceError;
use akunu_repo::{Failure, process, workspace};
use akunu_sim::{Toolchain, ptx};
use std::path::{Path, PathBuf};

/// Options of the command.
#[derive(clap::Args)]
pub struct Args {
    /// A folder of PTX made before: runs the kernels alone, without clang and cargo
    #[arg(long, value_name = "FOLDER")]
    ptx: Option<PathBuf>,
    /// Only kernels whose name contains this
    #[arg(long)]
    filter: Option<String>,
    /// No guard bytes: allocations of the exact size, for compute-sanitizer
    #[arg(long)]
    exact: bool,
    /// Time products and attention instead of checking them
    #[arg(long, conflicts_with = "exact")]
    time: bool,
    /// Look for races with compute-sanitizer, after it has found a planted one
    #[arg(long, conflicts_with_all = ["exact", "time"])]
    racecheck: bool,
    /// Run the kernel that has a planted race in place of its own
    #[arg(long, hide = true)]
    planted_race: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let found = |error: DeviceError| Failure::Found(error.to_string());
    for gpu in akunu_cuda::gpus().map_err(found)? {
        println!("{}: {}, CUDA {}", gpu.ordinal, gpu.name, gpu.driver);
    }
    let kernels = workspace::root().join("kernels");
    let folder = match &args.ptx {
        Some(folder) => folder.clone(),
        None => compile(&kernels)?,
    };
    let part = args.filter.as_deref().unwrap_or_default();
    if args.racecheck {
        return sanitizer::racecheck(&folder, part);
    }
    let sources = sources(&kernels, &folder, args.planted_race)?;
    let mut device = akunu_cuda::open_with(0, sources).map_err(found)?;
    if args.time {
        return time::run(&mut device, part);
    }
    let chip = device.chip().clone();
    let left_out = KernelId::all().into_iter().map(KernelId::row);
    let left_out = left_out.filter(|row| !nvidia::runs_on(row, &chip)).count();
    if left_out > 0 {
        println!("{left_out} kernels are left out: this GPU does not have their instructions");
    }
    let mut outcomes = Vec::new();
    let cases = Cases {
        wanted: |row: &KernelRow| row.name().contains(part) && nvidia::runs_on(row, &chip),
        exactly: args.exact,
    };
    cases.run_on(&mut device, |outcome| {
        println!("{}", line(&outcome));
        outcomes.push(outcome);
    });
    drop(device);
    summarise(&outcomes)?;
    if args.ptx.is_none() && args.filter.is_none() {
        return model();
    }
    Ok(())
}

/// The first GPU, with the PTX of a folder, or PTX that is compiled now.
pub fn open(ptx: Option<&Path>) -> Result<CudaDevice, Failure> {
    let kernels = workspace::root().join("kernels");
    let folder = match ptx {
        Some(folder) => folder.to_owned(),
        None => compile(&kernels)?,
    };
    let sources = sources(&kernels, &folder, false)?;
    akunu_cuda::open_with(0, sources).map_err(|error| Failure::Found(error.to_string()))
}

/// The tests of models on the GPU.
fn model() -> Result<(), Failure> {
    let test = ["test", "--package", "akunu-cuda", "--features", "ptx"];
    let mut cargo = process::cargo();
    cargo.args(test).args(["--test", "gpu", "--", "--ignored"]);
    Ok(process::run(&mut cargo)?)
}

/// The PTX of every file, from a folder; that of one file may have a race.
fn sources(kernels: &Path, folder: &Path, has_race: bool) -> Result<PtxSources, Failure> {
    let files = metal_files(kernels).map_err(|error| Failure::Found(error.to_string()))?;
    let mut texts = Vec::new();
    for file in files {
        let planted = has_race
            .then(|| ptx::race::replacement(folder, &file))
            .flatten();
        let path = planted.unwrap_or_else(|| folder.join(ptx::file_name(&file)));
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| Failure::Found(format!("{}: {error}", path.display())))?;
        texts.push((file, text));
    }
    Ok(PtxSources::new(texts))
}

/// Makes the PTX of every file, with function constants left to the launch.
fn compile(kernels: &Path) -> Result<PathBuf, Failure> {
    let found = |error: akunu_sim::SimError| Failure::Found(error.to_string());
    let folder = workspace::root().join("target/shaders/ptx");
    let toolchain = Toolchain::find().map_err(found)?;
    for file in ptx::compile_folder(&toolchain, kernels, &folder).map_err(found)? {
        file.result.map_err(found)?;
    }
    ptx::race::compile(&toolchain, kernels, &folder).map_err(found)?;
    Ok(folder)
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
        text.push_str(&failure.to_string());
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
    use akunu_kernels::case::{CaseFailure, Cause};

    fn failure(label: &str) -> CaseFailure {
        CaseFailure {
            label: label.to_owned(),
            cause: Cause::Different,
            error: "wrong".to_owned(),
        }
    }

    fn outcome(failures: &[&str]) -> Outcome {
        Outcome {
            kernel: "rmsnorm_f32".to_owned(),
            cases: 3,
            worst: 1e-9,
            failures: failures.iter().map(|&label| failure(label)).collect(),
            ..Default::default()
        }
    }

    /// A failure must end the command with an error that counts it.
    #[test]
    fn failures_are_counted_and_fail_the_command() {
        assert!(summarise(&[outcome(&[])]).is_ok());
        let failed = summarise(&[outcome(&[]), outcome(&["tail"])]);
        let words = failed.expect_err("one case failed").to_string();
        assert_eq!(words, "2 kernels, 6 cases, 1 failures");
    }

    #[test]
    fn a_failing_kernel_is_followed_by_its_reasons() {
        assert!(line(&outcome(&[])).ends_with("ok 1e-9"));
        let text = line(&outcome(&["tail"]));
        assert!(text.contains("FAILS in 1\n    tail: wrong"), "{text}");
    }
}
