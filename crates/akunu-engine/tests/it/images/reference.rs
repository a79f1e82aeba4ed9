//! Small models with images against `transformers`, from both containers, on two devices, read in one piece and in several.

use std::path::Path;

use akunu_engine::{Model, SessionOptions};
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::Device;

use crate::support::exact_cpu::cpu;
use crate::support::files::{write_folder, write_gguf};
use crate::support::fixture::Fixture;
use crate::support::pictured::{beginning, read};

/// As in `reference`, where a mistake in a formula gives 1e-4 and more.
const BOUND: f64 = 5e-7;

fn devices() -> [Box<dyn Device>; 2] {
    [Box::new(TwinDevice::new()), cpu()]
}

/// The largest error after any of the recorded beginnings, read in pieces of up to `chunk` tokens.
fn worst_error(fixture: &Fixture, path: &Path, device: Box<dyn Device>, chunk: u32) -> f64 {
    let loaded = Model::load(path, device).unwrap_or_else(|error| panic!("{error}"));
    let options = SessionOptions {
        context: Some(64),
        chunk,
        ..SessionOptions::default()
    };
    let mut session = loaded.session(options).expect("memory");
    let mut worst: f64 = 0.0;
    for (&n, wanted) in &fixture.logits {
        let prompt = beginning(fixture, n);
        session.feed_prompt(prompt).expect("it fits");
        let found = session.logits().expect("there are some");
        worst = worst.max(nmse(&found, wanted));
    }
    worst
}

fn agrees(name: &str, chunks: &[u32]) {
    let fixture = read(name);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths = [
        write_gguf(&fixture, folder.path()),
        write_folder(&fixture, folder.path()),
    ];
    for path in &paths {
        for &chunk in chunks {
            for device in devices() {
                let what = format!("{name}, {}, {}, {chunk}", path.display(), device.name());
                let error = worst_error(&fixture, path, device, chunk);
                assert!(error < BOUND, "{what}: NMSE {error:e}");
            }
        }
    }
}

/// Rows of images are like those of tokens. Fails when features are placed elsewhere, or are multiplied by something.
#[test]
fn llama() {
    agrees("llama", &[64, 7]);
}

/// The rows of an image see all of it, beyond windows too; embeddings are multiplied by a number, and features are not.
#[test]
fn gemma3() {
    agrees("gemma3", &[64, 13]);
}

/// The first pairs of a head turn by time, those behind them by height, the last by width.
#[test]
fn qwen2vl() {
    agrees("qwen2vl", &[64, 7]);
}

/// The pairs of the axes take turns; feature maps are added after the first two layers.
#[test]
fn qwen3vl() {
    agrees("qwen3vl", &[64, 7]);
}

/// The pairs of the axes take turns among the quarter of a head that turns; other layers have a state.
#[test]
fn qwen35() {
    agrees("qwen35", &[64, 7]);
}
