//! Many texts continued together.

use std::ffi::{c_char, c_void};

use akunu::{EncodeOptions, GenerateOptions, Model, SessionOptions};

use crate::border::{self, AkunuOnText, Listener};
use crate::handles;
use crate::model::AkunuModel;
use crate::options::{self, AkunuOptions};
use crate::status::{AkunuStatus, call};

/// Continues many texts, several of them in every step, which is faster than one after the other. `on_text` is called once for
/// each, in their order, with the whole continuation and `context`. The options may be null; it uses context, stop, max_tokens,
/// json_schema, grammar, regex and those of sampling. Without them it always takes the best token.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_generate_all(
    model: *const AkunuModel,
    texts: *const *const c_char,
    n_texts: usize,
    options: *const AkunuOptions,
    on_text: AkunuOnText,
    context: *mut c_void,
) -> AkunuStatus {
    let listener = Listener { on_text, context };
    call(|| {
        let model = handles::get::<Model>(model)?;
        let texts = border::texts(texts, n_texts, "texts")?;
        let values = options::read(options)?;
        let default = GenerateOptions::default();
        let wanted = GenerateOptions {
            max_tokens: values.max_tokens.unwrap_or(default.max_tokens),
            sampling: values.sampling.over(default.sampling),
            loop_window: values.loop_window(default.loop_window),
            grammar: values.grammar(&model)?,
            stop: values.stop,
            ..default
        };
        let session = SessionOptions {
            context: values.context,
            ..SessionOptions::default()
        };
        let encode = EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        };
        let encode = |text: &String| model.tokenizer().encode(text, encode);
        let prompts: Vec<Vec<u32>> = texts.iter().map(encode).collect();
        for answer in model.generate_all(&prompts, session, &wanted)? {
            if !listener.hear(&answer.text) {
                break;
            }
        }
        Ok(())
    })
}
