//! Filling in the middle: a prompt made of the text before and after, with the model's own tokens for this.
//!
//! ```text
//! ⟨prefix⟩ before ⟨suffix⟩ after ⟨middle⟩ …the answer
//! ```

use akunu::{EncodeOptions, Tokenizer};

use super::Prompt;
use crate::error::ApiError;

/// The parts of a prompt, in order.
#[derive(Clone, Copy)]
enum Part {
    Mark(&'static str),
    Before,
    After,
}

use Part::{After, Before, Mark};

/// How models were trained for it.
const STYLES: [&[Part]; 6] = [
    // Qwen 2.5 Coder, CodeGemma
    &[
        Mark("<|fim_prefix|>"),
        Before,
        Mark("<|fim_suffix|>"),
        After,
        Mark("<|fim_middle|>"),
    ],
    // StarCoder, Granite, Seed-OSS
    &[
        Mark("<fim_prefix>"),
        Before,
        Mark("<fim_suffix>"),
        After,
        Mark("<fim_middle>"),
    ],
    // GLM 4
    &[
        Mark("<|code_prefix|>"),
        Before,
        Mark("<|code_suffix|>"),
        After,
        Mark("<|code_middle|>"),
    ],
    // DeepSeek Coder
    &[
        Mark("<｜fim▁begin｜>"),
        Before,
        Mark("<｜fim▁hole｜>"),
        After,
        Mark("<｜fim▁end｜>"),
    ],
    // CodeLlama
    &[
        Mark("▁<PRE>"),
        Before,
        Mark("▁<SUF>"),
        After,
        Mark("▁<MID>"),
    ],
    // Codestral
    &[Mark("[SUFFIX]"), After, Mark("[PREFIX]"), Before],
];

/// Tokens with which a model goes on to another file, or fills up: what was asked for ends there.
const ENDS: [&str; 6] = [
    "<|fim_pad|>",
    "<|file_sep|>",
    "<|repo_name|>",
    "<fim_pad>",
    "<file_sep>",
    "<|endoftext|>",
];

/// Marks before a file of the same project.
const FILES: [&str; 2] = ["<|file_sep|>", "<file_sep>"];

/// The text around a gap.
#[derive(Default)]
pub(crate) struct Gap {
    pub before: String,
    pub after: String,
    /// Names and texts of other files.
    pub files: Vec<(String, String)>,
}

impl Gap {
    /// The prompt, and the tokens that end its answer.
    pub fn prompt(
        &self,
        field: &str,
        tokenizer: &Tokenizer,
    ) -> Result<(Prompt, Vec<u32>), ApiError> {
        let is_known = |part: &Part| match part {
            Mark(mark) => id_of(tokenizer, mark).is_some(),
            Before | After => true,
        };
        let Some(style) = STYLES.iter().find(|style| style.iter().all(is_known)) else {
            let message = format!(
                "{field}: this model has no tokens for filling in the middle; a model for code does, such as qwen2.5-coder"
            );
            return Err(ApiError::bad_field(field, message));
        };
        let (mut ids, _) = tokenizer.around();
        let text = |text: &str| tokenizer.encode(text, EncodeOptions::default());
        let file = FILES.iter().find_map(|mark| id_of(tokenizer, mark));
        for (name, content) in &self.files {
            ids.extend(file);
            ids.extend(text(&format!("{name}\n{content}\n")));
        }
        for part in style.iter() {
            match part {
                Mark(mark) => ids.extend(id_of(tokenizer, mark)),
                Before => ids.extend(text(&self.before)),
                After => ids.extend(text(&self.after)),
            }
        }
        let ends = ENDS.iter().filter_map(|mark| id_of(tokenizer, mark));
        Ok((Prompt::plain(ids), ends.collect()))
    }
}

/// The token that a text is by itself.
fn id_of(tokenizer: &Tokenizer, mark: &str) -> Option<u32> {
    let options = EncodeOptions {
        parse_special: true,
        ..EncodeOptions::default()
    };
    match tokenizer.encode(mark, options)[..] {
        [id] => Some(id),
        _ => None,
    }
}
