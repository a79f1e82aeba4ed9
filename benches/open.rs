//! How long opening a model takes. Needs `cargo xtask assets smollm2 gemma3-270m minilm`.

use akunu_gguf::{GgufFile, WeightStore};
use criterion::Criterion;
use std::hint::black_box;
use std::path::PathBuf;

/// Models: one with 272 tensors, one with a vocabulary of 262,144 tokens, one in safetensors.
const MODELS: [(&str, &str); 3] = [
    ("smollm2", "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
    ("gemma3-270m", "gemma3-270m/gemma-3-270m.Q4_K_M.gguf"),
    ("minilm", "minilm"),
];

fn asset(name: &str) -> PathBuf {
    let (asset, file) = name.split_once('/').unwrap_or((name, ""));
    akunu_assets::path(asset, file)
}

fn open(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("open");
    for (name, file) in MODELS {
        let path = asset(file);
        group.bench_function(name, |bench| {
            bench.iter(|| {
                WeightStore::open(black_box(&path))
                    .expect("a valid model")
                    .len()
            });
        });
    }
    group.finish();
}

fn walk_vocabulary(criterion: &mut Criterion) {
    let file = GgufFile::open(asset(MODELS[1].1)).expect("a valid model");
    criterion.bench_function("walk 262144 tokens", |bench| {
        bench.iter(|| {
            let tokens = file.metadata().strings("tokenizer.ggml.tokens");
            let tokens = tokens.expect("strings").expect("a vocabulary");
            tokens.map(str::len).sum::<usize>()
        });
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    open(&mut criterion);
    walk_vocabulary(&mut criterion);
    criterion.final_summary();
}
