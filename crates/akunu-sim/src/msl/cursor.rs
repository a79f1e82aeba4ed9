//! Walking over tokens: brackets, template arguments and attributes.

use super::ReadError;
use super::lexer::{Token, TokenKind, Tokens};

/// Token positions of one `[[…]]` attribute list, brackets included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeSpan {
    /// First `[`.
    pub start: usize,
    /// Behind the last `]`.
    pub end: usize,
}

impl<'s> Tokens<'s> {
    /// The token at `at`, if there is one.
    pub fn get(&self, at: usize) -> Option<&Token<'s>> {
        self.list.get(at)
    }

    /// Whether the token at `at` is this word or punctuation.
    pub fn is(&self, at: usize, text: &str) -> bool {
        self.get(at).is_some_and(|token| token.is(text))
    }

    /// Whether the token at `at` is a word.
    pub fn is_word(&self, at: usize) -> bool {
        self.get(at)
            .is_some_and(|token| token.kind == TokenKind::Word)
    }

    /// The text at `at`, empty behind the end.
    pub fn text(&self, at: usize) -> &'s str {
        self.get(at).map_or("", |token| token.text)
    }

    /// An error at the token `at`.
    pub fn error(&self, at: usize, problem: impl Into<String>) -> ReadError {
        let token = self.get(at).or(self.list.last());
        ReadError {
            file: token.map_or("<source>".to_owned(), |token| {
                self.files[token.file].clone()
            }),
            line: token.map_or(0, |token| token.line),
            problem: problem.into(),
        }
    }

    /// Behind the bracket that closes the one at `open`.
    pub fn skip_brackets(&self, open: usize) -> Result<usize, ReadError> {
        let mut depth = 0usize;
        for at in open..self.list.len() {
            match self.text(at) {
                "(" | "[" | "{" if self.list[at].kind == TokenKind::Punct => depth += 1,
                ")" | "]" | "}" if self.list[at].kind == TokenKind::Punct => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Ok(at + 1);
                    }
                }
                _ => {}
            }
        }
        Err(self.error(open, format!("`{}` is never closed", self.text(open))))
    }

    /// Behind the `>` that closes the `<` at `open`; `None` when it is a comparison, not a list.
    pub fn skip_angles(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut at = open;
        while let Some(token) = self.get(at) {
            match token.text {
                "<" => depth += 1,
                ">" => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                "(" | "[" => {
                    at = self.skip_brackets(at).ok()?;
                    continue;
                }
                ";" | "{" | "}" | ")" | "]" => return None,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// The attribute list that begins at `at`, if one does.
    pub fn attribute_at(&self, at: usize) -> Result<Option<AttributeSpan>, ReadError> {
        if !(self.is(at, "[") && self.is(at + 1, "[")) {
            return Ok(None);
        }
        let end = self.skip_brackets(at)?;
        Ok(Some(AttributeSpan { start: at, end }))
    }

    /// The argument of the attribute `name(…)` inside `span`: the one token between the parentheses.
    pub fn attribute_argument(&self, span: AttributeSpan, name: &str) -> Option<&'s str> {
        (span.start..span.end)
            .find(|&at| self.is(at, name) && self.is(at + 1, "(") && self.is(at + 3, ")"))
            .map(|at| self.text(at + 2))
    }

    /// The tokens of `range` as source, with single spaces between words only.
    pub fn join(&self, range: impl IntoIterator<Item = usize>) -> String {
        let mut out = String::new();
        for at in range {
            let text = self.text(at);
            let glue = out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
                && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            if glue || out.ends_with(',') {
                out.push(' ');
            }
            out.push_str(text);
        }
        out
    }

    /// The ranges between the top-level commas of `start..end`.
    pub fn split_commas(&self, start: usize, end: usize) -> Vec<std::ops::Range<usize>> {
        let mut parts = Vec::new();
        let mut part = start;
        let mut at = start;
        while at < end {
            match self.text(at) {
                "," => {
                    parts.push(part..at);
                    part = at + 1;
                }
                "(" | "[" | "{" => {
                    at = self.skip_brackets(at).unwrap_or(end).min(end);
                    continue;
                }
                "<" => {
                    if let Some(behind) = self.skip_angles(at).filter(|&behind| behind <= end) {
                        at = behind;
                        continue;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        if part < end {
            parts.push(part..end);
        }
        parts
    }
}
