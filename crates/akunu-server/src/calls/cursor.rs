//! A position in a text that is still being written.

/// Why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The text ended, and could have gone on as wanted.
    Incomplete,
    /// The text is something else.
    Mismatch,
}

pub(super) type Read<T> = Result<T, Stop>;

/// A position in a text.
#[derive(Clone)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    pub at: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Cursor<'t> {
        Cursor { text, at: 0 }
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The next character, which stays.
    pub fn peek(&self) -> Read<char> {
        self.rest().chars().next().ok_or(Stop::Incomplete)
    }

    /// Takes the next character.
    pub fn next(&mut self) -> Read<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Ok(c)
    }

    /// Takes these very characters.
    pub fn exact(&mut self, wanted: &str) -> Read<()> {
        let rest = self.rest();
        if rest.starts_with(wanted) {
            self.at += wanted.len();
            Ok(())
        } else if wanted.starts_with(rest) {
            Err(Stop::Incomplete)
        } else {
            Err(Stop::Mismatch)
        }
    }

    /// Takes these words, with any white space before them and where they have some.
    pub fn words(&mut self, wanted: &str) -> Read<()> {
        for word in wanted.split_whitespace() {
            self.skip_space();
            self.exact(word)?;
        }
        Ok(())
    }

    /// Takes the text before `end`, and the end.
    pub fn until(&mut self, end: &str) -> Read<&'t str> {
        let rest = self.rest();
        let length = rest.find(end).ok_or(Stop::Incomplete)?;
        self.at += length + end.len();
        Ok(&rest[..length])
    }

    /// Takes characters as long as they are such; there may be none.
    pub fn run(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let run = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        self.at += run.len();
        run
    }
}

/// Bytes at the end of a text that begin a mark, and are not all of it.
pub(crate) fn overlap(text: &str, mark: &str) -> usize {
    let longest = text.len().min(mark.len().saturating_sub(1));
    let begins = |&n: &usize| mark.is_char_boundary(n) && text.ends_with(&mark[..n]);
    (1..=longest).rev().find(begins).unwrap_or(0)
}
