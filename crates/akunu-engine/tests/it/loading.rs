//! How far a device is with the weights, told while a model is loaded.

use std::sync::{Arc, Mutex};

use crate::support::files::write_folder;
use crate::support::fixture::Fixture;
use crate::support::tiny_llama;
use crate::support::watched::{Hooks, Watched};
use akunu_engine::{Loading, Model, ModelOptions, SamplingOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::SharedBytes;
use akunu_types::DType;

/// A device with memory of its own: it copies what it is given, in two pieces.
struct Copies {
    loading: Loading,
    /// Bytes taken and in all, before the first piece and after each.
    seen: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Copies {
    fn look(&self) {
        let figures = (self.loading.taken(), self.loading.total());
        self.seen.lock().expect("nobody panics").push(figures);
    }
}

impl Hooks for Copies {
    fn share(&mut self, bytes: &SharedBytes) {
        let len = (**bytes).as_ref().len();
        self.look();
        for piece in [0..len / 2, len / 2..len] {
            bytes.forget(piece);
            self.look();
        }
    }
}

/// Breaks when a bar would stand still while weights are copied, or would not end at all of them.
#[test]
fn a_copy_is_told_piece_by_piece() {
    let file = tiny_llama(DType::Q8_0);
    let bytes = std::fs::metadata(&file.path).expect("a file").len();
    let (loading, seen) = (Loading::default(), Arc::default());
    assert_eq!((loading.taken(), loading.total()), (0, 0));
    let hooks = Copies {
        loading: loading.clone(),
        seen: Arc::clone(&seen),
    };
    let device = Box::new(Watched::new(TwinDevice::new(), hooks));
    let options = ModelOptions::default();
    Model::load_watched(&file.path, device, options, &loading).expect("a whole model");
    let seen = seen.lock().expect("nobody panics");
    assert_eq!(*seen, [(0, bytes), (bytes / 2, bytes), (bytes, bytes)]);
}

/// Breaks when a device that reads weights where they lie seems to copy them.
#[test]
fn nothing_is_taken_where_weights_stay_in_the_file() {
    let file = tiny_llama(DType::Q8_0);
    let loading = Loading::default();
    let options = ModelOptions::default();
    let device = Box::new(TwinDevice::new());
    Model::load_watched(&file.path, device, options, &loading).expect("a whole model");
    assert_eq!(loading.taken(), 0);
    assert!(loading.total() > 0);
}

/// Breaks when the caller's suggestion is dropped, or replaces what only the model's files suggest.
#[test]
fn the_callers_suggestion_lies_over_that_of_the_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write_folder(&Fixture::read("transformers", "llama3"), folder.path());
    let says = r#"{"temperature": 0.6, "top_k": 30}"#;
    std::fs::write(path.join("generation_config.json"), says).expect("written");
    let options = ModelOptions {
        suggested: SamplingOptions {
            temperature: Some(0.2),
            top_p: Some(0.9),
            ..SamplingOptions::default()
        },
        ..ModelOptions::default()
    };
    let model = Model::load_with(&path, Box::new(TwinDevice::new()), options).expect("a model");
    let wanted = SamplingOptions {
        top_k: Some(30),
        ..options.suggested
    };
    assert_eq!(*model.suggested_sampling(), wanted);
}
