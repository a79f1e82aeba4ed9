//! The text of an answer: characters out of tokens, and stop texts, which end it even in the middle of
//! a token.

use std::sync::Arc;

use akunu_tokenizer::{DecodeStream, Tokenizer};

/// Turns the tokens of an answer into text, up to a stop text.
pub(crate) struct AnswerText {
    decoder: Option<DecodeStream<Arc<Tokenizer>>>,
    stops: StopMatcher,
    is_stopped: bool,
}

impl AnswerText {
    pub fn new(tokenizer: Arc<Tokenizer>, stops: &[String]) -> AnswerText {
        AnswerText {
            decoder: Some(DecodeStream::new(tokenizer)),
            stops: StopMatcher::new(stops),
            is_stopped: false,
        }
    }

    /// Adds a token; returns the text that is complete with it.
    pub fn push(&mut self, id: u32) -> String {
        let decoded = self.decoder.as_mut().and_then(|decoder| decoder.push(id));
        let (text, stopped) = self.stops.push(&decoded.unwrap_or_default());
        self.is_stopped |= stopped;
        text
    }

    /// Whether a stop text has appeared.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The text that was held back: an incomplete character, or the beginning of a stop text that did
    /// not come.
    pub fn tail(&mut self) -> String {
        let decoded = self.decoder.take().and_then(DecodeStream::finish);
        let (mut text, _) = self.stops.push(&decoded.unwrap_or_default());
        if !self.is_stopped {
            text.push_str(&self.stops.finish());
        }
        text
    }
}

/// Finds stop texts in a stream, and holds back what may become one.
#[derive(Debug, Default)]
struct StopMatcher {
    stops: Vec<String>,
    held: String,
}

impl StopMatcher {
    fn new(stops: &[String]) -> StopMatcher {
        let stops = stops
            .iter()
            .filter(|stop| !stop.is_empty())
            .cloned()
            .collect();
        StopMatcher {
            stops,
            held: String::new(),
        }
    }

    /// Adds text; returns what can be shown, and whether a stop text came.
    fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        let first = self
            .stops
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()))
            .min();
        if let Some(at) = first {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let keep = self
            .stops
            .iter()
            .map(|stop| overlap(&self.held, stop))
            .max()
            .unwrap_or(0);
        let shown = self.held.len() - keep;
        let rest = self.held.split_off(shown);
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// What was held back, when nothing follows.
    fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Bytes at the end of `text` that begin `stop`.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len() - 1);
    let begins = |&n: &usize| stop.is_char_boundary(n) && text.ends_with(&stop[..n]);
    (1..=longest).rev().find(begins).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|stop| stop.to_string()).collect();
        let mut matcher = StopMatcher::new(&stops);
        let mut shown = String::new();
        for piece in pieces {
            let (text, stopped) = matcher.push(piece);
            shown.push_str(&text);
            if stopped {
                return (shown, true);
            }
        }
        shown.push_str(&matcher.finish());
        (shown, false)
    }

    #[test]
    fn a_stop_text_across_pieces_is_cut_off() {
        assert_eq!(
            run(&["User:"], &["Yes.\nU", "se", "r: and more"]),
            ("Yes.\n".into(), true)
        );
    }

    #[test]
    fn a_false_start_is_shown_after_all() {
        assert_eq!(run(&["User:"], &["Us", "ually"]), ("Usually".into(), false));
        assert_eq!(run(&["ab"], &["a", "a", "a"]), ("aaa".into(), false));
    }

    #[test]
    fn the_first_of_several_counts() {
        assert_eq!(run(&["b", "ab"], &["xab"]), ("x".into(), true));
    }

    #[test]
    fn characters_are_not_split() {
        assert_eq!(run(&["é!"], &["caf", "é", "s"]), ("cafés".into(), false));
        assert_eq!(
            run(&[""], &["all"]),
            ("all".into(), false),
            "an empty stop is none"
        );
    }
}
