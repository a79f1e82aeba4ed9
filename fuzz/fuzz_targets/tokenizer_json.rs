//! Any text as a `tokenizer.json`: building the tokenizer and using it never panics.
#![no_main]

use akunu_tokenizer::{EncodeOptions, Tokenizer, TokenizerConfig};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let config = TokenizerConfig::default();
    let Ok(tokenizer) = Tokenizer::from_json(bytes, &config, Path::new("x")) else {
        return;
    };
    for parse_special in [false, true] {
        let options = EncodeOptions {
            add_special: true,
            parse_special,
            ..EncodeOptions::default()
        };
        let ids = tokenizer.encode("ab a\n 12 é🦀 <s> [UNK]", options);
        assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
        let _ = tokenizer.decode(&ids);
    }
});
