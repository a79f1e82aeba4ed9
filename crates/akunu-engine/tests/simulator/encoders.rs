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
    for name in [
        "bert",
        "nomic-bert",
        "mpnet",
        "modern-bert",
        "reranker",
        "modern-reranker",
    ] {
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
        let is_reranker = encoder.config().n_labels() > 0;
        let found = if is_reranker {
            // A score may be near zero, so all of them are compared together.
            vec![encoder.score(&texts).expect("runs").concat()]
        } else {
            encoder.encode(&texts).expect("runs")
        };
        let wanted: Vec<Vec<f32>> = if is_reranker {
            let scores = model.texts.iter().flat_map(|text| text.scores.clone());
            vec![scores.collect()]
        } else {
            model.texts.iter().map(|text| text.mean.clone()).collect()
        };
        assert_eq!(found.len(), wanted.len(), "{name}");
        for (found, wanted) in found.iter().zip(&wanted) {
            let error = nmse(found, wanted);
            // The products of many rows have tiles of halves: 2^-11 of each factor.
            assert!(error < 1e-6, "{name}: NMSE {error}");
        }
        let (calls, submitted) = (log.submissions().pop().expect("submitted"), notes.last());
        assert_eq!(submitted.steps, 1);
        assert_eq!(calls, expected(&submitted, &log));
        assert_barriers_are_exact(&calls, 1, &log);
    }
}
