//! Breaks up the texts of control tokens in messages.
//!
//! ```text
//! a user typed       Hi<|im_end|>
//! what is rendered   Hi<□|im_end|>        □ is the marker
//! ```
//!
//! The marker is a noncharacter, U+FDD0 to U+FDEF, that the messages do not contain. It stands
//!
//! 1. after the first character of every control token's text, whole, overlapping or in other letter case,
//! 2. after the last character of a text that ends with the beginning of one, and after the first character of a text
//!    that begins with the end of one: what the template writes beside it could be the rest.
//!
//! It is never the first character of a text. So a control token with a marker right behind it, as a token of one
//! character has, was not written by the template.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::search::Search;
use crate::template::Message;

/// Characters that Unicode sets aside for the inside of programs.
const NONCHARACTERS: RangeInclusive<char> = '\u{FDD0}'..='\u{FDEF}';

/// The longest beginning or end of a control token that is looked for. Real tokens are shorter.
const MAX_PART: usize = 256;

/// Finds what could become a control token.
#[derive(Debug)]
pub(crate) struct Controls {
    /// The whole texts in small letters.
    whole: Search,
    /// The texts in small letters, sorted.
    forwards: Vec<Vec<u8>>,
    /// The same written backwards, sorted.
    backwards: Vec<Vec<u8>>,
}

impl Controls {
    /// Finds control tokens with these texts.
    pub fn new<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Controls {
        let mut forwards: Vec<Vec<u8>> = texts
            .filter(|text| !text.is_empty())
            .map(<[u8]>::to_ascii_lowercase)
            .collect();
        let reversed = |text: &Vec<u8>| text.iter().rev().copied().collect();
        let mut backwards: Vec<Vec<u8>> = forwards.iter().map(reversed).collect();
        forwards.sort_unstable();
        backwards.sort_unstable();
        Controls {
            whole: Search::new(forwards.iter().map(Vec::as_slice)),
            forwards,
            backwards,
        }
    }

    /// Where markers go, as ascending bytes of `text`.
    fn breaks(&self, text: &str) -> Vec<usize> {
        let mut breaks = Vec::new();
        // Every character stays at its place.
        let small = text.to_ascii_lowercase();
        let mut from = 0;
        while let Some((found, _)) = self.whole.find(small.as_bytes(), from) {
            from = after_character(text, found.start);
            breaks.push(from);
        }
        let (begin, end) = (text.len() - text.trim_start().len(), text.trim_end().len());
        let said = text.as_bytes().get(begin..end).unwrap_or_default();
        if ends_with_beginning(said.iter(), &self.forwards) {
            breaks.push(end);
        }
        if ends_with_beginning(said.iter().rev(), &self.backwards) {
            breaks.push(after_character(text, begin));
        }
        breaks.sort_unstable();
        breaks.dedup();
        breaks
    }
}

/// Whether `text` ends with the beginning of one of these sorted texts. A whole one is no beginning.
fn ends_with_beginning<'t>(
    text: impl DoubleEndedIterator<Item = &'t u8>,
    sorted: &[Vec<u8>],
) -> bool {
    let mut end: Vec<u8> = text
        .rev()
        .take(MAX_PART)
        .map(u8::to_ascii_lowercase)
        .collect();
    end.reverse();
    let mut ends = (0..end.len()).map(|from| &end[from..]);
    ends.any(|end| {
        let next = sorted.partition_point(|whole| whole.as_slice() <= end);
        sorted.get(next).is_some_and(|whole| whole.starts_with(end))
    })
}

/// The byte after the character at `at`.
fn after_character(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(0, char::len_utf8)
}

/// Every noncharacter is in use already.
#[derive(Debug)]
pub(crate) struct NoMarker;

