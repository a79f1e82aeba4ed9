//! A GGUF file with a vocabulary in it: building the tokenizer and using it never panics.
#![no_main]

use akunu_gguf::GgufFile;
use akunu_tokenizer::{ChatTemplate, EncodeOptions, Tokenizer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, String)| {
    let (bytes, text) = input;
    let Ok(file) = GgufFile::parse(bytes) else {
        return;
    };
    let _ = ChatTemplate::from_gguf(file.metadata());
    let Ok(tokenizer) = Tokenizer::from_gguf(file.metadata()) else {
        return;
    };
    for parse_special in [false, true] {
        let options = EncodeOptions {
            add_special: true,
            parse_special,
        };
        if let Ok(ids) = tokenizer.encode(&text, options) {
            let _ = tokenizer.decode(&ids);
        }
    }
});
