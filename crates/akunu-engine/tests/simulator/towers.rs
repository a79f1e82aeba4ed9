//! Vision towers on Metal's kernels, and the calls that a GPU gets.

use super::recorded::{assert_barriers_are_exact, device, expected};
use crate::support::files::write_gguf;
use crate::support::fixture::{Fixture, uniform};
use akunu_engine::vision::{Grid, VisionModel};
use akunu_kernels::case::nmse;

/// The Metal kernels, run in the simulator, give the rows of `transformers`, with a barrier wherever two launches would race and
/// nowhere else. Each image has a device of its own, so that the numbers of its buffers follow each other.
#[test]
fn towers_run_on_metals_kernels_with_exact_barriers() {
    for name in ["idefics3", "gemma3", "qwen3vl", "lfm2"] {
        let model = Fixture::read("vision", name);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = write_gguf(&model, folder.path());
        for (at, image) in model.images.iter().enumerate() {
            let (device, notes, log) = device();
            let mut tower = VisionModel::load(&path, Box::new(device)).expect("a whole tower");
            let (height, width) = (image.height, image.width);
            let n = height * width * tower.config().input.patch_numbers();
            let seed = format!("pixels {at}");
            let pixels: Vec<f32> = (1..=u64::from(n)).map(|i| uniform(&seed, i)).collect();
            let found = tower.see(&pixels, Grid { height, width }).expect("runs");
            let error = nmse(&found.rows, &image.rows);
            // The products of many rows have tiles of halves: 2^-11 of each factor.
            assert!(error < 1e-6, "{name}, image {at}: NMSE {error}");
            for (found, wanted) in found.deep.iter().zip(&image.deep) {
                let error = nmse(found, wanted);
                assert!(error < 1e-6, "{name}, image {at}: NMSE {error}");
            }
            let (calls, submitted) = (log.submissions().pop().expect("submitted"), notes.last());
            assert_eq!(submitted.steps, 1);
            assert_eq!(calls, expected(&submitted, &log));
            assert_barriers_are_exact(&calls, 1, &log);
        }
    }
}