/// Breaks the control tokens in a conversation; returns the marker, if one was needed.
pub(crate) fn break_controls(
    controls: &Controls,
    messages: &mut [Message],
    variables: &mut Map<String, Value>,
) -> Result<Option<char>, NoMarker> {
    let mut free: Vec<char> = NONCHARACTERS.collect();
    let mut n_breaks = 0;
    each_text(messages, variables, &mut |text| {
        free.retain(|marker| !text.contains(*marker));
        n_breaks += controls.breaks(text).len();
    });
    if n_breaks == 0 {
        return Ok(None);
    }
    let marker = *free.first().ok_or(NoMarker)?;
    each_text(messages, variables, &mut |text| {
        for at in controls.breaks(text).into_iter().rev() {
            text.insert(at, marker);
        }
    });
    Ok(Some(marker))
}

/// Shows every text of a conversation to `see`, which may change it.
fn each_text(
    messages: &mut [Message],
    variables: &mut Map<String, Value>,
    see: &mut impl FnMut(&mut String),
) {
    for message in messages {
        see(&mut message.role);
        each_text_of(&mut message.content, see);
        each_text_of_map(&mut message.extra, see);
    }
    each_text_of_map(variables, see);
}

fn each_text_of(value: &mut Value, see: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(values) => values.iter_mut().for_each(|value| each_text_of(value, see)),
        Value::Object(map) => each_text_of_map(map, see),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Names are texts too: a tool call may have any.
fn each_text_of_map(map: &mut Map<String, Value>, see: &mut impl FnMut(&mut String)) {
    let seen = std::mem::take(map)
        .into_iter()
        .map(|(mut name, mut value)| {
            see(&mut name);
            each_text_of(&mut value, see);
            (name, value)
        });
    *map = seen.collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn controls() -> Controls {
        let texts = ["<|im_end|>", "ABA", "#"];
        Controls::new(texts.iter().map(|text| text.as_bytes()))
    }

    fn marked(text: &str) -> String {
        let mut messages = [Message::new("user", text)];
        let marker = break_controls(&controls(), &mut messages, &mut Map::new());
        let marked = messages[0].content.as_str().expect("a text").to_string();
        match marker.expect("a marker") {
            Some(marker) => marked.replace(marker, "□"),
            None => marked,
        }
    }

    #[test]
    fn markers_stand_where_a_token_could_begin_or_end() {
        for (text, wanted) in [
            ("nothing to see", "nothing to see"),
            ("", ""),
            ("x<|im_end|>y", "x<□|im_end|>y"),
            ("x<|IM_End|>y", "x<□|IM_End|>y"),
            ("<|im_<|im_end|>end|>", "<|im_<□|im_end|>end|>"),
            ("_ABABA_", "_A□BA□BA_"),
            ("x#y", "x#□y"),
            ("so <|im_en  ", "so <|im_en□  "),
            ("  d|>rest", "  d□|>rest"),
        ] {
            assert_eq!(marked(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_marker_that_somebody_used_is_not_taken() {
        let said = "\u{FDD0}<|im_end|>";
        let mut messages = [Message::new("user", said)];
        let marker = break_controls(&controls(), &mut messages, &mut Map::new());
        assert_eq!(marker.expect("a marker"), Some('\u{FDD1}'));
        assert_eq!(messages[0].content, "\u{FDD0}<\u{FDD1}|im_end|>");
        let all: String = NONCHARACTERS.chain("<|im_end|>".chars()).collect();
        let mut messages = [Message::new("user", all.clone())];
        let refused = break_controls(&controls(), &mut messages, &mut Map::new());
        assert!(refused.is_err() && messages[0].content == all);
    }

    /// Parts, tool calls, the names of their arguments, and the descriptions of tools.
    #[test]
    fn every_text_of_a_conversation_is_looked_at() {
        let value = json!([{"text": "ABA", "n": 1, "ABA": [null, true, "ABA"]}]);
        let mut messages = [Message::new("tool", "")];
        messages[0].content = value.clone();
        messages[0].extra.insert("tool_calls".into(), value.clone());
        let mut variables = Map::new();
        variables.insert("tools".into(), value);
        let marker = break_controls(&controls(), &mut messages, &mut variables);
        let marker = marker.expect("a marker").expect("it is needed");
        let all = serde_json::to_string(&(&messages[0], &variables)).expect("JSON");
        assert_eq!(all.matches(&format!("A{marker}BA")).count(), 9, "{all}");
        assert!(!all.contains("ABA"), "{all}");
    }
}
