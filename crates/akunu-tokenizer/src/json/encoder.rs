//! Encoding as a `tokenizer.json` says.
//!
//! ```text
//! text → cut out added tokens → normalize → cut out normalized added tokens → cut into pieces → tokens of each piece
//!      → tokens around the whole
//! ```

use std::borrow::Cow;
use std::ops::Range;

use super::added::Added;
use super::cuts::{Cut, cut};
use crate::bpe::{Bpe, SeenWords};
use crate::normalizer::Normalizer;
use crate::prompt::PromptPart;
use crate::tokenizer::EncodeOptions;
use crate::wordpiece::WordPiece;

/// A whole `tokenizer.json`.
#[derive(Debug)]
pub(crate) struct JsonEncoder {
    pub(super) added: Added,
    pub(super) normalizer: Normalizer,
    pub(super) cuts: Vec<Cut>,
    pub(super) model: PieceModel,
    /// Ids before and after a text when special tokens are asked for.
    pub(super) around: Around,
}

/// What turns a piece into tokens.
#[derive(Debug)]
pub(super) enum PieceModel {
    Bpe(Bpe),
    WordPiece(WordPiece),
}

/// Ids around a text.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub before: Vec<u32>,
    pub after: Vec<u32>,
}

impl JsonEncoder {
    /// Refuses ids around the text that no token has.
    pub(super) fn check_ids(&self, n_tokens: usize) -> Result<(), String> {
        let mut ids = self.around.before.iter().chain(&self.around.after);
        match ids.find(|id| **id as usize >= n_tokens) {
            Some(id) => Err(format!(
                "has a post-processor with the id {id}, but there are {n_tokens} tokens"
            )),
            None => Ok(()),
        }
    }

    /// The ids before and after a text.
    pub fn around(&self) -> (Vec<u32>, Vec<u32>) {
        (self.around.before.clone(), self.around.after.clone())
    }

    pub fn encode(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        if options.add_special {
            ids.extend(&self.around.before);
        }
        let mut seen = SeenWords::default();
        self.encode_text(text, true, options.parse_special, &mut seen, &mut ids);
        if options.add_special {
            ids.extend(&self.around.after);
        }
        ids
    }

    pub fn encode_parts(&self, parts: &[PromptPart]) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut seen = SeenWords::default();
        for (at, part) in parts.iter().enumerate() {
            match part {
                PromptPart::Control(id) => ids.push(*id),
                PromptPart::Text(text) => {
                    self.encode_text(text, at == 0, false, &mut seen, &mut ids);
                }
            }
        }
        ids
    }

    /// The added tokens in a text, and where they stand with the spaces that they swallow.
    pub fn find_special(&self, text: &str) -> Vec<(Range<usize>, u32)> {
        self.added.find_all(text)
    }

    /// Appends the tokens of a text; `begins` where it begins the whole.
    fn encode_text(
        &self,
        text: &str,
        begins: bool,
        parse_special: bool,
        seen: &mut SeenWords,
        ids: &mut Vec<u32>,
    ) {
        let Added { plain, normalized } = &self.added;
        plain.split(text, parse_special, &mut |(place, id)| {
            if let Some(id) = id {
                return ids.push(id);
            }
            let begins = begins && place.start == 0;
            let text = self.normalizer.run(Cow::Borrowed(&text[place]));
            normalized.split(&text, parse_special, &mut |(place, id)| {
                if let Some(id) = id {
                    return ids.push(id);
                }
                let begins = begins && place.start == 0;
                cut(
                    &self.cuts,
                    &text[place],
                    begins,
                    &mut |piece| match &self.model {
                        PieceModel::Bpe(bpe) => bpe.encode(piece, seen, ids),
                        PieceModel::WordPiece(words) => words.encode(piece, ids),
                    },
                );
            });
        });
    }
}
