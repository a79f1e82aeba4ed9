//! Arguments in the notations of models, rewritten as JSON while they come.

use serde_json::Value;

use super::cursor::{Cursor, Read, Stop};
use super::style::Notation;
use super::tagged::tagged;
use super::tool::Tool;
use super::written::Written;

/// Lists and objects within each other, at most.
const MAX_DEPTH: usize = 100;

/// Rewrites the arguments of a call of `tool`.
pub(super) fn arguments(
    notation: &Notation,
    from: &mut Cursor,
    tool: &Tool,
    to: &mut Written,
) -> Read<()> {
    let ways = match notation {
        Notation::Json => JSON,
        Notation::Python => PYTHON,
        Notation::Quoted(mark) => Ways {
            quotes: [mark, mark],
            has_escapes: false,
            ..BARE
        },
        Notation::Tagged(tags) => return tagged(tags, from, tool, to),
    };
    from.skip_space();
    let brackets = if matches!(notation, Notation::Python) {
        ('(', ')', "=")
    } else {
        ('{', '}', ":")
    };
    if from.peek()? != brackets.0 {
        return Err(Stop::Mismatch);
    }
    let is_bare = !matches!(notation, Notation::Json);
    ways.members(from, to, brackets, is_bare, 0)
}

/// How values are written.
struct Ways {
    quotes: [&'static str; 2],
    has_escapes: bool,
    /// Names of members within objects may stand without quotes.
    bare_names: bool,
}

const JSON: Ways = Ways {
    quotes: ["\""; 2],
    has_escapes: true,
    bare_names: false,
};
const PYTHON: Ways = Ways {
    quotes: ["\"", "'"],
    ..JSON
};
const BARE: Ways = Ways {
    bare_names: true,
    ..JSON
};

impl Ways {
    /// Members between brackets, with what is between a name and its value.
    fn members(
        &self,
        from: &mut Cursor,
        to: &mut Written,
        (open, close, between): (char, char, &str),
        is_bare: bool,
        depth: usize,
    ) -> Read<()> {
        if from.next()? != open || depth > MAX_DEPTH {
            return Err(Stop::Mismatch);
        }
        to.begin('{', depth);
        let mut is_first = true;
        loop {
            from.skip_space();
            if from.peek()? == close {
                from.next()?;
                to.json.push('}');
                return Ok(());
            }
            if !std::mem::take(&mut is_first) {
                from.exact(",")?;
                from.skip_space();
                if from.peek()? == close {
                    continue;
                }
            }
            let mut member = Written::default();
            self.name(from, &mut member, is_bare)?;
            from.skip_space();
            from.exact(between)?;
            from.skip_space();
            to.separate('{');
            to.json.push_str(&member.json);
            to.json.push(':');
            self.value(from, to, depth + 1)?;
            to.end(depth);
        }
    }

    fn name(&self, from: &mut Cursor, to: &mut Written, is_bare: bool) -> Read<()> {
        if !is_bare || self.quote(from)?.is_some() {
            return self.text(from, to);
        }
        let name = from.run(|c| c.is_alphanumeric() || "_-.$".contains(c));
        from.peek()?;
        if name.is_empty() {
            return Err(Stop::Mismatch);
        }
        to.json.push_str(&Value::from(name).to_string());
        Ok(())
    }

    /// The quote that comes next.
    fn quote(&self, from: &Cursor) -> Read<Option<&'static str>> {
        for quote in self.quotes {
            match from.clone().exact(quote) {
                Ok(()) => return Ok(Some(quote)),
                Err(Stop::Incomplete) => return Err(Stop::Incomplete),
                Err(Stop::Mismatch) => {}
            }
        }
        Ok(None)
    }

    fn value(&self, from: &mut Cursor, to: &mut Written, depth: usize) -> Read<()> {
        from.skip_space();
        if self.quote(from)?.is_some() {
            return self.text(from, to);
        }
        match from.peek()? {
            '{' => self.members(from, to, ('{', '}', ":"), self.bare_names, depth),
            '[' => self.items(from, to, depth),
            _ => word(from, to),
        }
    }

    fn items(&self, from: &mut Cursor, to: &mut Written, depth: usize) -> Read<()> {
        if from.next()? != '[' || depth > MAX_DEPTH {
            return Err(Stop::Mismatch);
        }
        to.json.push('[');
        loop {
            from.skip_space();
            if from.peek()? == ']' {
                from.next()?;
                to.json.push(']');
                return Ok(());
            }
            if to.json.ends_with('[') {
                self.value(from, to, depth + 1)?;
                continue;
            }
            from.exact(",")?;
            from.skip_space();
            if from.peek()? != ']' {
                to.json.push(',');
                self.value(from, to, depth + 1)?;
            }
        }
    }

    fn text(&self, from: &mut Cursor, to: &mut Written) -> Read<()> {
        let quote = self.quote(from)?.ok_or(Stop::Mismatch)?;
        from.exact(quote)?;
        to.json.push('"');
        loop {
            match from.clone().exact(quote) {
                Ok(()) => {
                    from.exact(quote)?;
                    to.json.push('"');
                    return Ok(());
                }
                Err(Stop::Incomplete) => return Err(Stop::Incomplete),
                Err(Stop::Mismatch) => {}
            }
            match from.peek()? {
                '\\' if self.has_escapes => escape(from, to)?,
                c => {
                    from.next()?;
                    to.push(c);
                }
            }
        }
    }
}

/// An escape, as JSON writes it.
fn escape(from: &mut Cursor, to: &mut Written) -> Read<()> {
    let mut ahead = from.clone();
    ahead.next()?;
    match ahead.next()? {
        c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {
            to.json.push('\\');
            to.json.push(c);
        }
        'u' => {
            let digits = (0..4).map(|_| ahead.next());
            let digits = digits.collect::<Read<String>>()?;
            if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
                return Err(Stop::Mismatch);
            }
            to.json.push_str("\\u");
            to.json.push_str(&digits);
        }
        // In Python; elsewhere it is a mistake that says what it means.
        c => to.push(c),
    }
    *from = ahead;
    Ok(())
}

/// A number, or one of the words that JSON or Python has.
fn word(from: &mut Cursor, to: &mut Written) -> Read<()> {
    let word = from.run(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    // It may go on.
    from.peek()?;
    let json = match word {
        "true" | "True" => "true",
        "false" | "False" => "false",
        "null" | "None" => "null",
        number if serde_json::from_str::<serde_json::Number>(number).is_ok() => number,
        _ => return Err(Stop::Mismatch),
    };
    to.json.push_str(json);
    Ok(())
}

/// Any value of JSON.
pub(super) fn any_value(from: &mut Cursor, to: &mut Written) -> Read<()> {
    JSON.value(from, to, 1)
}
