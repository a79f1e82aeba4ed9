//! What a template can call: an allow list, every part of it within the budget.

use super::budget::{Budget, FUEL, PaidText, RECURSION};
use super::{clock, filters, operators, python};
use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, ErrorKind, State, Value, functions, tests};
use std::sync::Arc;

/// The environment of one render.
pub(super) fn new<'e>(budget: &Arc<Budget>, now: Option<i64>) -> Environment<'e> {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION);
    operators::install(&mut environment, budget);
    filters::install(&mut environment, budget);
    install_tests(&mut environment, budget);
    install_functions(&mut environment, budget);
    if let Some(now) = now {
        environment.add_function("strftime_now", move |format: &str| {
            clock::format(now, format)
        });
    }
    let paid = Arc::clone(budget);
    environment.set_unknown_method_callback(move |state, value, method, arguments| {
        filters::call_method(&paid, state, value, method, arguments)
    });
    let paid = Arc::clone(budget);
    environment.set_formatter(move |out, _, value| {
        let mut text = PaidText::new(&paid);
        python::write_str(&mut text, value)?;
        out.write_str(&text.text).map_err(Error::from)
    });
    environment
}

fn install_functions(environment: &mut Environment<'_>, budget: &Arc<Budget>) {
    environment.add_function("raise_exception", |words: String| {
        Err::<Value, _>(Error::new(ErrorKind::InvalidOperation, words))
    });
    let builtins = [
        ("range", Value::from_function(functions::range)),
        ("dict", Value::from_function(functions::dict)),
        ("namespace", Value::from_function(functions::namespace)),
    ];
    for (name, function) in builtins {
        let paid = Arc::clone(budget);
        environment.add_function(
            name,
            move |state: &mut State, arguments: Rest<Value>, named: Kwargs| {
                let arguments = filters::with_named(arguments, named);
                arguments
                    .iter()
                    .try_for_each(|argument| paid.pay_deep(argument))?;
                function.call(state, &arguments)
            },
        );
    }
}

fn install_tests(environment: &mut Environment<'_>, budget: &Arc<Budget>) {
    environment.add_test("defined", tests::is_defined);
    environment.add_test("undefined", tests::is_undefined);
    environment.add_test("none", tests::is_none);
    environment.add_test("boolean", tests::is_boolean);
    environment.add_test("true", tests::is_true);
    environment.add_test("false", tests::is_false);
    environment.add_test("number", tests::is_number);
    environment.add_test("integer", tests::is_integer);
    environment.add_test("float", tests::is_float);
    environment.add_test("odd", tests::is_odd);
    environment.add_test("even", tests::is_even);
    environment.add_test("divisibleby", tests::is_divisibleby);
    environment.add_test("string", tests::is_string);
    environment.add_test("mapping", tests::is_mapping);
    // Python's strings are sequences, and its maps can be iterated over.
    environment.add_test("sequence", |value: &Value| {
        value.as_str().is_some() || tests::is_sequence(value) || tests::is_mapping(value)
    });
    environment.add_test("iterable", |value: &Value| {
        value.as_str().is_some() || tests::is_iterable(value)
    });
    for (names, expected) in [(["eq", "equalto", "=="], true), (["ne", "!=", "<>"], false)] {
        for name in names {
            let paid = Arc::clone(budget);
            environment.add_test(name, move |a: Value, b: Value| {
                operators::equal(&paid, &a, &b).map(|same| same == expected)
            });
        }
    }
    let paid = Arc::clone(budget);
    environment.add_test("in", move |needle: Value, haystack: Value| {
        operators::contains(&paid, &needle, &haystack).map(|found| found.is_true())
    });
}
