//! Templates that try to hang or to exhaust memory: each is an error.

use akunu_tokenizer::{ChatTemplate, Message, RenderOptions};

fn render(source: &str) -> Result<String, String> {
    let template = ChatTemplate::new(source).map_err(|error| error.to_string())?;
    let messages = [Message::new("user", "hello")];
    let rendered = template.render(&messages, &RenderOptions::default());
    rendered.map_err(|error| error.to_string())
}

/// Words of the limits. An error for another reason would prove nothing.
const LIMITS: &[&str] = &[
    "makes too much text or looks at too many values",
    "is too large",
    "is too long",
    "too many lists or maps",
    "repeats a literal",
    "takes no widths",
    "ran out of fuel",
    "range has too many elements",
    "maximum recursion limits",
    "recursion limit exceeded",
];

/// A template that no limit stops renders, or takes hours.
#[track_caller]
fn refused(source: &str) {
    let shown: String = source.chars().take(160).collect();
    let error = render(source).expect_err(&shown);
    assert!(
        LIMITS.iter().any(|limit| error.contains(limit)),
        "{shown}: {error}"
    );
}

#[test]
fn deep_nesting() {
    let n = 10_000;
    refused(&format!(
        "{}x{}",
        "{% if true %}".repeat(n),
        "{% endif %}".repeat(n)
    ));
    refused(&format!("{{{{ {}1{} }}}}", "(".repeat(n), ")".repeat(n)));
    refused(&format!("{{{{ {}{} }}}}", "[".repeat(n), "]".repeat(n)));
    refused(&format!("{{{{ {} true }}}}", "not ".repeat(n)));
    refused(&format!("{{{{ {}1 }}}}", "-".repeat(n)));
    // What the limit on tags lets through must not overflow the stack either.
    for chain in ["(", "[", "not ", "- ", "x[", "x(", "{1:", "1 if ", "x ~ ("] {
        let _ = render(&format!("{{{{ {} }}}}", chain.repeat(300)));
    }
}

/// Chains are compiled by recursion: without a limit these would overflow the stack.
#[test]
fn long_chains() {
    let n = 100_000;
    refused(&format!("{{{{ 1{} }}}}", " + 1".repeat(n)));
    refused(&format!("{{{{ x{} }}}}", " ~ x".repeat(n)));
    refused(&format!("{{{{ x{} }}}}", "|trim".repeat(n)));
    refused(&format!("{{{{ x{} }}}}", ".x".repeat(n)));
    refused(&format!("{{{{ x{} }}}}", "[0]".repeat(n)));
    refused(&format!("{{{{ x{} }}}}", "()".repeat(n)));
    refused(&format!("{{{{ x{} }}}}", " and x".repeat(n)));
    refused(&format!("{{{{ x{} }}}}", " if x else x".repeat(n / 2)));
    refused(&format!(
        "{{% if x %}}{}{{% endif %}}",
        "{% elif x %}".repeat(20_000)
    ));
    // The longest chain that is accepted.
    assert_eq!(
        render(&format!("{{{{ 0{} }}}}", " + 1".repeat(400))).unwrap(),
        "400"
    );
}

#[test]
fn large_ranges() {
    refused("{% for i in range(10**9) %}{% endfor %}");
    refused("{% for i in range(1000000000) %}{% endfor %}");
    refused("{{ range(1000000000)|list }}");
}

#[test]
fn nested_loops() {
    refused(
        "{% for i in range(100000) %}{% for j in range(100000) %}{% for k in range(100000) %}\
         {% endfor %}{% endfor %}{% endfor %}",
    );
    refused("{% for i in range(90000) %}{% for j in range(90000) %}x{% endfor %}{% endfor %}");
}

