//! The comparison on an NVIDIA GPU: models of real shapes with random weights, ours and llama.cpp's own
//! programs on the same files.
//!
//! There are three pairs of tests: writing after a short context and after a long one, a short prompt and a
//! long one, and a few and many sequences that write at once. Rounds, medians, records and tables are those
//! of the comparison on a CPU.

mod build;
mod comparison;
mod peer;
pub mod round;
mod table;

use super::args::Args;
use super::device::Device;
use super::files::ModelFile;
use super::ours::Ours;
use super::random;
use super::record::{Kind, Record};
use super::turns::{alternate, today};
use crate::random_model::Shape;
use akunu_repo::Failure;
use clap::ValueEnum;
use comparison::GpuComparison;
use peer::GpuPeer;
use round::{Gpu, GpuSizes};

/// What was measured on NVIDIA GPUs.
pub static NVIDIA: Kind<GpuComparison> = Kind {
    stem: "nvidia",
    draw: table::draw,
    text: |summary| format!("{}\n![chart](nvidia.svg)\n", table::table(summary)),
    begin: "<!-- written by cargo measure compare --device cuda -->\n",
};

const FULL: GpuSizes = GpuSizes {
    decode: 128,
    depths: [0, 4096],
    prompts: [512, 4096],
    sequences: [16, 64],
};

const QUICK: GpuSizes = GpuSizes {
    decode: 4,
    depths: [0, 64],
    prompts: [16, 64],
    sequences: [2, 4],
};

/// Measures every model on this GPU, and writes down each when it is done.
pub fn measure_all(args: &Args, number: u32) -> Result<Record<GpuComparison>, Failure> {
    let sizes = if args.quick { QUICK } else { FULL };
    let mut record = Record::open(args.folder(), sizes, &NVIDIA)?;
    let ours = Ours::open(args.ours.as_deref(), Device::Cuda(number))?;
    let programs = Programs {
        gpu: ours.gpu()?,
        peer: GpuPeer::open(args.peer.as_deref(), number)?,
        ours,
        sizes,
    };
    let shapes = match args.shapes.is_empty() {
        true => Shape::value_variants(),
        false => &args.shapes,
    };
    for file in random::make(shapes, args.types())? {
        eprintln!("{}", file.name);
        let row = programs.measure(&file, args.rounds)?;
        record.summary.put(row);
        record.write()?;
    }
    Ok(record)
}

/// Who is compared, and where.
struct Programs {
    gpu: Gpu,
    ours: Ours,
    peer: GpuPeer,
    sizes: GpuSizes,
}

impl Programs {
    /// The rounds of one model.
    fn measure(&self, file: &ModelFile, rounds: u32) -> Result<GpuComparison, Failure> {
        let (ours, peer) = alternate(
            rounds,
            || self.ours.speeds(&file.path, &self.sizes),
            || self.peer.speeds(&file.path, &self.sizes),
        )?;
        Ok(GpuComparison {
            model: file.name.clone(),
            gpu: self.gpu.clone(),
            date: today()?,
            weight_bytes: self.ours.weight_bytes(&file.path)?,
            ours,
            peer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::summary::Summary;
    use round::Speeds;
    use std::path::{Path, PathBuf};

    /// A row in which each test has another speed: ours 10 to 60, the peer 5 to 30.
    pub fn comparison(model: &str) -> GpuComparison {
        let ours = Speeds {
            depths: [10.0, 20.0],
            prompts: [30.0, 40.0],
            sequences: [50.0, 60.0],
        };
        let halved = |pair: [f64; 2]| pair.map(|speed| speed / 2.0);
        let peer = Speeds {
            depths: halved(ours.depths),
            prompts: halved(ours.prompts),
            sequences: halved(ours.sequences),
        };
        GpuComparison {
            model: model.into(),
            gpu: Gpu {
                name: "NVIDIA H200".into(),
                driver: "13.0".into(),
            },
            date: "2026-11-17".into(),
            weight_bytes: 80_000_000,
            ours: vec![ours],
            peer: vec![peer],
        }
    }

    pub fn example() -> Summary<GpuComparison> {
        Summary {
            sizes: FULL,
            comparisons: vec![comparison("1B Q4_0")],
        }
    }

    /// Programs that print what the real ones print, with fixed figures.
    pub fn fakes() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/gpu_programs")
    }

    /// Fails if a figure goes to the wrong test, or if rounds of one program go to the other. The figures of
    /// the fakes are in their files.
    #[test]
    fn every_round_measures_both_programs() {
        let ours = Ours::open(Some(&fakes().join("akunu-cli")), Device::Cuda(0)).expect("ours");
        let programs = Programs {
            gpu: ours.gpu().expect("a GPU"),
            peer: GpuPeer::open(Some(&fakes()), 0).expect("the peer"),
            ours,
            sizes: FULL,
        };
        let file = ModelFile {
            name: "1B Q4_0".into(),
            path: "1b.gguf".into(),
        };
        let row = programs.measure(&file, 2).expect("measured");
        assert_eq!(row.gpu.name, "NVIDIA H200");
        assert_eq!(row.gpu.driver, "13.0");
        assert_eq!(row.weight_bytes, 700_000_000);
        let ours = Speeds {
            depths: [1800.5, 1600.25],
            prompts: [60000.0, 48000.0],
            sequences: [13000.0, 31000.0],
        };
        let peer = Speeds {
            depths: [1013.5, 869.25],
            prompts: [45934.0, 44000.5],
            sequences: [6000.0, 12000.0],
        };
        assert_eq!(row.ours, [ours, ours]);
        assert_eq!(row.peer, [peer, peer]);
    }

    /// Fails if figures of the GPU take the place of a CPU's, or if a model that is measured again is there twice.
    #[test]
    fn a_record_is_written_and_read_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let page = folder.path().join("performance.md");
        let end = "<!-- end of what it wrote -->\n";
        std::fs::write(&page, format!("{}old\n{end}", NVIDIA.begin)).expect("written");
        for model in ["8B Q4_0", "1B Q4_0", "8B Q4_0"] {
            let mut record = Record::open(folder.path().into(), FULL, &NVIDIA).expect("a record");
            record.summary.put(comparison(model));
            record.write().expect("written");
        }
        let record = Record::read(folder.path().into(), &NVIDIA).expect("a record");
        let models: Vec<&str> = record
            .summary
            .comparisons
            .iter()
            .map(|row| row.model.as_str())
            .collect();
        assert_eq!(models, ["1B Q4_0", "8B Q4_0"]);
        let text = std::fs::read_to_string(&page).expect("the page");
        assert!(
            !text.contains("old") && text.contains("| 8B Q4_0 |"),
            "{text}"
        );
        assert!(folder.path().join("nvidia.svg").exists());
        assert!(!folder.path().join("performance.json").exists());
        let refused = Record::open(folder.path().into(), QUICK, &NVIDIA).err();
        assert!(matches!(&refused, Some(Failure::Usage(said)) if said.contains("--into")));
    }
}
