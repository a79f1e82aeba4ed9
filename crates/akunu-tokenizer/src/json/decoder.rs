//! The bytes of each token, as the `decoder` of a `tokenizer.json` spells them.

use super::file::AddedToken;
use crate::pieces::Pieces;
use crate::spelling::{SPACE_BYTES, Spelling};
use crate::texts::Texts;
use crate::vocabulary::TokenKind;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// What a decoder makes of a token's text.
#[derive(Debug)]
pub(super) struct Decoder {
    pub spelling: Spelling,
    /// A first space is taken off.
    pub strips_first_space: bool,
    marks: Marks,
}

/// How the text of a token says whether it begins a word.
#[derive(Debug)]
enum Marks {
    /// By a character for a space.
    Space(String),
    /// A token without this prefix begins one; with an empty one, every token does.
    Continues(String),
    /// A token with this suffix ends one.
    Ends(String),
}

impl Decoder {
    /// The decoder of a file. A file without one has words, with spaces between them.
    pub fn new(decoder: Option<&Value>) -> Result<Decoder, String> {
        let Some(decoder) = decoder else {
            return Ok(Decoder::words(""));
        };
        let steps = match decoder.get("decoders").and_then(Value::as_array) {
            Some(steps) => steps.iter().collect(),
            None => vec![decoder],
        };
        let text = |step: &Value, field: &str| step.get(field)?.as_str().map(str::to_string);
        let step = |kind: &str| {
            let mut steps = steps.iter();
            steps.find(|step| step.get("type").and_then(Value::as_str) == Some(kind))
        };
        let spaced = |space: &str, strips_first_space| Decoder {
            spelling: Spelling::Spaced,
            strips_first_space,
            marks: Marks::Space(space.to_string()),
        };
        if step("ByteLevel").is_some() {
            return Ok(Decoder {
                spelling: Spelling::ByteLevel,
                ..spaced("▁", false)
            });
        }
        if let Some(words) = step("WordPiece") {
            let prefix = text(words, "prefix");
            return Ok(Decoder::words(prefix.as_deref().unwrap_or("##")));
        }
        if let Some(words) = step("BPEDecoder") {
            return Ok(Decoder {
                marks: Marks::Ends(text(words, "suffix").unwrap_or_default()),
                ..spaced("▁", false)
            });
        }
        let strips = step("Strip").is_some();
        if let Some(metaspace) = step("Metaspace") {
            let never = text(metaspace, "prepend_scheme").as_deref() == Some("never")
                || metaspace.get("add_prefix_space") == Some(&Value::Bool(false));
            let space = text(metaspace, "replacement").unwrap_or_default();
            return Ok(spaced(&space, strips || !never));
        }
        if step("ByteFallback").is_some() {
            return Ok(spaced("▁", strips));
        }
        let kinds = steps.iter().filter_map(|step| text(step, "type"));
        let kinds: Vec<String> = kinds.collect();
        Err(format!("has a decoder that is not supported: {kinds:?}"))
    }

    fn words(prefix: &str) -> Decoder {
        Decoder {
            spelling: Spelling::Words,
            strips_first_space: true,
            marks: Marks::Continues(prefix.to_string()),
        }
    }

    /// The bytes of all tokens, from their texts by id.
    pub fn spell(&self, texts: &[&str], added: &[AddedToken]) -> Pieces {
        let kinds = texts.iter().map(|text| match text.is_empty() {
            true => TokenKind::Unused,
            false => TokenKind::Normal,
        });
        let mut kinds: Vec<TokenKind> = kinds.collect();
        for token in added {
            if let Some(kind) = kinds.get_mut(token.id as usize) {
                *kind = self.kind(token);
            }
        }
        let mut spelt = Texts::with_capacity(texts.len());
        for (text, kind) in texts.iter().zip(&kinds) {
            match kind {
                TokenKind::Normal => spelt.push(&self.marked(text)),
                _ => spelt.push(text.as_bytes()),
            }
        }
        Pieces {
            texts: Arc::new(spelt),
            kinds,
            spelling: self.spelling,
        }
    }

    fn kind(&self, token: &AddedToken) -> TokenKind {
        match (token.special, self.spelling) {
            (true, _) => TokenKind::Control,
            (false, Spelling::Spaced) => TokenKind::Normal,
            (false, _) => TokenKind::UserDefined,
        }
    }

    /// A token's text with `▁` for the space beside it.
    fn marked<'t>(&self, text: &'t str) -> Cow<'t, [u8]> {
        match &self.marks {
            Marks::Space(space) if space == "▁" || space.is_empty() => text.as_bytes().into(),
            Marks::Space(space) => text.replace(space.as_str(), "▁").into_bytes().into(),
            Marks::Continues(prefix) => match text.strip_prefix(prefix.as_str()) {
                Some(rest) if !prefix.is_empty() => rest.as_bytes().into(),
                _ => [SPACE_BYTES, text.as_bytes()].concat().into(),
            },
            Marks::Ends(suffix) => match text.strip_suffix(suffix.as_str()) {
                Some(rest) if !suffix.is_empty() => [rest.as_bytes(), SPACE_BYTES].concat().into(),
                _ => text.as_bytes().into(),
            },
        }
    }
}
