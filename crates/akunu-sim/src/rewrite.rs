//! Turns a flat MSL source into C++ that clang compiles against our shim.
//!
//! The `.metal` files stay pure MSL; what C++ reads differently is changed here, token by token, and
//! every line keeps its number:
//!
//! 1. attributes `[[…]]` and kernel instantiations become blanks, entry points stand at the end
//!    (`entry.rs`);
//! 2. vector constructors `float4(…)` become `akunu::make<float4>(…)`, because C++ vectors have none
//!    (`construct.rs`);
//! 3. `threadgroup` variables of kernels get memory that the threadgroup shares (`threadgroup.rs`);
//! 4. function constants, and constants computed from them, become function calls (`constant.rs`).

mod constant;
mod construct;
mod entry;
mod threadgroup;

use crate::msl::lexer::{TokenKind, Tokens, lex};
use crate::msl::lint::lint;
use crate::msl::{ReadError, Unit, declarations, read};
use akunu_kernels::flatten::FlatSource;
use std::ops::Range;

/// What the C++ is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A shared library for the simulator.
    Simulator,
    /// PTX for an NVIDIA GPU.
    Ptx,
}

/// A source made ready for clang.
#[derive(Debug, Clone)]
pub struct Rewritten {
    /// The C++ text.
    pub text: String,
    /// The interface that was read from the MSL.
    pub unit: Unit,
}

/// The value of a function constant, as C++ source, by index; for PTX, where they are compiled in.
pub type Specialisation = [(u32, String)];

/// Rewrites a flat source.
///
/// # Errors
/// When a declaration cannot be read, or the source is not MSL, or C++ would silently read it
/// differently.
pub fn rewrite(
    source: &FlatSource,
    target: Target,
    specialisation: &Specialisation,
) -> Result<Rewritten, ReadError> {
    let unit = read(&source.text)?;
    let tokens = lex(&source.text);
    lint(&tokens)?;
    let found = declarations(&tokens)?;
    let mut edits = Edits::new(&source.text, &tokens);
    for instantiation in &found.instantiations {
        edits.blank(instantiation.range.clone());
    }
    constant::rewrite(&mut edits, &unit.constants, target, specialisation)?;
    let bodies: Vec<_> = found
        .functions
        .iter()
        .map(|function| function.body.clone())
        .collect();
    threadgroup::rewrite(&mut edits, &bodies, target)?;
    construct::rewrite(&mut edits)?;
    blank_attributes(&mut edits)?;
    let mut text = edits.apply();
    text.push_str(&entry::entries(&unit, target)?);
    Ok(Rewritten { text, unit })
}

fn blank_attributes(edits: &mut Edits<'_>) -> Result<(), ReadError> {
    let mut at = 0;
    while at < edits.tokens.list.len() {
        match edits.tokens.attribute_at(at)? {
            Some(span) => {
                edits.blank(span.start..span.end);
                at = span.end;
            }
            None => at += 1,
        }
    }
    Ok(())
}

/// Replacements of byte ranges, applied in one pass. An edit inside an earlier one is dropped.
struct Edits<'s> {
    text: &'s str,
    tokens: &'s Tokens<'s>,
    list: Vec<(Range<usize>, String)>,
}

impl<'s> Edits<'s> {
    fn new(text: &'s str, tokens: &'s Tokens<'s>) -> Self {
        Edits {
            text,
            tokens,
            list: Vec::new(),
        }
    }

    /// Replaces the tokens of `range`; line breaks that stood there are kept behind the replacement.
    fn replace(&mut self, range: Range<usize>, with: String) {
        let bytes = self.bytes(range);
        let breaks = self.text[bytes.clone()].matches('\n').count();
        self.list.push((bytes, with + &"\n".repeat(breaks)));
    }

    /// Replaces the tokens of `range` by something of more lines, and names the line that follows.
    fn replace_lines(&mut self, range: Range<usize>, with: &str) {
        let last = &self.tokens.list[range.end - 1];
        let next = format!(
            "\n#line {} \"{}\"\n",
            last.line, self.tokens.files[last.file]
        );
        let bytes = self.bytes(range);
        self.list.push((bytes, format!("{with}{next}")));
    }

    fn blank(&mut self, range: Range<usize>) {
        self.replace(range, " ".to_owned());
    }

    fn bytes(&self, range: Range<usize>) -> Range<usize> {
        self.tokens.list[range.start].start..self.tokens.list[range.end - 1].end()
    }

    fn apply(mut self) -> String {
        // Of two edits that begin together the longer comes first and wins.
        self.list
            .sort_by_key(|(range, _)| (range.start, usize::MAX - range.end));
        let mut out = String::with_capacity(self.text.len() * 2);
        let mut done = 0;
        for (range, with) in &self.list {
            if range.start < done {
                continue;
            }
            out.push_str(&self.text[done..range.start]);
            out.push_str(with);
            done = range.end;
        }
        out.push_str(&self.text[done..]);
        out
    }
}

/// Whether a statement begins at `at`: at the start, behind a directive, or behind `;`, `{`, `}`.
fn begins_statement(tokens: &Tokens<'_>, at: usize) -> bool {
    match at.checked_sub(1).and_then(|before| tokens.get(before)) {
        None => true,
        Some(token) => {
            token.kind == TokenKind::Directive || [";", "{", "}"].iter().any(|text| token.is(text))
        }
    }
}

/// The `;` that ends the statement at `at`.
fn statement_end(tokens: &Tokens<'_>, at: usize) -> Result<usize, ReadError> {
    let mut end = at;
    while end < tokens.list.len() {
        match tokens.text(end) {
            ";" => return Ok(end),
            "(" | "[" | "{" => end = tokens.skip_brackets(end)?,
            _ => end += 1,
        }
    }
    Err(tokens.error(at, "the statement has no semicolon"))
}
