//! Filters and methods that pay for what they make.

use super::budget::{Budget, PaidText, refused};
use super::{json, python};
use minijinja::value::{Kwargs, Rest, ValueKind, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};
use minijinja_contrib::pycompat;
use std::fmt::Write;
use std::sync::Arc;

/// Filters that compare elements with each other.
const COMPARING: &[&str] = &["dictsort", "sort", "unique", "groupby", "min", "max"];

/// Adds every filter that templates may use.
pub(super) fn install(environment: &mut Environment<'_>, budget: &Arc<Budget>) {
    // These look at a value without walking through it, or at single numbers.
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("default", filters::default);
    environment.add_filter("d", filters::default);
    environment.add_filter("attr", filters::attr);
    environment.add_filter("safe", filters::safe);
    environment.add_filter("round", filters::round);
    environment.add_filter("abs", filters::abs);
    environment.add_filter("int", filters::int);
    environment.add_filter("float", filters::float);
    environment.add_filter("bool", filters::bool);
    for (name, filter) in [
        ("lower", Value::from_function(filters::lower)),
        ("upper", Value::from_function(filters::upper)),
        ("title", Value::from_function(filters::title)),
        ("capitalize", Value::from_function(filters::capitalize)),
        ("trim", Value::from_function(filters::trim)),
        ("split", Value::from_function(filters::split)),
        ("items", Value::from_function(filters::items)),
        ("list", Value::from_function(filters::list)),
        ("reverse", Value::from_function(filters::reverse)),
        ("dictsort", Value::from_function(filters::dictsort)),
        ("sort", Value::from_function(filters::sort)),
        ("unique", Value::from_function(filters::unique)),
        ("groupby", Value::from_function(filters::groupby)),
        ("min", Value::from_function(filters::min)),
        ("max", Value::from_function(filters::max)),
        ("map", Value::from_function(filters::map)),
        ("select", Value::from_function(filters::select)),
        ("reject", Value::from_function(filters::reject)),
        ("selectattr", Value::from_function(filters::selectattr)),
        ("rejectattr", Value::from_function(filters::rejectattr)),
    ] {
        let budget = Arc::clone(budget);
        let rounds = if COMPARING.contains(&name) { 32 } else { 4 };
        environment.add_filter(
            name,
            move |state: &mut State, arguments: Rest<Value>, named: Kwargs| {
                let arguments = with_named(arguments, named);
                arguments
                    .iter()
                    .try_for_each(|argument| budget.pay_rounds(argument, rounds))?;
                filter.call(state, &arguments).map(materialised)
            },
        );
    }
    install_writers(environment, budget);
}

/// The arguments as a call takes them: named ones are one more at the end.
pub(super) fn with_named(arguments: Rest<Value>, named: Kwargs) -> Vec<Value> {
    let mut all = arguments.to_vec();
    if named.args().next().is_some() {
        all.push(named.into());
    }
    all
}

/// Undefined values have no elements, as in Jinja.
fn length(value: &Value) -> Result<usize, Error> {
    match value.is_undefined() {
        true => Ok(0),
        false => filters::length(value),
    }
}

/// A lazy sequence as a list: lazy ones would pile up inside of each other.
fn materialised(value: Value) -> Value {
    match (value.kind(), value.try_iter()) {
        (ValueKind::Iterable, Ok(items)) => Value::from(items.collect::<Vec<Value>>()),
        _ => value,
    }
}

/// The filters whose result can be larger than their input.
fn install_writers(environment: &mut Environment<'_>, budget: &Arc<Budget>) {
    let paid = Arc::clone(budget);
    environment.add_filter("string", move |value: Value| {
        let mut out = PaidText::new(&paid);
        python::write_str(&mut out, &value)?;
        Ok::<_, Error>(Value::from(out.text))
    });
    let paid = Arc::clone(budget);
    environment.add_filter(
        "tojson",
        move |value: Value, indent: Option<Value>, arguments: Kwargs| {
            json::to_json(&paid, &value, indent, &arguments)
        },
    );
    let paid = Arc::clone(budget);
    environment.add_filter(
        "join",
        move |value: Value, joiner: Option<Value>, arguments: Kwargs| {
            let joiner = match joiner {
                Some(joiner) => Some(joiner),
                None => arguments.get::<Option<Value>>("d")?,
            };
            let attribute = arguments.get::<Option<String>>("attribute")?;
            join(
                &paid,
                &value,
                &joiner.unwrap_or_default(),
                attribute.as_deref(),
            )
        },
    );
    let paid = Arc::clone(budget);
    environment.add_filter("replace", move |text: &str, old: &str, new: &str| {
        replace(&paid, text, old, new, usize::MAX)
    });
    let paid = Arc::clone(budget);
    environment.add_filter(
        "indent",
        move |text: &str, width: Option<Value>, first: Option<bool>, arguments: Kwargs| {
            let width = width.or(arguments.get::<Option<Value>>("width")?);
            let first = first.or(arguments.get::<Option<bool>>("first")?);
            let blank = arguments.get::<Option<bool>>("blank")?.unwrap_or(false);
            indent(
                &paid,
                text,
                &indent_prefix(width)?,
                (first.unwrap_or(false), blank),
            )
        },
    );
}

