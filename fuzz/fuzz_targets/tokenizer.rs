//! A GGUF file with a vocabulary in it: building the tokenizer and using it never panics.
#![no_main]

use akunu_gguf::GgufFile;
use akunu_tokenizer::{ChatTemplate, EncodeOptions, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = GgufFile::parse(bytes.to_vec()) else {
        return;
    };
    let _ = ChatTemplate::from_gguf(file.metadata());
    let Ok(tokenizer) = Tokenizer::from_gguf(file.metadata()) else {
        return;
    };
    // The end of the file is the text, so that the fuzzer can change it too.
    let tail = &bytes[bytes.len().saturating_sub(64)..];
    let text = format!("ab a\n 12 é🦀 {}", String::from_utf8_lossy(tail));
    for parse_special in [false, true] {
        let options = EncodeOptions {
            add_special: true,
            parse_special,
            ..EncodeOptions::default()
        };
        let ids = tokenizer.encode(&text, options);
        assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
        let _ = tokenizer.decode(&ids);
    }
});
