//! `cargo xtask kernels`: the kernel table, each kernel run in the simulator and compiled to PTX.

mod count;
mod document;
mod fused;

use crate::parallel;
use akunu_kernels::KernelId;
use akunu_kernels::table::KernelRow;
use akunu_repo::{Failure, workspace};
use akunu_sim::table::{check_signature, run_case};
use akunu_sim::{Schedule, Simulator, Toolchain, ptx};
use serde::Serialize;
use std::collections::HashMap;

/// Options of the command.
#[derive(clap::Args)]
pub struct Args {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Only check that docs/kernels.md is current; run nothing
    #[arg(long)]
    check: bool,
    /// Only kernels whose name contains this
    #[arg(long)]
    filter: Option<String>,
    /// Count what kernels do to memory, at the sizes of real models or, with --filter, in every case, and compare with
    /// nothing
    #[arg(long, conflicts_with_all = ["json", "check"])]
    count: bool,
    /// Fuse products and sums and take denormal numbers for zeros, as a GPU may: every case must hold its tolerance so too
    #[arg(long, conflicts_with_all = ["json", "check", "count"])]
    fused: bool,
}

/// What is known of one kernel.
#[derive(Serialize)]
struct Entry {
    kernel: String,
    family: &'static str,
    format: Option<&'static str>,
    bindings: Vec<String>,
    params: &'static str,
    constants: Vec<&'static str>,
    cases: usize,
    /// The largest error of all cases in all schedules, or what went wrong first.
    simulator: Result<f64, String>,
    /// Whether its file compiles, or what the compiler said.
    ptx: Result<(), String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.check {
        return document::check();
    }
    let wanted = |row: &KernelRow| {
        let name = row.name();
        args.filter
            .as_ref()
            .is_none_or(|part| name.contains(part.as_str()))
    };
    let rows: Vec<KernelRow> = KernelId::all()
        .into_iter()
        .map(KernelId::row)
        .filter(wanted)
        .collect();
    if args.count {
        return count::run(&rows, args.filter.as_deref());
    }
    if args.fused {
        return fused::run(&rows);
    }
    if args.filter.is_none() {
        document::write()?;
    }
    let kernels = workspace::root().join("kernels");
    let shaders = workspace::root().join("target/shaders");
    let found = |error: akunu_sim::SimError| Failure::Found(error.to_string());
    let ptx = ptx_results(&kernels, &shaders).map_err(found)?;
    let simulator = Simulator::new(&kernels, &shaders.join("sim")).map_err(found)?;
    let entries = parallel::map(&rows, |row| entry(&simulator, row, &ptx));
    if args.json {
        let text = serde_json::to_string_pretty(&entries);
        println!(
            "{}",
            text.map_err(|error| Failure::Found(error.to_string()))?
        );
    } else {
        print_table(&entries);
    }
    let failed = entries
        .iter()
        .filter(|e| e.simulator.is_err() || e.ptx.is_err())
        .count();
    if failed > 0 {
        return Err(Failure::Found(format!(
            "{failed} of {} kernels fail",
            entries.len()
        )));
    }
    Ok(())
}

fn entry(
    simulator: &Simulator,
    row: &KernelRow,
    ptx: &HashMap<String, Result<(), String>>,
) -> Entry {
    let cases = (row.cases)(row.dtype);
    let run = || {
        check_signature(simulator, row).map_err(|error| error.to_string())?;
        let mut worst = 0f64;
        for case in &cases {
            for schedule in Schedule::EACH {
                let error = run_case(simulator, row, case, schedule);
                worst = worst.max(error.map_err(|error| format!("{schedule}: {error}"))?);
            }
        }
        Ok(worst)
    };
    let missing = || Err("no such file".to_string());
    Entry {
        kernel: row.name(),
        family: row.family.folder(),
        format: row.dtype.map(|dtype| dtype.name()),
        bindings: document::bindings(row),
        params: row.params.name,
        constants: row
            .constants
            .iter()
            .map(|constant| constant.spec().name)
            .collect(),
        cases: cases.len(),
        simulator: run(),
        ptx: ptx.get(&row.source_path()).cloned().unwrap_or_else(missing),
    }
}

/// What became of each `.metal` file.
fn ptx_results(
    kernels: &std::path::Path,
    shaders: &std::path::Path,
) -> Result<HashMap<String, Result<(), String>>, akunu_sim::SimError> {
    let files = ptx::compile_folder(&Toolchain::find()?, kernels, &shaders.join("ptx"))?;
    let result = |file: ptx::PtxFile| {
        let made = file.result.map(|_| ()).map_err(|error| error.to_string());
        (file.file, made)
    };
    Ok(files.into_iter().map(result).collect())
}

fn print_table(entries: &[Entry]) {
    let width = entries
        .iter()
        .map(|entry| entry.kernel.len())
        .max()
        .unwrap_or(0);
    println!(
        "{:width$}  {:10} {:7} {:>5}  {:14} ptx",
        "kernel", "family", "format", "cases", "twin ↔ sim"
    );
    for entry in entries {
        let simulator = match &entry.simulator {
            Ok(nmse) => format!("ok {nmse:.0e}"),
            Err(_) => "FAILS".to_string(),
        };
        let ptx = if entry.ptx.is_ok() { "ok" } else { "FAILS" };
        let format = entry.format.unwrap_or("-");
        let (kernel, family, cases) = (&entry.kernel, entry.family, entry.cases);
        println!("{kernel:width$}  {family:10} {format:7} {cases:>5}  {simulator:14} {ptx}");
    }
    for entry in entries {
        for problem in [entry.simulator.as_ref().err(), entry.ptx.as_ref().err()]
            .into_iter()
            .flatten()
        {
            println!("\n{}: {problem}", entry.kernel);
        }
    }
    let cases: usize = entries.iter().map(|entry| entry.cases).sum();
    println!(
        "\n{} kernels, {cases} cases, each in {} schedules",
        entries.len(),
        Schedule::EACH.len()
    );
}
