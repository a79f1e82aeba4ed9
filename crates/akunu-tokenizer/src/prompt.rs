//! A conversation as the parts of a prompt, which say what the template wrote and what people wrote.
//!
//! A rendered conversation is one text, in which a control token that a user typed looks like one of the template's own.
//! Encoded as a whole, it would let a user end the turn and speak as the system. So
//!
//! 1. the texts of control tokens in the messages are broken (see [`marker`](crate::marker)),
//! 2. the template renders the messages,
//! 3. the text is cut at the control tokens that are whole: these the template wrote,
//! 4. the text between them is mended, and encoded as text that has no control tokens.

use std::borrow::Cow;

use crate::error::TokenizerError;
use crate::marker::{self, Controls, NoMarker};
use crate::template::{ChatTemplate, Message, RenderOptions};
use crate::tokenizer::Tokenizer;

/// A part of a prompt.
///
/// ```no_run
/// use akunu_tokenizer::PromptPart;
/// # fn example(tokenizer: &akunu_tokenizer::Tokenizer, begin: u32) {
/// let ids = tokenizer.encode_parts(&[PromptPart::Control(begin), PromptPart::Text("Hello".into())]);
/// # drop(ids);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptPart {
    /// A control token. In a conversation only the template writes these.
    Control(u32),
    /// Text of the template or of a message. It never becomes a control token, even if it spells one.
    Text(String),
}

impl Tokenizer {
    /// A conversation as `template` writes it.
    ///
    /// No text of `messages` or of [`RenderOptions::variables`] becomes a control token: neither one that is typed in
    /// full, nor one of which the template writes the beginning or the end. (A template that writes both around a text, as
    /// in `<|{{ message.role }}|>`, means it.) Without a `bos_token` or `eos_token` in the options, the vocabulary's
    /// own are used.
    ///
    /// Tokens that a vocabulary calls *user-defined*, such as `<think>` in some, are text and may be in messages.
    pub fn render(
        &self,
        template: &ChatTemplate,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<Vec<PromptPart>, TokenizerError> {
        let mut messages = messages.to_vec();
        let mut options = options.clone();
        let marker = marker::break_controls(self.controls(), &mut messages, &mut options.variables);
        let marker = marker.map_err(|NoMarker| TokenizerError::NoMarker)?;
        let own_bos = || self.special_text(self.special.bos);
        let own_eos = || self.special_text(self.special.eos);
        options.bos_token = options.bos_token.or_else(own_bos);
        options.eos_token = options.eos_token.or_else(own_eos);
        let text = template.render(&messages, &options)?;
        Ok(self.cut(&text, marker))
    }

    /// The ids of a prompt. Nothing is put around it: a template writes its own BOS.
    pub fn encode_parts(&self, parts: &[PromptPart]) -> Vec<u32> {
        self.encoder.encode_parts(parts)
    }

    /// Cuts a rendered text at the control tokens that the template wrote.
    fn cut(&self, text: &str, marker: Option<char>) -> Vec<PromptPart> {
        let is_broken = |at: usize| marker.is_some_and(|marker| text[at..].starts_with(marker));
        let mend = |text: &str| {
            let mended = match marker {
                Some(marker) => Cow::Owned(text.replace(marker, "")),
                None => Cow::Borrowed(text),
            };
            (!mended.is_empty()).then(|| PromptPart::Text(mended.into_owned()))
        };
        let mut parts = Vec::new();
        let mut done = 0;
        for (place, id) in self.encoder.find_special(text) {
            if self.is_control(id) && !is_broken(place.end) {
                parts.extend(mend(&text[done..place.start]));
                parts.push(PromptPart::Control(id));
                done = place.end;
            }
        }
        parts.extend(mend(&text[done..]));
        parts
    }

    /// What finds control tokens in messages; made when first needed.
    fn controls(&self) -> &Controls {
        self.controls.get_or_init(|| {
            let ids = 0..self.vocab_size() as u32;
            let controls = ids.filter(|id| self.is_control(*id));
            Controls::new(controls.filter_map(|id| self.pieces.texts.get(id)))
        })
    }
}
