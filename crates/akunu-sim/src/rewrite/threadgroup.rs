//! `threadgroup float tile[64];` inside a kernel: memory that all threads of a threadgroup share.
//!
//! For the simulator it becomes a reference into the threadgroup's arena, for PTX one to static bytes in
//! shared memory (bytes, because C++ cannot construct a struct there). `threadgroup float *p` is an ordinary pointer and stays.

use super::{Edits, Target, begins_statement, statement_end};
use crate::msl::ReadError;
use crate::msl::lexer::Tokens;
use std::ops::Range;

pub fn rewrite(
    edits: &mut Edits<'_>,
    bodies: &[Range<usize>],
    target: Target,
) -> Result<(), ReadError> {
    let tokens = edits.tokens;
    let mut id = 0;
    for at in 0..tokens.list.len() {
        if !(tokens.is(at, "threadgroup") && begins_statement(tokens, at)) {
            continue;
        }
        let end = statement_end(tokens, at)?;
        let Some(variables) = variables(tokens, at + 1, end) else {
            continue;
        };
        if !bodies.iter().any(|body| body.contains(&at)) {
            return Err(tokens.error(
                at,
                "threadgroup variables are declared in kernel functions only",
            ));
        }
        let mut text = String::new();
        for Variable { ty, name, extents } in variables {
            text.push_str(&match target {
                Target::Simulator => format!(
                    "typedef {ty} akunu_type_{name}{extents}; \
                     akunu_type_{name} &{name} = akunu::threadgroup_variable<akunu_type_{name}>({id}); "
                ),
                Target::Ptx => format!(
                    "typedef {ty} akunu_type_{name}{extents}; \
                     static AKUNU_THREADGROUP __attribute__((aligned(16))) uchar \
                     akunu_bytes_{name}[sizeof(akunu_type_{name})]; \
                     AKUNU_THREADGROUP akunu_type_{name} &{name} = \
                     *(AKUNU_THREADGROUP akunu_type_{name} *)akunu_bytes_{name}; "
                ),
            });
            id += 1;
        }
        edits.replace(at..end + 1, text);
    }
    Ok(())
}

struct Variable {
    ty: String,
    name: String,
    extents: String,
}

/// The variables that `start..end` declares; `None` when it declares pointers or references, or is not
/// a declaration.
fn variables(tokens: &Tokens<'_>, start: usize, end: usize) -> Option<Vec<Variable>> {
    let mut start = start;
    if tokens.is(start, "alignas") {
        // The arena aligns to 16 bytes and to the type.
        start = tokens.skip_brackets(start + 1).ok()?;
    }
    let mut found = Vec::new();
    let mut ty = String::new();
    for part in tokens.split_commas(start, end) {
        let mut at = part.start;
        let mut last_word = None;
        while at < part.end && !tokens.is(at, "[") {
            match tokens.text(at) {
                "*" | "&" | "(" | "=" => return None,
                "<" => at = tokens.skip_angles(at)?,
                _ => {
                    last_word = Some(at);
                    at += 1;
                }
            }
        }
        let name = last_word?;
        if found.is_empty() {
            ty = tokens.join(part.start..name);
        }
        found.push(Variable {
            ty: ty.clone(),
            name: tokens.text(name).to_owned(),
            extents: tokens.join(at..part.end),
        });
    }
    Some(found)
}
