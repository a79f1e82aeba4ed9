//! `cargo measure mac-report`: one file with all that a GPU shows about the kernels, for people who have none like it.
//!
//! ```text
//! parent ─┬─ machine                       one process for each part: a part that crashes is recorded with the last
//!         ├─ pipelines                     thing that it began, and goes on after it
//!         ├─ cases of each family          on a Mac twice: as it is, and with Metal's validation
//!         ├─ micro, products, attention    what lowering chooses among, timed
//!         ├─ models                        a step of whole models, and the share of each kernel
//!         └─ program                       each launch of a small model against its twin
//! ```
//!
//! A part prints records, a line of JSON each; the parent gathers them into the file. It has no names, no paths and no texts of the
//! user: what a part writes on stderr is kept without them.

mod attention;
mod cases;
mod child;
mod file;
mod machine;
mod material;
mod micro;
mod models;
mod part;
mod pipelines;
mod products;
mod program;
mod record;
mod redact;
mod target;

pub use file::read;
pub use record::Record;

use akunu_repo::Failure;
use part::{Given, Part};
use record::Report;
use std::path::PathBuf;
use target::{Target, Which};

/// Options of the command.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The GPU; `sim` is the simulator, with small sizes
    #[arg(long, value_name = "DEVICE", default_value = "metal")]
    device: Which,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "akunu-mac.json.gz")]
    into: PathBuf,
    /// Only kernels whose name contains this
    #[arg(long, value_name = "NAME")]
    filter: Option<String>,
    /// Only parts whose name begins with this; may be given several times
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// A folder of PTX made before, for `--device cuda` without clang
    #[arg(long, value_name = "FOLDER")]
    ptx: Option<PathBuf>,
    /// Run this part in this process, and print its records
    #[arg(long, hide = true)]
    part: Option<Part>,
    /// Go on after this thing, which ended the process before
    #[arg(long, hide = true)]
    after: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let filter = args.filter.clone().unwrap_or_default();
    if let Some(part) = args.part {
        let given = Given {
            filter,
            after: args.after.clone(),
            is_small: args.device.is_small(),
        };
        let ptx = args.ptx.as_deref();
        return target::with(args.device, ptx, |target| run_part(part, target, &given));
    }
    target::check(args.device)?;
    let child = child::Arguments {
        which: args.device,
        filter,
        ptx: args.ptx.clone(),
    };
    let mut parts = Vec::new();
    for planned in part::planned(args.device) {
        let name = planned.name();
        if args.only.is_empty() || args.only.iter().any(|only| name.starts_with(only)) {
            parts.push(child::run(&planned, &child)?);
        }
    }
    let report = Report {
        version: record::VERSION,
        device: args.device.name().to_owned(),
        parts,
    };
    println!("{}", report.summary());
    let bytes = file::write(&args.into, &report)?;
    println!("{}: {} KB", args.into.display(), bytes.div_ceil(1000));
    Ok(())
}

/// Runs a part, which prints its records.
fn run_part(part: Part, target: &mut dyn Target, given: &Given) -> Result<(), Failure> {
    let done = match part {
        Part::Machine => {
            machine::run(target);
            Ok(())
        }
        Part::Pipelines => {
            pipelines::run(target, given);
            Ok(())
        }
        Part::Cases(family) => {
            cases::run(target, family, given);
            Ok(())
        }
        Part::Micro => micro::run(target, given),
        Part::Products => products::run(target, given),
        Part::Attention => attention::run(target, given),
        Part::Models => models::run(target, given),
        Part::Program => program::run(target),
    };
    done.map_err(|error| Failure::Found(error.to_string()))
}
