//! Any bytes as a safetensors file: every listed tensor lies inside of it and apart from the others.
#![no_main]

use akunu_gguf::read_safetensors_header;
use libfuzzer_sys::fuzz_target;
use std::hint::black_box;

fuzz_target!(|bytes: &[u8]| {
    let Ok(tensors) = read_safetensors_header(std::path::Path::new("x"), bytes) else {
        return;
    };
    let mut end = 0;
    for tensor in tensors {
        assert!(tensor.range.start >= end, "tensors overlap");
        end = tensor.range.end;
        let data = bytes
            .get(tensor.range)
            .expect("a checked range is inside of the file");
        assert_eq!(
            8 * data.len(),
            tensor.dims.n_elements() * tensor.element.bitsize()
        );
        black_box(data.iter().fold(0u8, |sum, byte| sum ^ byte));
    }
});