#[test]
fn recursive_macros() {
    refused("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
    refused("{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}");
    refused(
        "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
    );
}

#[test]
fn repeated_text() {
    refused("{{ 'a' * 10**9 }}");
    refused("{{ 'a' * 1000000000 }}");
    refused("{{ 1000000000 * 'a' }}");
    refused("{% set n = 1000000000 %}{{ 'a' * n }}");
    refused("{% set n = 1000000000 %}{{ [0] * n }}");
    refused("{{ ('a' * 99999999) * 2 }}");
    refused("{% set n = 99999999 %}{{ 'a' * n }}");
    refused("{{ ('a') * 1000000000 }}{{ (100000000) * 'a' }}");
    refused("{{ '{:>1000000000}'.format(1) }}");
}

/// Each step doubles: sixty steps would need more memory than there is.
#[test]
fn doubling() {
    let double = |step: &str| {
        refused(&format!(
            "{{% set ns = namespace(x='aaaaaaaa', l=[1]) %}}\
             {{% for i in range(60) %}}{step}{{% endfor %}}{{{{ ns.x }}}}"
        ));
    };
    double("{% set ns.x = ns.x ~ ns.x %}");
    double("{% set ns.x = ns.x + ns.x %}");
    double("{% set ns.x = ns.x * 2 %}");
    double("{% set ns.x = ns.x|replace('a', 'aa') %}");
    double("{% set ns.x = ns.x.replace('a', 'aa') %}");
    double("{% set ns.x = [ns.x, ns.x]|join %}");
    double("{% set ns.x = ns.x.join([ns.x, ns.x]) %}");
    double("{% set y %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}");
    double("{% set ns.l = ns.l + ns.l %}");
    double("{% set ns.l = [ns.l, ns.l] %}");
    double("{% set ns.l = {'a': ns.l, 'b': ns.l} %}");
    double("{% set ns.l = (ns.l, ns.l) %}");
    double("{% set ns.l = dict(a=ns.l, b=ns.l) %}");
    double("{% set ns.l = namespace(a=ns.l, b=ns.l) %}");
    double("{% set ns.x = [ns.x, ns.x]|string %}");
    double("{% set ns.x = [ns.x, ns.x]|tojson %}");
}

/// A value inside of a value, a hundred thousand times: dropping it must not overflow the stack.
#[test]
fn deep_values() {
    for step in [
        "{% set ns.x = [ns.x] %}",
        "{% set ns.x = {'a': ns.x} %}",
        "{% set ns.x = (ns.x, 1) %}",
        "{% set ns.x = namespace(x=ns.x) %}",
        "{% set ns.x = dict(x=ns.x) %}",
    ] {
        refused(&format!(
            "{{% set ns = namespace(x=[]) %}}{{% for i in range(100000) %}}{step}{{% endfor %}}"
        ));
    }
}

/// Lazy values on lazy values: must stay flat, whether or not the fuel lasts.
#[test]
fn deep_lazy_values() {
    for step in [
        "{% set ns.x = ns.x[0:] %}",
        "{% set ns.x = ns.x|reverse %}",
        "{% set ns.x = ns.x|map('string') %}",
        "{% set ns.x = ns.x|select %}",
        "{% set ns.x = ns.x + [] %}",
    ] {
        let source = format!(
            "{{% set ns = namespace(x=[1]) %}}{{% for i in range(50000) %}}{step}{{% endfor %}}\
             {{{{ ns.x|length }}}}"
        );
        // Values that grew would overflow the stack when they are dropped.
        let _ = render(&source);
    }
}

#[test]
fn much_output() {
    let long = "x".repeat(900_000);
    refused(&format!(
        "{{% for i in range(100000) %}}{long}{{% endfor %}}"
    ));
    refused(&format!(
        "{{% set s = '{long}' %}}{{% for i in range(100000) %}}{{{{ s }}}}{{% endfor %}}"
    ));
    refused(&format!(
        "{{% macro m() %}}{long}{{% endmacro %}}\
         {{% for i in range(100000) %}}{{% set x = m() %}}{{% endfor %}}"
    ));
}

#[test]
fn slow_comparisons() {
    let long = "x".repeat(400_000);
    refused(&format!(
        "{{% set a = '{long}' %}}{{% set b = a ~ 'y' %}}{{% set c = a ~ 'y' %}}\
         {{% for i in range(90000) %}}{{% if b == c %}}{{% endif %}}{{% endfor %}}"
    ));
    refused(&format!(
        "{{% set a = '{long}' %}}{{% for i in range(90000) %}}{{% if 'y' in a %}}{{% endif %}}{{% endfor %}}"
    ));
    refused("{% set l = range(90000)|list %}{% for i in l %}{% set x = l|sort %}{% endfor %}");
    refused(
        "{% set l = range(90000)|list %}{% for i in l %}{% set x = loop.changed(l) %}{% endfor %}",
    );
}

/// `minijinja` divides by the number of arguments of `cycle`.
#[test]
fn cycles_of_nothing() {
    for call in ["loop.cycle()", "loop.cycle(*[])"] {
        let source = format!("{{% for i in [1] %}}{{{{ {call} }}}}{{% endfor %}}");
        let error = render(&source).expect_err(call);
        assert!(error.contains("at least one argument"), "{call}: {error}");
    }
}

#[test]
fn what_templates_may_not_do() {
    for source in [
        "{% include 'other' %}",
        "{% extends 'other' %}",
        "{% from 'other' import x %}",
        "{{ unclosed",
        "{{ messages.append(1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ debug() }}",
    ] {
        render(source).expect_err(source);
    }
    let too_long = " ".repeat(2_000_000);
    let error = render(&too_long).unwrap_err();
    assert!(error.contains("2000000 bytes"), "{error}");
    refused("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}");
}

/// A template's own words may not steer the terminal that shows them, nor fill it.
#[test]
fn errors_are_one_short_line() {
    let escapes = r"{{ raise_exception('\u001b[2J\u009b1m\u0007\nnope') }}";
    let error = render(escapes).unwrap_err();
    assert!(!error.contains(char::is_control), "{error:?}");
    assert!(error.contains(r"\u{1b}[2J\u{9b}1m\u{7}\nnope"), "{error}");
    for long in [
        "{% set n = 1000000 %}{{ raise_exception('nope' * n) }}".to_string(),
        format!("{{{{ 1|{} }}}}", "x".repeat(900_000)),
        format!("{{% {} %}}", "x".repeat(900_000)),
    ] {
        let error = render(&long).unwrap_err();
        assert!(error.chars().count() < 600, "{} bytes", error.len());
    }
}

/// What templates use and must go on working.
#[test]
fn the_limits_do_not_touch_honest_templates() {
    assert_eq!(render("{{ '-' * messages|length }}").unwrap(), "-");
    assert_eq!(
        render("{{ 1 + 2 }}{{ 2 * 3.0 }}{{ 7 % 4 }}").unwrap(),
        "36.03"
    );
    assert_eq!(
        render("{{ [1] + [2] }}{{ (1, 2) }}{{ true }}").unwrap(),
        "[1, 2](1, 2)True"
    );
    assert_eq!(
        render("{{ messages[::-1][0]['content'][1:-1] }}").unwrap(),
        "ell"
    );
    assert_eq!(
        render("{{ 'a' in 'abc' and 'x' not in ['y'] }}").unwrap(),
        "True"
    );
    assert_eq!(
        render("{{ {'b': 1, 'a': [none, 1.5]}|tojson }}").unwrap(),
        r#"{"b": 1, "a": [null, 1.5]}"#
    );
    assert_eq!(
        render("{{ '{} and {}'.format(1, 'x') }}").unwrap(),
        "1 and x"
    );
    assert_eq!(
        render("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i > 3 %}{% break %}{% endif %}{{ i }}{% endfor %}").unwrap(),
        "023"
    );
    assert_eq!(render("{% generation %}a{% endgeneration %}").unwrap(), "a");
    assert_eq!(
        render("{% for i in [1, 1, 2] %}{{ loop.cycle('a', 'b') }}{{ loop.cycle(*'cd'|list) }}{{ loop.changed(i) }} {% endfor %}").unwrap(),
        "acTrue bdFalse acTrue "
    );
    let error = render("{{ raise_exception('only pairs') }}").unwrap_err();
    assert!(error.contains("only pairs"), "{error}");
}
