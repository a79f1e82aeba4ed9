//! Arguments with a tag each, whose values have no quotes: what they are, the schema says.

use serde_json::Value;

use super::cursor::{Cursor, Read, Stop, overlap};
use super::schema::{allows, types};
use super::style::Tags;
use super::tool::Tool;
use super::written::Written;

/// Arguments with a tag each.
pub(super) fn tagged(tags: &Tags, from: &mut Cursor, tool: &Tool, to: &mut Written) -> Read<()> {
    loop {
        from.skip_space();
        match from.clone().exact(tags.before_name) {
            Ok(()) => from.exact(tags.before_name)?,
            Err(Stop::Incomplete) => return Err(Stop::Incomplete),
            Err(Stop::Mismatch) => break,
        }
        if to.json.is_empty() {
            to.begin('{', 0);
        }
        let first = tags.after_name[0].chars().next().unwrap_or('>');
        let name = from.run(|c| c != first && !c.is_whitespace());
        from.peek()?;
        let is_text = from.clone().words(tags.after_name[0]);
        match is_text {
            Err(Stop::Mismatch) => from.words(tags.after_name[1])?,
            _ => from.words(tags.after_name[0])?,
        }
        let is_told = tags.after_name[0] != tags.after_name[1];
        let kind = match (is_told, is_text.is_ok()) {
            (true, true) => Kind::Text,
            (true, false) => Kind::Json,
            (false, _) => Kind::of(tool.parameter(name)),
        };
        to.separate('{');
        to.json.push_str(&Value::from(name).to_string());
        to.json.push(':');
        tagged_value(tags, (kind, tool.parameter(name)), from, to)?;
        to.end(0);
    }
    if to.json.is_empty() {
        to.begin('{', 0);
    }
    to.json.push('}');
    Ok(())
}

fn tagged_value(
    tags: &Tags,
    (kind, schema): (Kind, Option<&Value>),
    from: &mut Cursor,
    to: &mut Written,
) -> Read<()> {
    let mut body = from.clone();
    let whole = body.until(tags.after_value);
    let is_padded = !tags.padding.is_empty();
    let inner = |text: &'_ str| -> String {
        let text = text
            .strip_prefix('\n')
            .filter(|_| is_padded)
            .unwrap_or(text);
        text.to_string()
    };
    let Ok(text) = whole else {
        // A text can be told before its end has come.
        if kind == Kind::Text {
            let end = format!("{}{}", tags.padding, tags.after_value);
            let rest = from.rest();
            let keep = overlap(rest, &end).max(overlap(rest, tags.after_value));
            to.json.push('"');
            inner(&rest[..rest.len() - keep])
                .chars()
                .for_each(|c| to.push(c));
        }
        return Err(Stop::Incomplete);
    };
    let text = inner(text);
    let text = text
        .strip_suffix('\n')
        .filter(|_| is_padded)
        .unwrap_or(&text);
    let json = match kind {
        Kind::Text => None,
        Kind::Json | Kind::Either => serde_json::from_str::<Value>(text.trim()).ok(),
    };
    let json = json.filter(|value| kind == Kind::Json || allows(schema, value));
    match json {
        Some(value) => to.json.push_str(&value.to_string()),
        None => {
            to.json.push('"');
            text.chars().for_each(|c| to.push(c));
            to.json.push('"');
        }
    }
    *from = body;
    Ok(())
}

/// What a value without quotes is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Json,
    /// JSON, or a text that is none.
    Either,
}

impl Kind {
    /// By the schema of the argument.
    pub fn of(schema: Option<&Value>) -> Kind {
        let types = schema.and_then(types).unwrap_or_default();
        let n_texts = types.iter().filter(|kind| **kind == "string").count();
        match n_texts {
            _ if types.is_empty() => Kind::Either,
            0 => Kind::Json,
            n if n == types.len() => Kind::Text,
            _ => Kind::Either,
        }
    }
}
