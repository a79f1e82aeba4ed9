//! Arrays of a single thread must be indexed by constants.
//!
//! Registers have no addresses. An array whose every index is known when the kernel is compiled lies in registers; one that is
//! indexed at run time lies in memory, and each access goes there. So an index may consist of
//!
//! * numbers, and constants, which are written in capitals;
//! * the variable of a loop `for (uint i = …; i < …; …)` whose bounds are such constants: the compiler unrolls it. What is
//!   known at run time only goes into an `if` inside the loop;
//! * parameters of a function that is not a kernel: it is inlined, and its callers are checked too.

use super::ReadError;
use super::lexer::{TokenKind, Tokens};
use super::lint::{SPACES, function_parameters};
use std::collections::HashSet;
use std::ops::Range;

/// Words of an index that stand for no value.
const TYPES: [&str; 3] = ["uint", "ushort", "int"];

/// Finds the first array of a thread that is indexed at run time.
///
/// # Errors
/// With its file and line.
pub fn check(tokens: &Tokens<'_>) -> Result<(), ReadError> {
    let mut at = 0;
    while at < tokens.list.len() {
        let Some(parameters) = function_parameters(tokens, at) else {
            at += 1;
            continue;
        };
        let function = Function::read(tokens, at, parameters)?;
        function.check()?;
        at = function.body.end;
    }
    Ok(())
}

/// A function, and what its arrays may be indexed by.
struct Function<'t, 's> {
    tokens: &'t Tokens<'s>,
    body: Range<usize>,
    /// Arrays that belong to one thread.
    arrays: HashSet<&'s str>,
    /// Parameters that are values.
    values: HashSet<&'s str>,
    loops: Vec<Loop<'s>>,
}

/// A loop with constant bounds.
struct Loop<'s> {
    variable: &'s str,
    range: Range<usize>,
}

impl<'t, 's> Function<'t, 's> {
    fn read(
        tokens: &'t Tokens<'s>,
        name: usize,
        parameters: Range<usize>,
    ) -> Result<Function<'t, 's>, ReadError> {
        let open = (parameters.end..tokens.list.len()).find(|&at| tokens.is(at, "{"));
        let open = open.unwrap_or(parameters.end);
        let mut function = Function {
            tokens,
            body: open..tokens.skip_brackets(open)?,
            arrays: HashSet::new(),
            values: HashSet::new(),
            loops: Vec::new(),
        };
        let is_kernel = (name.saturating_sub(2)..name).any(|at| tokens.is(at, "kernel"));
        for parameter in tokens.split_commas(parameters.start, parameters.end) {
            function.add_parameter(parameter, is_kernel);
        }
        for at in function.body.clone() {
            if let Some(name) = function.declared_at(at) {
                function.arrays.insert(name);
            }
            if let Some(found) = function.loop_at(at) {
                function.loops.push(found);
            }
        }
        Ok(function)
    }

    /// `thread T (&name)[N]` is an array of the thread, `T name` is a value.
    fn add_parameter(&mut self, range: Range<usize>, is_kernel: bool) {
        let tokens = self.tokens;
        let has = |text: &str| range.clone().any(|at| tokens.is(at, text));
        let reference = range
            .clone()
            .find(|&at| tokens.is(at, "(") && tokens.is(at + 1, "&"));
        if let Some(at) = reference {
            if !SPACES[..3].iter().any(|space| has(space)) {
                self.arrays.insert(tokens.text(at + 2));
            }
        } else if !is_kernel && !has("*") && !has("&") && range.len() > 1 {
            self.values.insert(tokens.text(range.end - 1));
        }
    }

    /// The array that is declared at `at`: `T name[N]` without an address space.
    fn declared_at(&self, at: usize) -> Option<&'s str> {
        let tokens = self.tokens;
        if !tokens.is_word(at) || !tokens.is(at + 1, "[") || !self.is_declaration(at) {
            return None;
        }
        let is_border = |&at: &usize| {
            matches!(tokens.text(at), ";" | "{" | "}")
                || tokens.list[at].kind == TokenKind::Directive
        };
        let start = (self.body.start..at).rev().find(is_border)?;
        let has_space = (start..at).any(|at| SPACES[..3].contains(&tokens.text(at)));
        (!has_space).then(|| tokens.text(at))
    }

    /// Whether a type stands before the name at `at`: a word, or the end of a template's arguments, which is no comparison
    /// where the statement ends or a value follows.
    fn is_declaration(&self, at: usize) -> bool {
        let (tokens, before) = (self.tokens, at - 1);
        let behind = tokens.skip_brackets(at + 1).unwrap_or(at);
        let ends = ["[", "=", ";", "{"]
            .iter()
            .any(|text| tokens.is(behind, text));
        tokens.is_word(before) && !tokens.is(before, "return") || tokens.is(before, ">") && ends
    }

    /// The loop that begins at `at`, if its bounds are constants.
    fn loop_at(&self, at: usize) -> Option<Loop<'s>> {
        let tokens = self.tokens;
        if !tokens.is(at, "for") || !tokens.is(at + 1, "(") {
            return None;
        }
        let behind = tokens.skip_brackets(at + 1).ok()?;
        let (variable, equals) = (at + 3, at + 4);
        let first_end = (equals..behind).find(|&at| tokens.is(at, ";"))?;
        let second_end = (first_end + 1..behind).find(|&at| tokens.is(at, ";"))?;
        let name = tokens.text(variable);
        let is_bounded = tokens.is(equals, "=")
            && tokens.is(first_end + 1, name)
            && tokens.is(first_end + 2, "<")
            && (equals + 1..first_end)
                .chain(first_end + 3..second_end)
                .all(|at| self.is_constant(at, at));
        let end = if tokens.is(behind, "{") {
            tokens.skip_brackets(behind).ok()?
        } else {
            self.body.end
        };
        is_bounded.then_some(Loop {
            variable: name,
            range: at..end,
        })
    }

    /// Whether the token at `at` is known when the kernel is compiled, for an access at `place`.
    fn is_constant(&self, at: usize, place: usize) -> bool {
        let text = self.tokens.text(at);
        let is_loop = |found: &Loop| found.variable == text && found.range.contains(&place);
        !self.tokens.is_word(at)
            || TYPES.contains(&text)
            || text
                .chars()
                .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
            || self.tokens.is(at + 1, ":")
            || self.loops.iter().any(is_loop)
    }

    fn check(&self) -> Result<(), ReadError> {
        let tokens = self.tokens;
        for at in self.body.clone() {
            let is_access = self.arrays.contains(tokens.text(at))
                && tokens.is(at + 1, "[")
                && !self.is_declaration(at);
            if !is_access {
                continue;
            }
            let end = tokens.skip_brackets(at + 1)?;
            let known = |index: usize| {
                self.is_constant(index, at) || self.values.contains(tokens.text(index))
            };
            if !(at + 2..end - 1).all(known) {
                let what = tokens.join(at..end);
                return Err(tokens.error(at, format!("`{what}`: {AT_RUN_TIME}")));
            }
        }
        Ok(())
    }
}

const AT_RUN_TIME: &str = "an array of a thread that is indexed at run time lies in memory, not in registers; index it by the \
    variable of a loop with constant bounds, and put what is known at run time into an `if`";
