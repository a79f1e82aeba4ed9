//! Adapters on every device: the specification, the fast one, and the real Metal kernels.

use std::path::Path;

use crate::devices::{simulator, twin};
use crate::support::exact_cpu::cpu;
use crate::support::random_adapter::RandomAdapter;
use crate::support::{DIM, TINY, TinyLlama};
use akunu_engine::{Adapters, GenerateOptions, Model, Progress, SessionOptions};
use akunu_program::Device;
use akunu_sim::Schedule;
use akunu_types::DType;

/// The tokens of three sequences in one batch: one plain, one with each adapter.
fn together(device: Box<dyn Device>, model: &Path, adapters: &[&Path; 2]) -> Vec<Vec<u32>> {
    let model = Model::load(model, device).expect("a whole model");
    let adapters = adapters.map(|path| model.load_adapter(path).expect("fits"));
    let settings = [
        Adapters::none(),
        Adapters::none().with(&adapters[0], 1.0),
        Adapters::none().with(&adapters[1], -0.5),
    ];
    let mut batch = model.batch(3).expect("memory");
    let mut found = Vec::new();
    for (at, adapters) in settings.iter().enumerate() {
        let options = SessionOptions {
            context: Some(64),
            chunk: 16,
            ..SessionOptions::default()
        };
        let mut session = model.session(options).expect("memory");
        session.set_adapters(adapters).expect("of this model");
        let prompt: Vec<u32> = (0..3 + 5 * at as u32).map(|i| i * 7 % 256).collect();
        let options = GenerateOptions {
            max_tokens: 3,
            ignore_end: true,
            ..Default::default()
        };
        let joined = batch.join_prompt(session, prompt, options);
        found.push((joined.expect("room"), Vec::new()));
    }
    while batch.is_running() {
        for event in batch.step() {
            match event.progress {
                Progress::Token(token) => {
                    let of = found.iter_mut().find(|(id, _)| *id == event.sequence);
                    of.expect("one of ours").1.push(token.id);
                }
                Progress::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
    }
    found.into_iter().map(|(_, tokens)| tokens).collect()
}

/// Prompts of several rows and steps of three: breaks when `scale_rows` on a device takes the factor of another row.
#[test]
fn adapters_give_the_same_tokens_on_every_device() {
    let file = TinyLlama {
        dtype: DType::F16,
        ..TINY
    }
    .write();
    let folder = tempfile::tempdir().expect("a folder");
    let head_dim = DIM as usize / TINY.n_heads as usize;
    let paths = [(4, 1), (7, 2)].map(|(rank, seed)| {
        RandomAdapter::for_model(&file.path, head_dim, rank, seed).write_gguf(folder.path())
    });
    let paths = [paths[0].as_path(), paths[1].as_path()];
    let wanted = together(twin(), &file.path, &paths);
    assert!(wanted.iter().all(|tokens| tokens.len() == 3), "{wanted:?}");
    for device in [cpu(), simulator(Schedule::Random(5))] {
        let name = device.name();
        assert_eq!(together(device, &file.path, &paths), wanted, "{name}");
    }
}
