//! Tokens of a flat MSL source: enough of C++ to find declarations, no more.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A word: identifier or keyword.
    Word,
    /// A number.
    Number,
    /// A string or character literal, quotes included.
    Literal,
    /// One punctuation character.
    Punct,
    /// A whole preprocessor line, continuations included.
    Directive,
}

/// One token, and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Token<'s> {
    /// What it is.
    pub kind: TokenKind,
    /// Its text.
    pub text: &'s str,
    /// Byte offset of its first character in the flat text.
    pub start: usize,
    /// Line in the file it came from.
    pub line: u32,
    /// Index into [`Tokens::files`].
    pub file: usize,
}

impl Token<'_> {
    /// Byte offset behind its last character.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether it is this word or punctuation.
    pub fn is(&self, text: &str) -> bool {
        self.text == text && matches!(self.kind, TokenKind::Word | TokenKind::Punct)
    }
}

/// A lexed source.
#[derive(Debug)]
pub struct Tokens<'s> {
    /// The tokens in order.
    pub list: Vec<Token<'s>>,
    /// The files named by `#line` directives.
    pub files: Vec<String>,
}

/// Splits a flat source into tokens. Comments and white space fall away; unknown bytes are
/// punctuation, for the compiler to complain about.
pub fn lex(text: &str) -> Tokens<'_> {
    let mut lexer = Lexer {
        text,
        at: 0,
        line: 1,
        file: 0,
        line_is_blank: true,
        out: Tokens {
            list: Vec::new(),
            files: vec!["<source>".to_owned()],
        },
    };
    while lexer.step() {}
    lexer.out
}

struct Lexer<'s> {
    text: &'s str,
    at: usize,
    line: u32,
    file: usize,
    /// Whether nothing but white space stood on this line yet: `#` then begins a directive.
    line_is_blank: bool,
    out: Tokens<'s>,
}

impl<'s> Lexer<'s> {
    /// Consumes one token, comment or blank; false at the end.
    fn step(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else {
            return false;
        };
        match first {
            '\n' => {
                self.line_is_blank = true;
                self.skip(1);
            }
            c if c.is_whitespace() => self.skip(c.len_utf8()),
            _ if rest.starts_with("//") => self.skip(rest.find('\n').unwrap_or(rest.len())),
            _ if rest.starts_with("/*") => {
                self.skip(rest.find("*/").map_or(rest.len(), |end| end + 2));
            }
            '#' if self.line_is_blank => self.directive(rest),
            '"' | '\'' => self.push(TokenKind::Literal, literal_len(rest, first)),
            c if c.is_ascii_digit() => self.push(TokenKind::Number, number_len(rest)),
            c if is_word(c) => {
                let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                self.push(TokenKind::Word, len);
            }
            c => self.push(TokenKind::Punct, c.len_utf8()),
        }
        true
    }

    fn push(&mut self, kind: TokenKind, len: usize) {
        self.line_is_blank = false;
        self.out.list.push(Token {
            kind,
            text: &self.text[self.at..self.at + len],
            start: self.at,
            line: self.line,
            file: self.file,
        });
        self.skip(len);
    }

    fn skip(&mut self, len: usize) {
        let passed = &self.text[self.at..self.at + len];
        self.line += passed.matches('\n').count() as u32;
        self.at += len;
    }

    fn directive(&mut self, rest: &'s str) {
        let mut len = 0;
        for line in rest.split_inclusive('\n') {
            len += line.len();
            if !line.trim_end().ends_with('\\') {
                break;
            }
        }
        let text = rest[..len].trim_end_matches('\n');
        self.push(TokenKind::Directive, text.len());
        self.line_is_blank = true;
        if let Some((line, file)) = parse_line_directive(text) {
            self.file = self
                .out
                .files
                .iter()
                .position(|known| known == file)
                .unwrap_or_else(|| {
                    self.out.files.push(file.to_owned());
                    self.out.files.len() - 1
                });
            // The newline that ends the directive adds the one.
            self.line = line.saturating_sub(1);
        }
    }
}

fn parse_line_directive(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix("#line ")?;
    let (line, file) = rest.split_once(' ')?;
    Some((line.parse().ok()?, file.trim().trim_matches('"')))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn literal_len(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return at,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `0x1.8p+3f`, `1e-5f`, `1'000u`: digits, letters, dots, quotes, and a sign behind an exponent.
fn number_len(rest: &str) -> usize {
    let hex = rest.starts_with("0x") || rest.starts_with("0X");
    let mut previous = '0';
    for (at, c) in rest.char_indices() {
        let exponent = if hex { "pP" } else { "eE" };
        let sign = (c == '+' || c == '-') && exponent.contains(previous);
        if !(is_word(c) || c == '.' || c == '\'' || sign) {
            return at;
        }
        previous = c;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_fall_away_and_lines_follow_the_directives() {
        let text =
            "#line 7 \"a.h\"\n/* x\n */ int y = 1e-5f; // z\n#define A \\\n  b\nchar c = '\\'';\n";
        let tokens = lex(text);
        let seen: Vec<_> = tokens.list.iter().map(|t| (t.text, t.line)).collect();
        assert_eq!(
            seen[1..6],
            [("int", 8), ("y", 8), ("=", 8), ("1e-5f", 8), (";", 8)]
        );
        assert_eq!(seen[6].0, "#define A \\\n  b");
        assert_eq!(seen[7], ("char", 11));
        assert_eq!(seen[10], ("'\\''", 11));
        assert_eq!(tokens.files[tokens.list[1].file], "a.h");
    }
}