fn join(
    budget: &Budget,
    value: &Value,
    joiner: &Value,
    attribute: Option<&str>,
) -> Result<Value, Error> {
    let mut out = PaidText::new(budget);
    if value.is_undefined() || value.is_none() {
        return Ok(Value::from(""));
    }
    for (at, item) in value.try_iter()?.enumerate() {
        if at > 0 {
            python::write_str(&mut out, joiner)?;
        }
        let item = attribute.map_or(Ok(item.clone()), |name| item.get_attr(name))?;
        python::write_str(&mut out, &item)?;
    }
    Ok(Value::from(out.text))
}

fn replace(
    budget: &Budget,
    text: &str,
    old: &str,
    new: &str,
    limit: usize,
) -> Result<Value, Error> {
    budget.pay(text.len())?;
    let found = text.matches(old).take(limit).count();
    budget.pay(found.saturating_mul(new.len()))?;
    Ok(Value::from(text.replacen(old, new, limit)))
}

/// A number of spaces, or the text itself; four spaces when nothing is said.
fn indent_prefix(width: Option<Value>) -> Result<String, Error> {
    let Some(width) = width else {
        return Ok(" ".repeat(4));
    };
    match (width.as_str(), width.as_usize()) {
        (Some(text), _) => Ok(text.to_string()),
        (None, Some(n)) if n <= 1000 => Ok(" ".repeat(n)),
        _ => Err(refused("`indent` takes up to 1000 spaces")),
    }
}

/// Puts the prefix before every line but the first and, unless told to, blank ones.
fn indent(
    budget: &Budget,
    text: &str,
    prefix: &str,
    (first, blank): (bool, bool),
) -> Result<Value, Error> {
    let mut out = PaidText::new(budget);
    for (at, line) in text.split('\n').enumerate() {
        let is_indented = if at == 0 {
            first
        } else {
            blank || !line.is_empty()
        };
        let separator = if at == 0 { "" } else { "\n" };
        let prefix = if is_indented { prefix } else { "" };
        write!(out, "{separator}{prefix}{line}")
            .map_err(|_| refused("the template indents too much text"))?;
    }
    Ok(Value::from(out.text))
}

/// Python's methods of strings, lists and maps.
pub(super) fn call_method(
    budget: &Budget,
    state: &mut State,
    value: &Value,
    method: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    budget.pay_shallow(value)?;
    match (value.as_str(), method) {
        (Some(text), "replace") => {
            let (old, new, limit): (&str, &str, Option<i64>) = from_args(arguments)?;
            let limit = limit.and_then(|limit| usize::try_from(limit).ok());
            replace(budget, text, old, new, limit.unwrap_or(usize::MAX))
        }
        (Some(_), "join") => {
            let (items,): (Value,) = from_args(arguments)?;
            join(budget, &items, value, None)
        }
        (Some(text), "removeprefix" | "removesuffix") => {
            let (part,): (&str,) = from_args(arguments)?;
            let rest = match method {
                "removeprefix" => text.strip_prefix(part),
                _ => text.strip_suffix(part),
            };
            Ok(Value::from(rest.unwrap_or(text)))
        }
        (Some(text), "format") if !is_plain_format(text) => {
            Err(refused("`format` takes no widths in a chat template"))
        }
        (Some(text), _) => {
            budget.pay(text.len())?;
            arguments
                .iter()
                .try_for_each(|argument| budget.pay_deep(argument))?;
            pycompat::unknown_method_callback(state, value, method, arguments).map(materialised)
        }
        (None, "append" | "pop" | "extend" | "insert" | "update" | "clear") => {
            let words = format!("`{method}` would change a value, which templates may not");
            Err(Error::new(ErrorKind::InvalidOperation, words))
        }
        (None, _) => {
            pycompat::unknown_method_callback(state, value, method, arguments).map(materialised)
        }
    }
}

/// Whether the fields in a format string have short, fixed specifications.
fn is_plain_format(text: &str) -> bool {
    let mut specifications = text.split('{').skip(1);
    specifications.all(|field| match field.split_once('}') {
        Some((inside, _)) => !inside.contains(|c: char| c.is_ascii_digit()) || inside.len() <= 4,
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_formats_are_not_plain() {
        assert!(is_plain_format("a {} b {name} {0} {:.2f}"));
        for wide in ["{:>999999999}", "{:{w}}", "{", "{0:99999}"] {
            assert!(!is_plain_format(wide), "{wide}");
        }
    }
}
