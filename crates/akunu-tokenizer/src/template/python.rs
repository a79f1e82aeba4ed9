//! Values as Python writes them: `True`, `None`, `['a', 1.0]`.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};
use std::fmt::Write;

/// Lists and maps that are written inside of each other.
const MAX_DEPTH: usize = 64;

/// `str(value)`. Undefined values are empty, as Jinja writes them.
pub(super) fn write_str(out: &mut impl Write, value: &Value) -> Result<(), Error> {
    let written = match (value.as_str(), value.kind()) {
        (Some(text), _) => out.write_str(text),
        (None, ValueKind::Undefined) => Ok(()),
        _ => write_repr(out, value, MAX_DEPTH),
    };
    written.map_err(|_| too_large())
}

/// `repr(value)`.
fn write_repr(out: &mut impl Write, value: &Value, depth: usize) -> std::fmt::Result {
    let depth = depth.checked_sub(1).ok_or(std::fmt::Error)?;
    match value.kind() {
        ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
        ValueKind::None => out.write_str("None"),
        ValueKind::Undefined => out.write_str("Undefined"),
        ValueKind::Bool => out.write_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => write_number(out, value),
        ValueKind::Map => {
            out.write_char('{')?;
            for (at, key) in value.try_iter().map_err(|_| std::fmt::Error)?.enumerate() {
                out.write_str(if at == 0 { "" } else { ", " })?;
                write_repr(out, &key, depth)?;
                out.write_str(": ")?;
                let item = value.get_item(&key).map_err(|_| std::fmt::Error)?;
                write_repr(out, &item, depth)?;
            }
            out.write_char('}')
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let (open, close) = if value.is_tuple() {
                ('(', ')')
            } else {
                ('[', ']')
            };
            out.write_char(open)?;
            for (at, item) in value.try_iter().map_err(|_| std::fmt::Error)?.enumerate() {
                out.write_str(if at == 0 { "" } else { ", " })?;
                write_repr(out, &item, depth)?;
            }
            if value.is_tuple() && value.len() == Some(1) {
                out.write_char(',')?;
            }
            out.write_char(close)
        }
        _ => write!(out, "{value}"),
    }
}

/// Single quotes, unless the text has some and no double ones.
fn write_quoted(out: &mut impl Write, text: &str) -> std::fmt::Result {
    let quote = match text.contains('\'') && !text.contains('"') {
        true => '"',
        false => '\'',
    };
    out.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\\' => out.write_str("\\\\")?,
            c if c == quote => write!(out, "\\{c}")?,
            c if c.is_ascii_control() => write!(out, "\\x{:02x}", u32::from(c))?,
            c => out.write_char(c)?,
        }
    }
    out.write_char(quote)
}

/// Whether a number has a fraction in its type: `1.0` is a float, `1` is not.
pub(super) fn is_float(value: &Value) -> bool {
    value.is_number() && !value.is_integer()
}

/// Integers plainly; floats with a point or an exponent of at least two digits.
pub(super) fn write_number(out: &mut impl Write, value: &Value) -> std::fmt::Result {
    if !is_float(value) {
        return write!(out, "{value}");
    }
    let number = f64::try_from(value.clone()).map_err(|_| std::fmt::Error)?;
    let magnitude = number.abs();
    if number.is_nan() {
        out.write_str("nan")
    } else if number.is_infinite() {
        out.write_str(if number > 0.0 { "inf" } else { "-inf" })
    } else if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) {
        write!(out, "{number:?}")
    } else {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        write!(out, "{digits}e{sign}{exponent:0>2}")
    }
}

fn too_large() -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        "the template writes a value that is too large",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::value::Serde;

    fn str_of(value: impl serde::Serialize) -> String {
        let mut out = String::new();
        write_str(&mut out, &Value::from(Serde(value))).unwrap();
        out
    }

    /// What Python 3 says of the same values.
    #[test]
    fn values_look_like_python() {
        assert_eq!(str_of("it's"), "it's");
        assert_eq!(str_of(true), "True");
        assert_eq!(str_of(()), "None");
        assert_eq!(
            str_of(serde_json::json!(["a", 1, 1.0, null])),
            "['a', 1, 1.0, None]"
        );
        assert_eq!(
            str_of(serde_json::json!({"a": ["it's", "\"'\n"]})),
            r#"{'a': ["it's", '"\'\n']}"#
        );
        assert_eq!(str_of(1e20), "1e+20");
        assert_eq!(str_of(1e-7), "1e-07");
        assert_eq!(str_of(123456.789), "123456.789");
    }
}
