//! Any bytes as a GGUF file: opened and walked to the last value and tensor, or refused.
#![no_main]

use akunu_gguf::{GgufFile, Value, WeightStore};
use libfuzzer_sys::fuzz_target;
use std::hint::black_box;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = GgufFile::parse(bytes.to_vec()) else {
        return;
    };
    for (key, value) in file.metadata().iter() {
        black_box(key);
        walk(value);
    }
    for tensor in file.tensors() {
        let view = file.tensor(&tensor.name).expect("a listed tensor is found");
        black_box(view.bytes.iter().fold(0u8, |sum, byte| sum ^ byte));
    }
    if let Ok(store) = WeightStore::from_gguf(file) {
        black_box(store.iter().map(|weight| weight.size()).sum::<usize>());
        black_box(store.output());
    }
});

fn walk(value: Value<'_>) {
    match value {
        Value::Array(array) => {
            assert_eq!(
                array.iter().count(),
                array.len(),
                "a checked array can be walked"
            );
            array.iter().for_each(walk);
        }
        other => {
            black_box(other);
        }
    }
}
