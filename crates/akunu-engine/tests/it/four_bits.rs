//! Weights of four bits through whole models: the tokens of the same values in f32.

use std::path::Path;

use crate::support::exact_cpu::exact_cpu;
use crate::support::fixture::Fixture;
use crate::support::float_folder::write_float_folder;
use crate::support::saved_experts::{Numbers, write_saved_experts};
use crate::support::{TINY, TinyLlama};
use akunu_engine::{GenerateOptions, Model, Sampling, SessionOptions};
use akunu_gguf::FloatFormat;
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;
use akunu_types::DType;

/// Eight tokens after a prompt of 35, and the logits after them.
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

/// The CPU rounds what it multiplies with quantised weights to 16 bits.
fn give_the_tokens_of(wanted: &Path, found: &Path, what: &str) {
    let (ids, logits) = run(wanted, Box::new(TwinDevice::new()));
    let twin: Box<dyn Device> = Box::new(TwinDevice::new());
    for (device, bound) in [(twin, 1e-10), (exact_cpu(), 1e-6)] {
        let name = device.name();
        let (found, found_logits) = run(found, device);
        assert_eq!(found, ids, "{what}, {name}");
        let error = nmse(&found_logits, &logits);
        assert!(error < bound, "{what}, {name}: NMSE {error}");
    }
}

/// Rows of 192 values fit no super-block: with IQ4_XS the file has matrices in BF16 beside those of FFN.
#[test]
fn a_file_gives_the_tokens_of_its_values_in_f32() {
    for dtype in [DType::MXFP4, DType::IQ4_XS, DType::IQ4_NL] {
        let stored = TinyLlama { dtype, ..TINY };
        let widened = TinyLlama {
            widened: true,
            ..stored
        };
        give_the_tokens_of(&widened.write().path, &stored.write().path, dtype.name());
    }
}

#[test]
fn a_folder_gives_the_tokens_of_its_values_in_f32() {
    for format in [FloatFormat::Mxfp4, FloatFormat::Nvfp4] {
        let folders = [true, false].map(|widened| {
            let folder = tempfile::tempdir().expect("a folder");
            let mut model = Fixture::read("transformers", "llama3");
            write_float_folder(&mut model, folder.path(), format, widened);
            folder
        });
        let [widened, stored] = folders.each_ref().map(tempfile::TempDir::path);
        give_the_tokens_of(widened, stored, format.name());
    }
}

/// The experts of gpt-oss as `transformers` stores them. Breaks when rows of gate and up, or biases, are taken for each other.
#[test]
fn experts_as_transformers_stores_them_give_the_tokens_of_their_values() {
    let folders = [Numbers::Rounded, Numbers::FourBits].map(|numbers| {
        let folder = tempfile::tempdir().expect("a folder");
        let mut model = Fixture::read("transformers", "gpt-oss");
        write_saved_experts(&mut model, folder.path(), numbers);
        folder
    });
    let [widened, stored] = folders.each_ref().map(tempfile::TempDir::path);
    give_the_tokens_of(widened, stored, "experts of gpt-oss");
}
