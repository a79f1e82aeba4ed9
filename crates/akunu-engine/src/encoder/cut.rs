//! Texts and pairs of texts as tokens, cut to the model's maximum length.

use akunu_tokenizer::EncodeOptions;

use super::Encoder;
use super::text::{CutText, EncoderText};
use crate::error::EngineError;

impl Encoder {
    /// The tokens of a text. What does not fit is cut off at its end.
    pub fn text(&self, text: &str) -> Result<CutText, EngineError> {
        let (before, after) = self.tokenizer().around();
        let mut body = self.tokenizer().encode(text, EncodeOptions::default());
        if body.is_empty() {
            return Err(EngineError::EmptyText);
        }
        let room = self.max_tokens().saturating_sub(before.len() + after.len());
        let n_cut = body.len().saturating_sub(room);
        body.truncate(room);
        let tokens = [before, body, after].concat();
        Ok(CutText {
            text: EncoderText {
                n_first: tokens.len(),
                tokens,
            },
            n_cut,
        })
    }

    /// The tokens of two texts, one after the other. What does not fit is cut off at the end of the longer one.
    pub fn pair(&self, first: &str, second: &str) -> Result<CutText, EngineError> {
        let (before, after) = self.tokenizer().around();
        let encode = |text| self.tokenizer().encode(text, EncodeOptions::default());
        let (mut first, mut second) = (encode(first), encode(second));
        if first.is_empty() || second.is_empty() {
            return Err(EngineError::EmptyText);
        }
        let around = before.len() + 2 * after.len();
        let room = self.max_tokens().saturating_sub(around);
        let n_cut = (first.len() + second.len()).saturating_sub(room);
        for _ in 0..n_cut {
            if first.len() > second.len() {
                first.pop();
            } else {
                second.pop();
            }
        }
        let first = [before, first, after.clone()].concat();
        let n_first = first.len();
        Ok(CutText {
            text: EncoderText {
                tokens: [first, second, after].concat(),
                n_first,
            },
            n_cut,
        })
    }
}
