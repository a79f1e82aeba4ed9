//! `cargo measure compare`: Akunu and llama.cpp on the same files and device, one after the other.
//!
//! Each round measures ours, then the peer, in fresh processes; medians over the rounds are compared.
//! The peer is llama.cpp through llama-cpp-python, in a virtual environment of its own. The figures are
//! kept for each file and number of threads, so that some of them can be measured again. With
//! `--shapes` it measures how speed grows with threads and instructions instead: see [`scaling`]. With
//! `--device cuda` both run on an NVIDIA GPU: see [`gpu`].

mod args;
mod bar;
mod chart;
mod comparison;
mod cpu;
mod device;
mod files;
mod gpu;
mod isa;
mod lines;
mod metric;
mod ours;
mod peer;
mod random;
mod record;
mod round;
mod scaling;
mod summary;
mod table;
mod turns;

use akunu_repo::Failure;
pub use args::Args;
use comparison::Comparison;
use device::Device;
use record::Record;
use std::path::Path;
use summary::Row;

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.check()?;
    let folder = args.folder();
    match args.device {
        Device::Cpu if args.table => {
            let records = read_all(&folder)?;
            records.iter().try_for_each(|record| show(record, args))
        }
        Device::Cpu if args.shapes.is_empty() => show(&cpu::measure_all(args)?, args),
        Device::Cpu => show(&scaling::measure_all(args)?, args),
        Device::Cuda(_) if args.table => show(&Record::read(folder, &gpu::NVIDIA)?, args),
        Device::Cuda(number) => show(&gpu::measure_all(args, number)?, args),
    }
}

/// Writes a record's files, and prints it.
fn show<R: Row>(record: &Record<R>, args: &Args) -> Result<(), Failure> {
    record.write()?;
    match args.json {
        true => println!("{}", record.json()?),
        false => print!("{}", record.text()),
    }
    Ok(())
}

/// The records of a CPU in a folder: that of the files, and that of scaling where there is one.
fn read_all(folder: &Path) -> Result<Vec<Record<Comparison>>, Failure> {
    let mut records = vec![Record::read(folder.into(), &cpu::FILES)?];
    if Record::is_in(folder, &scaling::SCALING) {
        records.push(Record::read(folder.into(), &scaling::SCALING)?);
    }
    Ok(records)
}
