//! Grammars that nobody should write: an error in one line, in bounded time and memory, never a crash.

use akunu_engine::{GenerateOptions, Grammar, GrammarError, Model};

use super::talk::{tiny, try_alone};

fn refused(grammar: Result<Grammar, GrammarError>) -> String {
    let said = grammar.expect_err("it is refused").to_string();
    assert!(said.lines().count() == 1 && said.len() < 2000, "{said}");
    said
}

/// Fails when a mistake is passed over, or when the message does not say where it is.
#[test]
fn mistakes_are_named() {
    let model = tiny();
    let schema = |text: &str| refused(Grammar::json_schema(&model, text));
    assert!(schema("{\"type\": \"string\",}").contains("line 1 column 19"));
    assert!(schema("{\"type\": \"strin\"}").contains("strin"));
    assert!(schema("{\"properties\": 5}").contains("properties"));
    assert!(schema("{\"$ref\": \"#/$defs/nothing\"}").contains("nothing"));
    assert!(schema("{\"type\": \"string\", \"pattern\": \"(a\"}").contains("(a"));
    assert!(schema("[1]").contains("object"));
    assert!(
        schema(
            "\"ünïcödé-ünïcödé-ünïcödé-ünïcödé-ünïcödé-ünïcödé-ünïcödé-ünïcödé-ünïcödé-ünïcödé\""
        )
        .contains("schema")
    );
    let lark = |text: &str| refused(Grammar::lark(&model, text));
    assert!(lark("start: \"a\" | other").contains("other"));
    assert!(lark("begin: \"a\"").contains("start"));
    assert!(lark("").contains("grammar"));
    assert!(refused(Grammar::regex(&model, "(a")).contains("unclosed group"));
    assert!(refused(Grammar::choice(&model, &[])).contains("0 strings"));
    assert!(refused(Grammar::choice(&model, &["a".into(), String::new()])).contains("empty"));
}

/// Fails when something impossible becomes free text.
#[test]
fn impossible_grammars_are_refused() {
    let model = tiny();
    let schema = |text: &str| refused(Grammar::json_schema(&model, text));
    schema("false");
    schema(r#"{"type": "string", "minLength": 5, "maxLength": 2}"#);
    schema(r#"{"type": "integer", "minimum": 5, "maximum": 2}"#);
    schema(r#"{"enum": []}"#);
    refused(Grammar::regex(&model, r"[^\s\S]"));
    refused(Grammar::regex(&model, r"a\b\Bc"));
}

/// Fails when the stack overflows (the process ends), or when it takes minutes.
#[test]
fn deep_and_large_grammars_are_refused_or_bounded() {
    let model = tiny();
    let deep = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(20_000), close.repeat(20_000))
    };
    refused(Grammar::regex(&model, &deep("(", "a", ")")));
    refused(Grammar::lark(
        &model,
        &format!("start: {}", deep("(", "\"a\"", ")")),
    ));
    refused(Grammar::json_schema(
        &model,
        &deep(r#"{"items":"#, "true", "}"),
    ));
    refused(Grammar::json_schema(&model, &"[".repeat(100_000)));
    answer(&model, Grammar::regex(&model, "((a{1000}){1000}){1000}"));
    let large = format!(
        "{{\"enum\": [{}\"b\"]}}",
        "\"aaaaaaaaaaaaaaaa\",".repeat(80_000)
    );
    assert!(refused(Grammar::json_schema(&model, &large)).contains("bytes"));
}

/// Many properties are compiled or refused; a recursion without end is a grammar like others, and ends where the answer does.
#[test]
fn a_large_schema_and_an_endless_recursion_end() {
    let model = tiny();
    let names = |n: u32| (0..n).map(|n| format!("\"property_{n}\": {{\"type\": \"string\"}}"));
    let object = |n: u32| {
        let names = names(n).collect::<Vec<_>>().join(",");
        format!("{{\"type\": \"object\", \"properties\": {{{names}}}}}")
    };
    refused(Grammar::json_schema(&model, &object(10_000)));
    answer(&model, Grammar::json_schema(&model, &object(800)));
    let endless = r##"{"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}}}"##;
    answer(&model, Grammar::json_schema(&model, endless));
    answer(&model, Grammar::lark(&model, "start: start start | \"a\""));
    let itself = r##"{"$ref": "#"}"##;
    answer(&model, Grammar::json_schema(&model, itself));
}

/// Fails when a schema whose names are not those of `properties`, or that stands in a grammar, is compiled for minutes.
#[test]
fn names_are_counted_wherever_they_stand() {
    let model = tiny();
    let names = |n: u32| (0..n).map(|n| format!("\"p{n}\"")).collect::<Vec<_>>();
    let members = |n: u32| names(n).join(": {}, ") + ": {}";
    let required = format!("{{\"required\": [{}]}}", names(20_000).join(", "));
    assert!(refused(Grammar::json_schema(&model, &required)).contains("20000 properties"));
    let patterns = format!("{{\"patternProperties\": {{{}}}}}", members(400));
    assert!(refused(Grammar::json_schema(&model, &patterns)).contains("patternProperties"));
    let within = format!("start: %json {{\"properties\": {{{}}}}}", members(20_000));
    assert!(refused(Grammar::lark(&model, &within)).contains("20000 properties"));
}

/// It is refused, fails in one line, or answers and ends.
fn answer(model: &Model, grammar: Result<Grammar, GrammarError>) {
    let Ok(grammar) = grammar else {
        refused(grammar);
        return;
    };
    let options = GenerateOptions {
        grammar: Some(grammar),
        max_tokens: 40,
        ..GenerateOptions::default()
    };
    match try_alone(model, &[1, 2, 3], options) {
        Ok(said) => assert!(said.stop.is_some(), "{said:?}"),
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
}
