//! MLX weights are bound where they lie in the mapped file, wherever that is.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::devices::{simulator, twin};
use crate::support::exact_cpu::exact_cpu;
use crate::support::fixture::Fixture;
use crate::support::mlx_folder::{MlxFile, write_mlx_folder, write_plain_folder};
use crate::support::watched::{Hooks, Watched};
use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_kernels::case::nmse;
use akunu_program::{Device, DeviceError};
use akunu_sim::Schedule;

/// A file whose tensors begin at no multiple of anything, and whose matrices are followed by vectors.
const ODD: MlxFile = MlxFile {
    first_byte: 3,
    ends_with_a_matrix: false,
};

/// Eight tokens after a prompt, and the logits after them.
fn run(path: &Path, device: Box<dyn Device>) -> (Vec<u32>, Vec<f32>) {
    let model = Model::load(path, device).expect("a whole model");
    let mut session = model.session(SessionOptions::default()).expect("memory");
    let prompt: Vec<u32> = (0..35).map(|i| i * 7 % 256).collect();
    session.feed(&prompt).expect("fits");
    let options = GenerateOptions {
        max_tokens: 8,
        sampling: Sampling::greedy(),
        ignore_end: true,
        ..Default::default()
    };
    let generation = session.generate(options).expect("options are fine");
    let ids = generation.map(|token| token.expect("runs").id).collect();
    (ids, session.logits().expect("there are some"))
}

fn write(folder: &Path, file: MlxFile) -> std::path::PathBuf {
    write_mlx_folder(&mut Fixture::read("transformers", "llama3"), folder, file)
}

/// Fails where a part of a matrix is looked for at another byte, or scales are taken for another type: on the twins against
/// the same values without quantisation, on the other devices against the twins.
#[test]
fn every_device_reads_mlx_weights_where_they_lie() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = folder.path().join("plain");
    std::fs::create_dir(&plain).expect("a folder");
    let plain = write_plain_folder(&Fixture::read("transformers", "llama3"), &plain);
    let (wanted, wanted_logits) = run(&plain, twin());
    for first_byte in [0, 3] {
        let path = write(folder.path(), MlxFile { first_byte, ..ODD });
        for device in [twin(), exact_cpu(), simulator(Schedule::Random(9))] {
            let name = device.name();
            let (found, logits) = run(&path, device);
            assert_eq!(found, wanted, "{name}, byte {first_byte}");
            // The CPU rounds what it multiplies with quantised weights to 16 bits; in the simulator prefill has tiles of halves.
            let bound = match name {
                "twin" => 1e-10,
                "cpu" => 1e-6,
                _ => 1e-3,
            };
            let error = nmse(&logits, &wanted_logits);
            assert!(error < bound, "{name}, byte {first_byte}: NMSE {error}");
        }
    }
}

/// Notes what memory was asked for.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Hooks for Asked {
    fn allocate(&mut self, _: usize, label: &str) -> Result<(), DeviceError> {
        self.0.lock().expect("no panic").push(label.to_string());
        Ok(())
    }
}

/// The matrices of a model for which memory was asked, beside the file.
fn copied(path: &Path) -> Vec<String> {
    let asked = Asked::default();
    let device = CpuDevice::new(CpuOptions::default()).expect("a CPU");
    let device = Watched::new(device, asked.clone());
    let _model = Model::load(path, Box::new(device)).expect("a whole model");
    let labels = asked.0.lock().expect("no panic").clone();
    let is_matrix = |label: &String| label.ends_with(".weight") && !label.contains("norm");
    labels.into_iter().filter(is_matrix).collect()
}

/// Fails when a matrix is copied although it could be bound, and when one is bound whose last word is not in the file.
#[test]
fn nothing_is_copied_but_what_cannot_be_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    for first_byte in [0, 1, 8] {
        let path = write(folder.path(), MlxFile { first_byte, ..ODD });
        assert_eq!(copied(&path), Vec::<String>::new(), "byte {first_byte}");
    }
    let cut = MlxFile {
        ends_with_a_matrix: true,
        ..ODD
    };
    let path = write(folder.path(), cut);
    assert_eq!(copied(&path).len(), 1, "the last one");
    let wanted = run(&path, twin()).0;
    for device in [exact_cpu(), simulator(Schedule::Ascending)] {
        assert_eq!(run(&path, device).0, wanted);
    }
}
