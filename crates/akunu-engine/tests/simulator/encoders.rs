//! An encoder on every device, and what a GPU is told by it.

use std::path::PathBuf;

use super::recorded::{assert_barriers_are_exact, device, expected};
use crate::support::files::write_folder;
use crate::support::fixture::Fixture;
use akunu_engine::{Encoder, EncoderText};
use akunu_kernels::case::nmse;
use tempfile::TempDir;

fn model(name: &str) -> (Fixture, TempDir, PathBuf) {
    let model = Fixture::read("encoders", name);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_folder(&model, folder.path());
    (model, folder, path)
}

/// The Metal kernels of encoders, run in the simulator, give what `transformers` gives; and the calls that Metal gets
/// are those of the plan, with a barrier wherever two launches would race and nowhere else.
#[test]
fn encoders_run_on_metals_kernels_with_exact_barriers() {
    for name in ["bert", "nomic-bert", "mpnet", "modern-bert"] {
        let (model, _folder, path) = model(name);
        let (device, notes, log) = device();
        let encoder = Encoder::load(&path, Box::new(device)).expect("a whole model");
        let texts: Vec<EncoderText> = model
            .texts
            .iter()
            .map(|text| EncoderText {
                tokens: text.tokens.clone(),
                n_first: text.n_first,
            })
            .collect();
        let found = encoder.encode(&texts).expect("runs");
        for (found, text) in found.iter().zip(&model.texts) {
            let error = nmse(found, &text.mean);
            // The products of many rows have tiles of halves: 2^-11 of each factor.
            assert!(error < 1e-6, "{name}: NMSE {error}");
        }
        let (calls, submitted) = (log.submissions().pop().expect("submitted"), notes.last());
        assert_eq!(submitted.steps, 1);
        assert_eq!(calls, expected(&submitted, &log));
        assert_barriers_are_exact(&calls, 1, &log);
    }
}
