//! The characters of GBNF: white space and comments, strings, classes and escapes.

use std::iter::Peekable;
use std::str::Chars;

/// A place in a text.
pub(super) struct Parser<'t> {
    chars: Peekable<Chars<'t>>,
    /// The line, from 1.
    pub line: usize,
}

impl Parser<'_> {
    /// The beginning of a text.
    pub fn new(text: &str) -> Parser<'_> {
        Parser {
            chars: text.chars().peekable(),
            line: 1,
        }
    }

    pub fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    pub fn next(&mut self) -> Option<char> {
        let next = self.chars.next();
        self.line += usize::from(next == Some('\n'));
        next
    }

    pub fn error<T>(&self, what: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("line {}: {what}", self.line))
    }

    /// Skips white space and comments; line ends only where the text may go on after them.
    pub fn skip_space(&mut self, over_lines: bool) {
        while let Some(c) = self.peek() {
            match c {
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.next();
                    }
                }
                '\n' | '\r' if !over_lines => return,
                c if c.is_whitespace() => {
                    self.next();
                }
                _ => return,
            }
        }
    }

    /// Skips line ends if a bar comes after them.
    pub fn skip_to_bar(&mut self) {
        let mut ahead = Parser {
            chars: self.chars.clone(),
            line: self.line,
        };
        ahead.skip_space(true);
        if ahead.peek() == Some('|') {
            *self = Parser {
                chars: ahead.chars.clone(),
                line: ahead.line,
            };
        }
    }

    /// A string in quotes.
    pub fn text(&mut self) -> Result<String, String> {
        self.next();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\n') => return self.error("the string has no end"),
                Some('"') => {
                    self.next();
                    return Ok(text);
                }
                Some('\\') => text.push(self.escape()?),
                Some(c) => {
                    text.push(c);
                    self.next();
                }
            }
        }
    }

    /// A class of characters, such as `[a-z]`, as a regular expression has it.
    pub fn class(&mut self) -> Result<String, String> {
        self.next();
        let mut class = String::from("[");
        if self.peek() == Some('^') {
            self.next();
            class.push('^');
        }
        let empty = class.len();
        loop {
            match self.peek() {
                None | Some('\n') => return self.error("the class of characters has no end"),
                Some(']') => break,
                Some('-') => {
                    self.next();
                    // Between two characters it is a range; at the beginning or the end it is itself.
                    let is_range = class.len() > empty && self.peek() != Some(']');
                    class.push_str(if is_range { "-" } else { r"\-" });
                }
                Some('\\') => {
                    let c = self.escape()?;
                    push_literal(c, &mut class);
                }
                Some(c) => {
                    push_literal(c, &mut class);
                    self.next();
                }
            }
        }
        self.next();
        if class.len() == empty {
            return self.error("the class of characters is empty");
        }
        class.push(']');
        Ok(class)
    }

    /// The character that an escape stands for.
    fn escape(&mut self) -> Result<char, String> {
        self.next();
        let escape = self.next().unwrap_or(' ');
        let n_digits = match escape {
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            '\\' | '"' | '[' | ']' | '-' | '^' => return Ok(escape),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => return self.error(format!("`\\{other}` is no escape")),
        };
        let mut digits = String::new();
        for _ in 0..n_digits {
            digits.extend(self.peek().filter(char::is_ascii_hexdigit));
            self.next();
        }
        let code = u32::from_str_radix(&digits, 16).ok();
        let c = code
            .filter(|_| digits.len() == n_digits)
            .and_then(char::from_u32);
        match c {
            Some(c) => Ok(c),
            None => self.error(format!("`\\{escape}{digits}` is no character")),
        }
    }
}

/// A character as it stands for itself within a class of a regular expression.
fn push_literal(c: char, class: &mut String) {
    match c {
        '\n' => class.push_str(r"\n"),
        '\r' => class.push_str(r"\r"),
        '\t' => class.push_str(r"\t"),
        // Those that mean something in a class, two of them together in some.
        '[' | ']' | '\\' | '^' | '-' | '&' | '~' => {
            class.push('\\');
            class.push(c);
        }
        c if c.is_control() => class.push_str(&format!("\\x{{{:x}}}", u32::from(c))),
        c => class.push(c),
    }
}
