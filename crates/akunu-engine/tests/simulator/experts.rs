//! Mixtures of experts on a GPU's kernels.

use akunu_engine::{Model, SessionOptions};
use akunu_kernels::case::nmse;
use akunu_sim::Schedule;

use super::devices::simulator;
use crate::support::files::write_gguf;
use crate::support::fixture::Fixture;

/// Single tokens are multiplied as exactly as in `reference`. The products of many rows have tiles of halves: 2^-11 of each
/// factor. A router that chose another expert would be off by more than a hundredth.
const BOUNDS: [(u32, f64); 2] = [(1, 5e-7), (7, 1e-4)];

/// Routers of each kind, sinks and windows, an expert of all tokens: the Metal kernels, run in the simulator, give what
/// `transformers` gives. Fails when rows of a step get each other's experts.
#[test]
fn experts_run_on_metals_kernels() {
    for name in ["qwen2moe", "dots1", "gpt-oss"] {
        let fixture = Fixture::read("transformers", name);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = write_gguf(&fixture, folder.path());
        for (chunk, bound) in BOUNDS {
            let model = Model::load(&path, simulator(Schedule::Random(9))).expect("a whole model");
            let options = SessionOptions {
                context: Some(64),
                chunk,
                ..SessionOptions::default()
            };
            let mut session = model.session(options).expect("memory");
            session.feed(&fixture.tokens[..20]).expect("fits");
            let found = session.logits().expect("there are some");
            let error = nmse(&found, &fixture.logits[&20]);
            assert!(error < bound, "{name}, {chunk} at a time: NMSE {error:e}");
        }
    }
}
