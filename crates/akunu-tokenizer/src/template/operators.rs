//! The operators that a template's instructions call: `minijinja`'s own, but paid for.

use super::budget::{Budget, MAX_ELEMENTS, PaidText, refused};
use super::filters::with_named;
use super::python;
use minijinja::value::{Kwargs, Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use std::sync::Arc;

// No template can call these: an identifier has no space in it.
pub(super) const ADD: &str = "operator +";
pub(super) const MUL: &str = "operator *";
pub(super) const CONCAT: &str = "operator ~";
pub(super) const EQ: &str = "operator ==";
pub(super) const NE: &str = "operator !=";
pub(super) const IN: &str = "operator in";
pub(super) const SLICE: &str = "operator [:]";
pub(super) const LIST: &str = "operator []";
pub(super) const TUPLE: &str = "operator ()";
pub(super) const MAP: &str = "operator {}";
pub(super) const CYCLE: &str = "method cycle";
pub(super) const CHANGED: &str = "method changed";

type Builder = fn(Vec<Value>) -> Value;
type Binary = fn(&Budget, &Value, &Value) -> Result<Value, Error>;

/// Adds all operators to an environment.
pub(super) fn install(environment: &mut Environment<'_>, budget: &Arc<Budget>) {
    let binaries: [(&'static str, Binary); 6] = [
        (ADD, add),
        (MUL, mul),
        (CONCAT, concat),
        (EQ, |budget, a, b| equal(budget, a, b).map(Value::from)),
        (NE, |budget, a, b| {
            equal(budget, a, b).map(|same| Value::from(!same))
        }),
        (IN, contains),
    ];
    for (name, operator) in binaries {
        let budget = Arc::clone(budget);
        environment.add_function(name, move |a: Value, b: Value| operator(&budget, &a, &b));
    }
    let builders: [(&'static str, Builder); 3] = [
        (LIST, Value::from),
        (TUPLE, |values| Value::from(Tuple::from(values))),
        (MAP, |values| Value::from_pairs(pairs(values))),
    ];
    for (name, build) in builders {
        let budget = Arc::clone(budget);
        environment.add_function(name, move |values: Rest<Value>| {
            let value = build(values.to_vec());
            budget.pay_deep(&value).map(|()| value)
        });
    }
    let paid = Arc::clone(budget);
    environment.add_function(SLICE, move |value: Value, range: Rest<Value>| {
        slice(&paid, &value, &range)
    });
    install_loop_methods(environment, budget);
}

/// `loop.cycle` divides by the number of its arguments, and `loop.changed` compares its own with those of the last time.
fn install_loop_methods(environment: &mut Environment<'_>, budget: &Arc<Budget>) {
    environment.add_function(
        CYCLE,
        |state: &mut State, value: Value, arguments: Rest<Value>, named: Kwargs| {
            let arguments = with_named(arguments, named);
            if arguments.is_empty() {
                return Err(refused("`cycle` needs at least one argument"));
            }
            value.call_method(state, "cycle", &arguments)
        },
    );
    let budget = Arc::clone(budget);
    environment.add_function(
        CHANGED,
        move |state: &mut State, value: Value, arguments: Rest<Value>, named: Kwargs| {
            let arguments = with_named(arguments, named);
            arguments
                .iter()
                .try_for_each(|argument| budget.pay_rounds(argument, 1))?;
            value.call_method(state, "changed", &arguments)
        },
    );
}

/// Key, value, key, value …
fn pairs(values: Vec<Value>) -> impl Iterator<Item = (Value, Value)> {
    let mut values = values.into_iter();
    std::iter::from_fn(move || Some((values.next()?, values.next()?)))
}

fn add(budget: &Budget, a: &Value, b: &Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (a.as_str(), b.as_str()) {
        budget.pay(left.len() + right.len())?;
        return Ok(Value::from([left, right].concat()));
    }
    if is_list(a) && is_list(b) {
        return list(budget, a.try_iter()?.chain(b.try_iter()?));
    }
    arithmetic("+", a, b, i128::checked_add, |a, b| a + b)
}

fn mul(budget: &Budget, a: &Value, b: &Value) -> Result<Value, Error> {
    let (repeated, times) = if a.is_number() { (b, a) } else { (a, b) };
    if repeated.is_number() {
        return arithmetic("*", a, b, i128::checked_mul, |a, b| a * b);
    }
    // A negative number repeats nothing, as in Python.
    let times = times
        .as_i64()
        .ok_or_else(|| impossible("*", a, b))
        .map(|times| usize::try_from(times).unwrap_or(0))?;
    match repeated.as_str() {
        Some(text) => {
            budget.pay(text.len().saturating_mul(times))?;
            Ok(Value::from(text.repeat(times)))
        }
        None if is_list(repeated) => {
            let items: Vec<Value> = repeated.try_iter()?.collect();
            list(budget, std::iter::repeat_n(items, times).flatten())
        }
        None => Err(impossible("*", a, b)),
    }
}

/// A list of some elements, if they are not too many.
fn list(budget: &Budget, items: impl Iterator<Item = Value>) -> Result<Value, Error> {
    let items: Vec<Value> = items.take(MAX_ELEMENTS + 1).collect();
    budget.pay(items.len())?;
    match items.len() > MAX_ELEMENTS {
        true => Err(refused("the template makes a list that is too large")),
        false => Ok(Value::from(items)),
    }
}

fn arithmetic(
    operator: &str,
    a: &Value,
    b: &Value,
    integer: fn(i128, i128) -> Option<i128>,
    float: fn(f64, f64) -> f64,
) -> Result<Value, Error> {
    let number = |value: &Value| value.is_number() || value.kind() == ValueKind::Bool;
    if !number(a) || !number(b) {
        return Err(impossible(operator, a, b));
    }
    if let (Ok(x), Ok(y)) = (i128::try_from(a.clone()), i128::try_from(b.clone()))
        && !python::is_float(a)
        && !python::is_float(b)
    {
        let result = integer(x, y).ok_or_else(|| impossible(operator, a, b))?;
        return match i64::try_from(result) {
            Ok(small) => Ok(Value::from(small)),
            Err(_) => Ok(Value::from(result)),
        };
    }
    let result = float(f64::try_from(a.clone())?, f64::try_from(b.clone())?);
    Ok(Value::from(result))
}

fn concat(budget: &Budget, a: &Value, b: &Value) -> Result<Value, Error> {
    let mut out = PaidText::new(budget);
    python::write_str(&mut out, a)?;
    python::write_str(&mut out, b)?;
    Ok(Value::from(out.text))
}

pub(super) fn equal(budget: &Budget, a: &Value, b: &Value) -> Result<bool, Error> {
    match (a.as_str(), b.as_str()) {
        (Some(left), Some(right)) if left.len() != right.len() => Ok(false),
        (Some(left), Some(_)) => budget.pay(1 + left.len() / 16).map(|()| a == b),
        _ if a.kind() != b.kind() => Ok(a == b),
        _ => budget.pay_deep(a).map(|()| a == b),
    }
}

pub(super) fn contains(budget: &Budget, needle: &Value, haystack: &Value) -> Result<Value, Error> {
    budget.pay_shallow(haystack)?;
    let found = match (haystack.as_str(), needle.as_str()) {
        (Some(text), Some(part)) => text.contains(part),
        (Some(_), None) => return Err(impossible("in", needle, haystack)),
        _ if haystack.is_undefined() || haystack.is_none() => false,
        _ if haystack.kind() == ValueKind::Map => !haystack.get_item(needle)?.is_undefined(),
        _ => {
            for item in haystack.try_iter()? {
                if equal(budget, &item, needle)? {
                    return Ok(Value::from(true));
                }
            }
            false
        }
    };
    Ok(Value::from(found))
}

/// `value[start:stop:step]`, as Python counts.
fn slice(budget: &Budget, value: &Value, range: &[Value]) -> Result<Value, Error> {
    let bound = |at: usize| range.get(at).and_then(Value::as_i64);
    let step = bound(2).unwrap_or(1);
    if step == 0 {
        return Err(refused("the step of a slice is zero"));
    }
    budget.pay_shallow(value)?;
    match value.as_str() {
        Some(text) => {
            budget.pay(text.len())?;
            let characters: Vec<char> = text.chars().collect();
            let picked = indices(characters.len(), bound(0), bound(1), step);
            let picked: String = picked.filter_map(|at| characters.get(at)).collect();
            Ok(Value::from(picked))
        }
        None if value.is_undefined() || value.is_none() => Ok(Value::from(Vec::<Value>::new())),
        None => {
            let items: Vec<Value> = value.try_iter()?.collect();
            let picked = indices(items.len(), bound(0), bound(1), step);
            let picked: Vec<Value> = picked.filter_map(|at| items.get(at).cloned()).collect();
            Ok(Value::from(picked))
        }
    }
}

/// The positions that a slice of `len` elements picks.
fn indices(
    len: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> impl Iterator<Item = usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    // Going backwards, the bounds are one further to the left.
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |bound: i64| {
        let from_start = if bound < 0 {
            bound.saturating_add(len)
        } else {
            bound
        };
        from_start.clamp(low, high)
    };
    let first = start.map_or(if step > 0 { low } else { high }, clamp);
    let last = stop.map_or(if step > 0 { high } else { low }, clamp);
    let mut next = Some(first);
    std::iter::from_fn(move || {
        let at = next.filter(|at| if step > 0 { *at < last } else { *at > last })?;
        next = at.checked_add(step);
        usize::try_from(at).ok()
    })
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn impossible(operator: &str, a: &Value, b: &Value) -> Error {
    let words = format!("`{operator}` cannot take {} and {}", a.kind(), b.kind());
    Error::new(ErrorKind::InvalidOperation, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_pick_what_python_picks() {
        let pick = |start, stop, step| indices(5, start, stop, step).collect::<Vec<_>>();
        assert_eq!(pick(None, None, 1), [0, 1, 2, 3, 4]);
        assert_eq!(pick(Some(1), None, 1), [1, 2, 3, 4]);
        assert_eq!(pick(None, Some(-1), 2), [0, 2]);
        assert_eq!(pick(None, None, -1), [4, 3, 2, 1, 0]);
        assert_eq!(pick(Some(-2), Some(0), -1), [3, 2, 1]);
        assert_eq!(pick(Some(9), None, 1), [0usize; 0]);
        assert_eq!(pick(Some(i64::MIN), Some(i64::MAX), i64::MAX), [0]);
    }
}
