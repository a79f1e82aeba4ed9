//! `tojson`, as Python's `json.dumps` writes.

use super::budget::{Budget, PaidText, refused};
use super::python;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, Value};
use std::fmt::Write;

/// Lists and maps that are written inside of each other.
const MAX_DEPTH: usize = 64;

/// Spaces of one level that are accepted.
const MAX_INDENT: usize = 16;

/// The arguments of `json.dumps` that templates use.
struct Layout {
    indent: Option<String>,
    ensure_ascii: bool,
    sort_keys: bool,
    item_separator: String,
    key_separator: String,
}

impl Layout {
    fn new(indent: Option<Value>, arguments: &Kwargs) -> Result<Layout, Error> {
        let indent = match indent {
            Some(indent) => Some(indent),
            None => arguments.get::<Option<Value>>("indent")?,
        };
        let indent = match indent.filter(|indent| !indent.is_none() && !indent.is_undefined()) {
            Some(indent) => Some(indent_text(&indent)?),
            None => None,
        };
        let separators = arguments.get::<Option<Vec<String>>>("separators")?;
        let mut separators = separators.unwrap_or_default().into_iter();
        let default = if indent.is_some() { "," } else { ", " };
        Ok(Layout {
            item_separator: separators.next().unwrap_or_else(|| default.to_string()),
            key_separator: separators.next().unwrap_or_else(|| ": ".to_string()),
            ensure_ascii: arguments
                .get::<Option<bool>>("ensure_ascii")?
                .unwrap_or(false),
            sort_keys: arguments.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
            indent,
        })
    }
}

/// A number of spaces, or the text itself.
fn indent_text(indent: &Value) -> Result<String, Error> {
    let text = match indent.as_str() {
        Some(text) => text.to_string(),
        None => " ".repeat(indent.as_usize().unwrap_or(0).min(MAX_INDENT + 1)),
    };
    match text.len() > MAX_INDENT {
        true => Err(refused("`tojson` indents by too much")),
        false => Ok(text),
    }
}

/// The filter.
pub(super) fn to_json(
    budget: &Budget,
    value: &Value,
    indent: Option<Value>,
    arguments: &Kwargs,
) -> Result<Value, Error> {
    let layout = Layout::new(indent, arguments)?;
    arguments.assert_all_used()?;
    let mut writer = JsonWriter {
        out: PaidText::new(budget),
        layout: &layout,
    };
    match writer.value(value, 0) {
        Ok(()) => Ok(Value::from(writer.out.text)),
        Err(_) => Err(refused(
            "the template writes JSON that is too large or too deep",
        )),
    }
}

struct JsonWriter<'b> {
    out: PaidText<'b>,
    layout: &'b Layout,
}

impl JsonWriter<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> std::fmt::Result {
        if depth > MAX_DEPTH {
            return Err(std::fmt::Error);
        }
        match value.kind() {
            ValueKind::Undefined | ValueKind::None => self.out.write_str("null"),
            ValueKind::Bool => write!(self.out, "{}", value.is_true()),
            ValueKind::Number => python::write_number(&mut self.out, value),
            ValueKind::Map => self.map(value, depth),
            ValueKind::Seq | ValueKind::Iterable => self.list(value, depth),
            _ => match value.as_str() {
                Some(text) => self.text(text),
                None => self.text(&value.to_string()),
            },
        }
    }

    fn list(&mut self, value: &Value, depth: usize) -> std::fmt::Result {
        self.out.write_char('[')?;
        let mut is_empty = true;
        for item in value.try_iter().map_err(|_| std::fmt::Error)? {
            self.separate(is_empty, depth + 1)?;
            self.value(&item, depth + 1)?;
            is_empty = false;
        }
        self.close(is_empty, depth, ']')
    }

    fn map(&mut self, value: &Value, depth: usize) -> std::fmt::Result {
        self.out.write_char('{')?;
        let keys = value.try_iter().map_err(|_| std::fmt::Error)?;
        let mut keys: Vec<Value> = keys.collect();
        if self.layout.sort_keys {
            keys.sort();
        }
        for (at, key) in keys.iter().enumerate() {
            self.separate(at == 0, depth + 1)?;
            match key.as_str() {
                Some(text) => self.text(text)?,
                None => self.text(&key.to_string())?,
            }
            self.out.write_str(&self.layout.key_separator)?;
            let item = value.get_item(key).map_err(|_| std::fmt::Error)?;
            self.value(&item, depth + 1)?;
        }
        self.close(keys.is_empty(), depth, '}')
    }

    fn separate(&mut self, is_first: bool, depth: usize) -> std::fmt::Result {
        if !is_first {
            self.out.write_str(&self.layout.item_separator)?;
        }
        self.new_line(depth)
    }

    fn close(&mut self, is_empty: bool, depth: usize, bracket: char) -> std::fmt::Result {
        if !is_empty {
            self.new_line(depth)?;
        }
        self.out.write_char(bracket)
    }

    fn new_line(&mut self, depth: usize) -> std::fmt::Result {
        let Some(indent) = &self.layout.indent else {
            return Ok(());
        };
        self.out.write_char('\n')?;
        (0..depth).try_for_each(|_| self.out.write_str(indent))
    }

    fn text(&mut self, text: &str) -> std::fmt::Result {
        self.out.write_char('"')?;
        for character in text.chars() {
            match character {
                '"' => self.out.write_str("\\\"")?,
                '\\' => self.out.write_str("\\\\")?,
                '\n' => self.out.write_str("\\n")?,
                '\r' => self.out.write_str("\\r")?,
                '\t' => self.out.write_str("\\t")?,
                '\u{8}' => self.out.write_str("\\b")?,
                '\u{c}' => self.out.write_str("\\f")?,
                c if c < ' ' || (self.layout.ensure_ascii && !c.is_ascii()) => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        write!(self.out, "\\u{unit:04x}")?;
                    }
                }
                c => self.out.write_char(c)?,
            }
        }
        self.out.write_char('"')
    }
}
