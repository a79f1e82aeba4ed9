//! `cargo xtask kernels --fused`: every case once more, with fused products and sums and without denormal numbers.
//!
//! Only rounding differs from the first run, so that one schedule is enough.

use crate::parallel;
use akunu_kernels::table::KernelRow;
use akunu_repo::{Failure, workspace};
use akunu_sim::table::run_case;
use akunu_sim::{Schedule, Simulator};

/// What became of a kernel: its name, its cases, its largest error, and what went wrong.
struct Outcome {
    kernel: String,
    cases: usize,
    worst: f64,
    failures: Vec<String>,
}

/// Runs every case of these kernels.
pub fn run(rows: &[KernelRow]) -> Result<(), Failure> {
    let root = workspace::root();
    let simulator = Simulator::fused(&root.join("kernels"), &root.join("target/shaders/fused"));
    let simulator = simulator.map_err(|error| Failure::Found(error.to_string()))?;
    let outcomes = parallel::map(rows, |row| outcome(&simulator, row));
    for Outcome {
        kernel,
        cases,
        worst,
        failures,
    } in &outcomes
    {
        println!("{kernel:40} {cases:>3} cases  {worst:.0e}");
        failures
            .iter()
            .for_each(|failure| println!("    {failure}"));
    }
    let cases: usize = outcomes.iter().map(|outcome| outcome.cases).sum();
    let failures: usize = outcomes.iter().map(|outcome| outcome.failures.len()).sum();
    let n = outcomes.len();
    println!("\n{n} kernels, {cases} cases, fused and without denormal numbers");
    if failures > 0 {
        return Err(Failure::Found(format!("{failures} cases fail")));
    }
    Ok(())
}

fn outcome(simulator: &Simulator, row: &KernelRow) -> Outcome {
    let cases = (row.cases)(row.dtype);
    let (mut worst, mut failures) = (0f64, Vec::new());
    for case in &cases {
        match run_case(simulator, row, case, Schedule::Ascending) {
            Ok(error) => worst = worst.max(error),
            Err(error) => failures.push(error.to_string()),
        }
    }
    Outcome {
        kernel: row.name(),
        cases: cases.len(),
        worst,
        failures,
    }
}
