//! Scaling: models of real shapes with random weights, by number of threads and instruction set.
//!
//! Only prompts and decoding are measured, on few tokens: the largest model takes seconds for each with
//! one thread. The peer is built once for every instruction set that ours is told to keep to.

use super::args::Args;
use super::comparison::Comparison;
use super::cpu::{Programs, begin, measure};
use super::device::Device;
use super::isa::Isa;
use super::ours::Ours;
use super::peer::Peer;
use super::random;
use super::record::{Kind, Record};
use super::round::Sizes;
use super::{lines, table};
use akunu_repo::Failure;

/// Speed over threads and instruction sets.
pub static SCALING: Kind<Comparison> = Kind {
    stem: "scaling",
    draw: lines::draw,
    text: |summary| format!("{}\n![chart](scaling.svg)\n", table::scaling(summary)),
    begin: "<!-- written by cargo measure compare --shapes -->\n",
};

/// Enough tokens for a speed; those of the other tests are not used.
const SIZES: Sizes = Sizes {
    prefill: 128,
    first: 1,
    decode: 32,
    shallow: 1,
    deep: 2,
    deep_decode: 1,
};

const QUICK: Sizes = Sizes {
    prefill: 16,
    decode: 4,
    ..SIZES
};

/// Measures every model with every instruction set and number of threads, and writes down each when it
/// is done.
pub fn measure_all(args: &Args) -> Result<Record<Comparison>, Failure> {
    let sizes = if args.quick { QUICK } else { SIZES };
    if args.isa.len() > 1 && args.peer.is_some() {
        return Err(Failure::Usage(
            "--peer names one build of llama.cpp: give one instruction set with it".into(),
        ));
    }
    let mut record = Record::open(args.folder(), sizes, &SCALING)?;
    let ours = Ours::open(args.ours.as_deref(), Device::Cpu)?;
    let mut levels: Vec<Option<Isa>> = args.isa.iter().copied().map(Some).collect();
    if levels.is_empty() {
        levels.push(None);
    }
    for &isa in &levels {
        let ours = ours.keeping_to(isa);
        let peer = Peer::open(args.peer.as_deref(), isa, sizes)?;
        for file in random::make(&args.shapes, args.types())? {
            for &threads in args.threads() {
                let mut comparison = begin(&file, threads, &ours)?;
                comparison.isa = isa.map(|isa| isa.name().to_string());
                eprintln!("{}", comparison.label());
                let programs = Programs {
                    ours: &ours,
                    peer: &peer,
                    sizes,
                    must_agree: false,
                };
                measure(&mut comparison, &file, args.rounds, &programs)?;
                record.summary.put(comparison);
                record.write()?;
            }
        }
    }
    Ok(record)
}
