//! One kernel parameter: `device const T *x [[buffer(0)]]` → what it is bound to.

use super::lexer::Tokens;
use super::{AddressSpace, BufferAccess, Builtin, Parameter, ParameterKind, ReadError};
use std::ops::Range;

/// Template parameter names and the arguments that stand for them.
pub type Substitution = Vec<(String, String)>;

/// Reads the parameters between the parentheses `start..end`.
pub fn read_parameters(
    tokens: &Tokens<'_>,
    start: usize,
    end: usize,
    substitution: &Substitution,
) -> Result<Vec<Parameter>, ReadError> {
    tokens
        .split_commas(start, end)
        .into_iter()
        .map(|range| read_parameter(tokens, range, substitution))
        .collect()
}

/// A parameter's tokens, sorted by what they say.
#[derive(Default)]
struct Pieces {
    words: Vec<usize>,
    space: Option<&'static str>,
    is_const: bool,
    pointer: bool,
    reference: bool,
    buffer: Option<u32>,
    threadgroup: Option<u32>,
    builtin: Option<Builtin>,
}

fn read_parameter(
    tokens: &Tokens<'_>,
    range: Range<usize>,
    substitution: &Substitution,
) -> Result<Parameter, ReadError> {
    let at = range.start;
    let mut pieces = sort_pieces(tokens, range)?;
    let name = match pieces.words.pop() {
        Some(word) if tokens.is_word(word) && !pieces.words.is_empty() => {
            tokens.text(word).to_owned()
        }
        _ => return Err(tokens.error(at, "a kernel parameter needs a type and a name")),
    };
    let ty = substitute(tokens, &pieces.words, substitution);
    let kind = classify(&pieces, ty)
        .map_err(|problem| tokens.error(at, format!("`{name}`: {problem}")))?;
    Ok(Parameter { name, kind })
}

fn sort_pieces(tokens: &Tokens<'_>, range: Range<usize>) -> Result<Pieces, ReadError> {
    let mut pieces = Pieces::default();
    let mut at = range.start;
    while at < range.end {
        if let Some(span) = tokens.attribute_at(at)? {
            let number = |name| match tokens.attribute_argument(span, name) {
                Some(text) => text.parse::<u32>().map(Some).map_err(|_| {
                    tokens.error(
                        at,
                        format!("{name}({text}): write the index as a plain number"),
                    )
                }),
                None => Ok(None),
            };
            pieces.buffer = number("buffer")?.or(pieces.buffer);
            pieces.threadgroup = number("threadgroup")?.or(pieces.threadgroup);
            let named = (span.start..span.end).find_map(|i| Builtin::from_name(tokens.text(i)));
            pieces.builtin = named.or(pieces.builtin);
            at = span.end;
            continue;
        }
        match tokens.text(at) {
            "device" => pieces.space = Some("device"),
            "constant" => pieces.space = Some("constant"),
            "threadgroup" => pieces.space = Some("threadgroup"),
            "const" => pieces.is_const |= !pieces.pointer,
            "volatile" | "restrict" | "__restrict" => {}
            "*" if !pieces.words.is_empty() => pieces.pointer = true,
            "&" if !pieces.words.is_empty() => pieces.reference = true,
            _ => pieces.words.push(at),
        }
        at += 1;
    }
    Ok(pieces)
}

fn classify(pieces: &Pieces, ty: String) -> Result<ParameterKind, String> {
    let memory = pieces.pointer || pieces.reference;
    match (
        pieces.space,
        pieces.buffer,
        pieces.threadgroup,
        pieces.builtin,
    ) {
        (Some("device"), Some(index), None, None) if memory => Ok(ParameterKind::Buffer {
            index,
            element: ty,
            space: AddressSpace::Device,
            access: if pieces.is_const {
                BufferAccess::Read
            } else {
                BufferAccess::ReadWrite
            },
            reference: pieces.reference,
        }),
        (Some("constant"), Some(index), None, None) if memory => Ok(ParameterKind::Buffer {
            index,
            element: ty,
            space: AddressSpace::Constant,
            access: BufferAccess::Read,
            reference: pieces.reference,
        }),
        (Some("threadgroup"), None, Some(index), None) if pieces.pointer => {
            Ok(ParameterKind::Threadgroup { index, element: ty })
        }
        (None, None, None, Some(builtin)) if !memory => Ok(ParameterKind::Builtin { builtin, ty }),
        (Some("device" | "constant"), None, None, None) => {
            Err("a buffer parameter needs [[buffer(n)]]".to_owned())
        }
        (Some("threadgroup"), _, None, None) => {
            Err("a threadgroup parameter is a pointer with [[threadgroup(n)]]".to_owned())
        }
        _ => Err("not a buffer, a threadgroup pointer or a known built-in".to_owned()),
    }
}

/// The type's text with template parameters replaced by their arguments.
fn substitute(tokens: &Tokens<'_>, words: &[usize], substitution: &Substitution) -> String {
    let mut out = String::new();
    for &at in words {
        let text = tokens.text(at);
        let text = substitution
            .iter()
            .find(|(name, _)| name == text)
            .map_or(text, |(_, argument)| argument.as_str());
        if out.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            || out.ends_with(',')
        {
            out.push(' ');
        }
        out.push_str(text);
    }
    out
}
