//! Any text as a chat template: compiling and rendering it never panics and always ends.
#![no_main]

use akunu_tokenizer::{ChatTemplate, Message, RenderOptions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let Ok(template) = ChatTemplate::new(source) else {
        return;
    };
    let messages = [Message::new("user", "Hello"), Message::new("assistant", "Hi")];
    let options = RenderOptions {
        add_generation_prompt: true,
        bos_token: Some("<s>".to_string()),
        now: Some(0),
        ..RenderOptions::default()
    };
    let _ = template.render(&messages, &options);
});
