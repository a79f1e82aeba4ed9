//! What a C++ compiler would let pass and Metal's would not.
//!
//! A Metal compiler runs only on a Mac, so these rules stand in for it:
//! words that MSL does not have, pointers and references without an address space, and arrays that would not be in registers
//! (`arrays.rs`).

use super::lexer::{TokenKind, Tokens};
use super::{ReadError, arrays};
use std::ops::Range;

/// C++ that is not MSL.
const FOREIGN: [&str; 12] = [
    "double",
    "goto",
    "new",
    "delete",
    "throw",
    "try",
    "catch",
    "virtual",
    "dynamic_cast",
    "typeid",
    "thread_local",
    "std",
];

/// The words that give a pointer its address space.
pub(super) const SPACES: [&str; 4] = ["device", "constant", "threadgroup", "thread"];

/// Words before a parenthesis that do not name a function.
const CONTROL: [&str; 5] = ["if", "for", "while", "switch", "return"];

/// Finds the first thing that is C++ and not MSL.
///
/// # Errors
/// With its file and line.
pub fn lint(tokens: &Tokens<'_>) -> Result<(), ReadError> {
    for at in 0..tokens.list.len() {
        if tokens.list[at].kind == TokenKind::Directive {
            continue;
        }
        if tokens.is_word(at) && FOREIGN.contains(&tokens.text(at)) {
            return Err(tokens.error(at, format!("MSL has no `{}`", tokens.text(at))));
        }
        if let Some(parameters) = function_parameters(tokens, at) {
            for parameter in tokens.split_commas(parameters.start, parameters.end) {
                check_parameter(tokens, parameter)?;
            }
        }
        check_declaration(tokens, at)?;
    }
    arrays::check(tokens)
}

/// The range between the parentheses when a function definition has its name at `at`.
pub(super) fn function_parameters(tokens: &Tokens<'_>, at: usize) -> Option<Range<usize>> {
    let named = tokens.is_word(at) && !CONTROL.contains(&tokens.text(at)) && tokens.is(at + 1, "(");
    if !named
        || at == 0
        || !(tokens.is_word(at - 1) || matches!(tokens.text(at - 1), ">" | "*" | "&"))
    {
        return None;
    }
    let behind = tokens.skip_brackets(at + 1).ok()?;
    let body = if tokens.is(behind, "const") {
        behind + 1
    } else {
        behind
    };
    tokens.is(body, "{").then_some(at + 2..behind - 1)
}

fn check_parameter(tokens: &Tokens<'_>, range: Range<usize>) -> Result<(), ReadError> {
    let mut points = false;
    let mut at = range.start;
    while at < range.end {
        match tokens.text(at) {
            "<" => {
                at = tokens.skip_angles(at).unwrap_or(at + 1);
                continue;
            }
            "[" => break,
            "*" | "&" => points = true,
            word if SPACES.contains(&word) => return Ok(()),
            _ => {}
        }
        at += 1;
    }
    if points {
        return Err(tokens.error(range.start, format!("`{}`: {NO_SPACE}", tokens.join(range))));
    }
    Ok(())
}

const NO_SPACE: &str = "a pointer or reference needs device, constant, threadgroup or thread";

/// A statement `[const] TYPE * NAME` followed by `=` or `;`.
fn check_declaration(tokens: &Tokens<'_>, start: usize) -> Result<(), ReadError> {
    let begins = start == 0
        || matches!(tokens.text(start - 1), ";" | "{" | "}")
        || tokens.list[start - 1].kind == TokenKind::Directive;
    let mut at = start;
    while tokens.is(at, "const") || tokens.is(at, "constexpr") {
        at += 1;
    }
    let typed = tokens.is_word(at)
        && !SPACES.contains(&tokens.text(at))
        && !matches!(tokens.text(at), "auto" | "return");
    if !begins || !typed {
        return Ok(());
    }
    at += 1;
    if tokens.is(at, "<") {
        match tokens.skip_angles(at) {
            Some(behind) => at = behind,
            None => return Ok(()),
        }
    }
    let points = tokens.is(at, "*") || tokens.is(at, "&");
    let declares = points
        && tokens.is_word(at + 1)
        && (tokens.is(at + 2, ";") || tokens.is(at + 2, "=") && !tokens.is(at + 3, "="));
    if declares {
        let what = tokens.join(start..at + 2);
        return Err(tokens.error(start, format!("`{what}`: {NO_SPACE}")));
    }
    Ok(())
}
