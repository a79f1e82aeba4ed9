//! Speed: megabytes of text a second, and how long a vocabulary takes to load.

use akunu_gguf::GgufFile;
use akunu_tokenizer::{EncodeOptions, Tokenizer};
use criterion::{Criterion, Throughput};
use std::hint::black_box;

const PAGE: &str = include_str!("../crates/akunu-tokenizer/tests/fixtures/mixed.txt");

const MODELS: &[(&str, &str)] = &[
    ("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    ("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf"),
];

fn load(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10);
    for (name, file) in MODELS {
        let file = GgufFile::open(akunu_assets::path(name, file)).expect("a real model");
        group.bench_function(*name, |bencher| {
            bencher.iter(|| Tokenizer::from_gguf(black_box(file.metadata())).expect("a tokenizer"));
        });
    }
    group.finish();
}

/// One page, and 64 of the same, in which words repeat as they do in long texts.
fn encode(criterion: &mut Criterion) {
    for (name, file) in MODELS {
        let file = GgufFile::open(akunu_assets::path(name, file)).expect("a real model");
        let tokenizer = Tokenizer::from_gguf(file.metadata()).expect("a tokenizer");
        let mut group = criterion.benchmark_group(format!("encode {name}"));
        group.sample_size(10);
        for n_pages in [1, 64] {
            let text = PAGE.repeat(n_pages);
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_function(format!("{n_pages} pages"), |bencher| {
                bencher.iter(|| tokenizer.encode(black_box(&text), EncodeOptions::default()));
            });
        }
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    load(&mut criterion);
    encode(&mut criterion);
    criterion.final_summary();
}
