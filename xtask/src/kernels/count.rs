//! `cargo xtask kernels --count`: what kernels do to memory, beside the least that they have to.
//!
//! Without a filter: the sizes of real models, which are also written to docs/counters.md. With one: every case of the
//! kernels that it names.

use crate::parallel;
use akunu_kernels::case::{Case, SIZES, Size};
use akunu_kernels::table::KernelRow;
use akunu_repo::{Failure, workspace};
use akunu_sim::Simulator;
use akunu_sim::count::{Counted, count_case};
use akunu_sim::table::TableError;

const HEADING: &str = "\
| kernel | launch | bytes moved | of the least | loads | asked for | threadgroup accesses | cycles an access | barriers | idle lanes |
|---|---|---|---|---|---|---|---|---|---|
";

/// Counts the cases of some kernels, or the sizes of real models where there are none.
pub fn run(rows: &[KernelRow], filter: Option<&str>) -> Result<(), Failure> {
    let root = workspace::root();
    let simulator = Simulator::counting(&root.join("kernels"), &root.join("target/shaders/count"));
    let simulator = simulator.map_err(|error| Failure::Found(error.to_string()))?;
    let launches: Vec<(KernelRow, Case)> = if filter.is_some() {
        let cases = |row: &KernelRow| {
            let row = *row;
            let cases = (row.cases)(row.dtype).into_iter();
            cases.map(move |case| (row, case))
        };
        rows.iter().flat_map(cases).collect()
    } else {
        let launch = |size: &Size| (size.kernel.row(), (size.case)(size));
        SIZES.iter().map(launch).collect()
    };
    let counted = parallel::map(&launches, |(row, case)| count_case(&simulator, row, case));
    let found = |error: TableError| Failure::Found(error.to_string());
    let mut table = HEADING.to_owned();
    for ((row, case), counted) in launches.iter().zip(counted) {
        table += &line(&row.name(), &case.label, &counted.map_err(found)?);
    }
    print!("{table}");
    if filter.is_none() {
        let path = root.join("docs/counters.md");
        let text = PAGE.replace("{table}", &table);
        std::fs::write(&path, text).map_err(|error| Failure::io(&path, error))?;
    }
    Ok(())
}

fn line(kernel: &str, label: &str, counted: &Counted) -> String {
    let counts = &counted.counts;
    let per_group = |n: u64| n as f64 / counts.threadgroups.max(1) as f64;
    format!(
        "| `{kernel}` | {label} | {} | {:.3} | {} | {} | {} | {:.2} | {:.1} | {:.1} % |\n",
        counts.bytes(),
        counted.excess(),
        counts.device_loads,
        counts.bytes_asked,
        counts.shared_accesses,
        counts.conflicts(),
        per_group(counts.barriers),
        100.0 * counts.idle_share(),
    )
}

const PAGE: &str = "\
# What kernels do to memory

Written by `cargo xtask kernels --count`. The simulator runs kernels that clang has compiled with a call before each load
and store, and puts the accesses of the 32 lanes of a SIMD group together again. `--filter NAME` counts every case of the
kernels whose names contain that. A test holds these figures to at most 1.05 times the least bytes and 1.1 cycles an access
of threadgroup memory, where the source (`crates/akunu-kernels/src/case/sizes.rs`) does not say otherwise.

{table}
- **bytes moved**: between the GPU and its memory, in lines of 128 bytes, behind a cache of 8 MiB, which is what an M1 has;
  **of the least**: for each byte that the shape needs, every weight, key, input and output once.
- **loads**: load instructions of SIMD groups from device memory; **asked for**: the bytes that all lanes asked for in them,
  most of which come from a cache: x is asked for by every SIMD group.
- **threadgroup accesses** of SIMD groups, and the **cycles an access** takes in 32 banks of 4 bytes for each that its words
  need at least: 1.00 is free of conflicts.
- **barriers** that a threadgroup waits at, and the share of **idle lanes** in all accesses.
";
