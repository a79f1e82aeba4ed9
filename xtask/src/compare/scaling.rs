//! Scaling: models of real shapes with random weights, by number of threads and instruction set.
//!
//! Only prompts and decoding are measured, on few tokens: the largest model takes seconds for each with
//! one thread. The peer is built once for every instruction set that ours is told to keep to.

use super::files::{self, ModelFile};
use super::ours::Ours;
use super::peer::{Isa, Peer};
use super::record::Record;
use super::summary::Comparison;
use super::{Args, Device, Programs, Sizes, begin, measure};
use crate::failure::Failure;
use crate::random_model::{self, Mix, Shape};
use clap::ValueEnum;

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

/// The name of a model in tables and charts: `1B Q4_0`.
pub fn model_name(shape: Shape, mix: Mix) -> String {
    format!("{} {}", value_name(shape), value_name(mix))
}

/// The name that a value has on the command line.
fn value_name(value: impl ValueEnum) -> String {
    let named = value.to_possible_value();
    named.map_or_else(String::new, |value| value.get_name().to_string())
}

/// The place of a model in tables: by shape, then by type; unknown names come last.
pub fn place(name: &str) -> usize {
    let shapes = Shape::value_variants().iter();
    let mut names = shapes.flat_map(|&shape| {
        let mixes = Mix::value_variants().iter();
        mixes.map(move |&mix| model_name(shape, mix))
    });
    names.position(|known| known == name).unwrap_or(usize::MAX)
}

/// Measures every model with every instruction set and number of threads, and writes down each when it
/// is done.
pub fn measure_all(args: &Args) -> Result<Record<Comparison>, Failure> {
    let sizes = if args.quick { QUICK } else { SIZES };
    if args.isa.len() > 1 && args.peer.is_some() {
        return Err(Failure::Usage(
            "--peer names one build of llama.cpp: give one instruction set with it".into(),
        ));
    }
    let mut record = Record::open(args.folder(), sizes, &super::record::SCALING)?;
    let ours = Ours::open(args.ours.as_deref(), Device::Cpu)?;
    let mut levels: Vec<Option<Isa>> = args.isa.iter().copied().map(Some).collect();
    if levels.is_empty() {
        levels.push(None);
    }
    for &isa in &levels {
        let ours = ours.keeping_to(isa);
        let peer = Peer::open(args.peer.as_deref(), isa, sizes)?;
        for file in make(&args.shapes, args.types())? {
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

/// Writes the models that are not there yet. A model is a whole file or none.
pub fn make(shapes: &[Shape], mixes: &[Mix]) -> Result<Vec<ModelFile>, Failure> {
    let mut made = Vec::new();
    for &shape in shapes {
        for &mix in mixes {
            let name = model_name(shape, mix);
            let file = format!("random.{}.gguf", name.replace(' ', "."));
            let path = files::folder()?.join(file);
            if !path.exists() {
                eprintln!("writing {}", path.display());
                random_model::write(shape, mix, &path)?;
            }
            made.push(ModelFile { name, path });
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_stand_by_size_and_unknown_ones_last() {
        assert_eq!(model_name(Shape::Llama3_2_1b, Mix::Q4KM), "1B Q4_K_M");
        let places = ["135M Q4_0", "135M Q8_0", "1B Q4_0", "8B F16", "9B Q4_0"].map(place);
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(places[4], usize::MAX);
    }
}
