//! Constructor calls of vectors: `float4(a, b, 0.0f)` → `akunu::make<float4>(a, b, 0.0f)`.
//!
//! The same is done for names that may stand for a vector: type aliases and template parameters.
//! A C cast of a vector, `(float4)x`, converts values in MSL and copies bits in C++: it is refused.

use super::Edits;
use crate::msl::ReadError;
use crate::msl::lexer::Tokens;
use std::collections::HashSet;

const ELEMENTS: [&str; 12] = [
    "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "bfloat",
    "float",
];

pub fn rewrite(edits: &mut Edits<'_>) -> Result<(), ReadError> {
    let tokens = edits.tokens;
    let names = TypeNames::collect(tokens);
    let mut at = 0;
    while at < tokens.list.len() {
        if !tokens.is_word(at) {
            at += 1;
            continue;
        }
        refuse_c_cast(tokens, &names, at)?;
        if let Some(behind) = static_cast(tokens, &names, at) {
            edits.replace(at..at + 1, "akunu::make".to_owned());
            at = behind;
            continue;
        }
        let Some(end) = names.type_at(tokens, at) else {
            at += 1;
            continue;
        };
        if tokens.is(end, "(") && !is_declarator(tokens, end) && !follows_member_access(tokens, at)
        {
            let start = unqualified(tokens, at);
            edits.replace(start..end, format!("akunu::make<{}>", tokens.join(at..end)));
        }
        at = end;
    }
    Ok(())
}

/// Names that stand for types whose constructor may build a vector.
struct TypeNames<'s> {
    vectors: HashSet<String>,
    others: HashSet<&'s str>,
}

impl<'s> TypeNames<'s> {
    fn collect(tokens: &Tokens<'s>) -> Self {
        let mut names = TypeNames {
            vectors: HashSet::new(),
            others: HashSet::new(),
        };
        for element in ELEMENTS {
            for n in 2..=4 {
                names.vectors.insert(format!("{element}{n}"));
                names.vectors.insert(format!("packed_{element}{n}"));
            }
        }
        for at in 0..tokens.list.len() {
            match tokens.text(at) {
                // `using NAME = …;`
                "using" if tokens.is(at + 2, "=") => names.add_alias(tokens, at + 1, at + 3),
                "typedef" => {
                    let end = (at..tokens.list.len())
                        .find(|&i| tokens.is(i, ";"))
                        .unwrap_or(at);
                    if end > at + 2 && tokens.is_word(end - 1) && !tokens.is(at + 1, "decltype") {
                        names.add_alias(tokens, end - 1, at + 1);
                    }
                }
                // A template's type parameter.
                "typename" | "class"
                    if tokens.is_word(at + 1) && matches!(tokens.text(at + 2), "," | ">" | "=") =>
                {
                    names.others.insert(tokens.text(at + 1));
                }
                _ => {}
            }
        }
        names
    }

    fn add_alias(&mut self, tokens: &Tokens<'s>, name: usize, definition: usize) {
        let of_vector =
            tokens.is(definition, "vec") || self.vectors.contains(tokens.text(definition));
        if of_vector {
            self.vectors.insert(tokens.text(name).to_owned());
        } else {
            self.others.insert(tokens.text(name));
        }
    }

    /// Behind the type name at `at`, when it is one of ours: `float4`, `T`, `vec<T, 4>`.
    fn type_at(&self, tokens: &Tokens<'_>, at: usize) -> Option<usize> {
        let text = tokens.text(at);
        if text == "vec" && tokens.is(at + 1, "<") {
            return tokens.skip_angles(at + 1);
        }
        (self.vectors.contains(text) || self.others.contains(text)).then_some(at + 1)
    }
}

/// Where the name at `at` begins with its `metal::`, if it has one.
fn unqualified(tokens: &Tokens<'_>, at: usize) -> usize {
    let qualified =
        at >= 3 && tokens.is(at - 1, ":") && tokens.is(at - 2, ":") && tokens.is(at - 3, "metal");
    if qualified { at - 3 } else { at }
}

/// `T (*name)(…)` and `T (&name)[…]` declare; they construct nothing.
fn is_declarator(tokens: &Tokens<'_>, open: usize) -> bool {
    (tokens.is(open + 1, "*") || tokens.is(open + 1, "&"))
        && tokens.is_word(open + 2)
        && tokens.is(open + 3, ")")
        && (tokens.is(open + 4, "(") || tokens.is(open + 4, "["))
}

fn follows_member_access(tokens: &Tokens<'_>, at: usize) -> bool {
    at > 0 && (tokens.is(at - 1, ".") || tokens.is(at - 1, "operator"))
        || at > 1 && tokens.is(at - 1, ">") && tokens.is(at - 2, "-")
}

/// Behind the `>` of a `static_cast<T>` to one of our types.
fn static_cast(tokens: &Tokens<'_>, names: &TypeNames<'_>, at: usize) -> Option<usize> {
    if !(tokens.is(at, "static_cast") && tokens.is(at + 1, "<")) {
        return None;
    }
    let end = names.type_at(tokens, at + 2)?;
    tokens.is(end, ">").then_some(end + 1)
}

fn refuse_c_cast(tokens: &Tokens<'_>, names: &TypeNames<'_>, at: usize) -> Result<(), ReadError> {
    let is_vector = names.vectors.contains(tokens.text(at)) || tokens.is(at, "vec");
    if !is_vector || at < 2 || !tokens.is(at - 1, "(") {
        return Ok(());
    }
    let Some(end) = names.type_at(tokens, at) else {
        return Ok(());
    };
    // `sizeof(float4)`, `f(float4)` name a type or a parameter; a cast has an operator before it.
    let is_cast = tokens.is(end, ")")
        && !tokens.is_word(at - 2)
        && !tokens.is(at - 2, ">")
        && (tokens.is_word(end + 1) || tokens.is(end + 1, "("));
    if is_cast || tokens.is(end, ")") && tokens.is(at - 2, "return") {
        let ty = tokens.join(at..end);
        return Err(tokens.error(at, format!("write `{ty}(x)` for the cast `({ty})x`")));
    }
    Ok(())
}
