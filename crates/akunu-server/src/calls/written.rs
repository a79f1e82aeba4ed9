//! Arguments as JSON that is being written.
//!
//! What is written stays: with more text there is more of it. So it can be sent at once.

/// Arguments as far as they have come.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    /// A JSON object, or its beginning.
    pub json: String,
    /// Bytes that have complete members only.
    pub complete: usize,
}

impl Written {
    pub fn begin(&mut self, open: char, depth: usize) {
        self.json.push(open);
        self.end(depth);
    }

    /// A comma, unless something begins.
    pub fn separate(&mut self, open: char) {
        if !self.json.ends_with(open) {
            self.json.push(',');
        }
    }

    /// Notes that the members of the arguments are complete so far.
    pub fn end(&mut self, depth: usize) {
        if depth == 0 {
            self.complete = self.json.len();
        }
    }

    /// A character of a text.
    pub fn push(&mut self, c: char) {
        match c {
            '"' => self.json.push_str("\\\""),
            '\\' => self.json.push_str("\\\\"),
            '\n' => self.json.push_str("\\n"),
            '\r' => self.json.push_str("\\r"),
            '\t' => self.json.push_str("\\t"),
            c if c < ' ' => self.json.push_str(&format!("\\u{:04x}", c as u32)),
            c => self.json.push(c),
        }
    }
}
