#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

use super::*;
use std::sync::LazyLock;

fn model() -> &'static Model {
    static MODEL: LazyLock<Model> = LazyLock::new(|| {
        let path = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
        Model::open(path).unwrap()
    });
    &MODEL
}

/// `get_weather` is strict and its schema refers to a part of itself; `note` takes anything.
fn tools() -> Vec<Tool> {
    let tool = |name: &str, parameters, strict| Tool {
        name: name.into(),
        description: None,
        parameters,
        strict,
    };
    let weather = json!({
        "type": "object",
        "properties": {"city": {"$ref": "#/$defs/City"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
        "$defs": {"City": {"type": "string", "enum": ["Paris", "Rome"]}},
    });
    vec![
        tool("get_weather", weather, true),
        tool("note", json!({"type": "object"}), false),
    ]
}

/// Whether an answer is possible as a whole, given in pieces that tokens do not cross.
fn is_possible(style: Style, pieces: &[&str]) -> bool {
    let grammar = style.grammar(model(), &tools(), false).unwrap();
    let mut walk = grammar.walk();
    let plain = EncodeOptions::default();
    for piece in pieces {
        let ids = model().tokenizer().encode(piece, plain);
        if walk.take(&ids).unwrap() < ids.len() {
            return false;
        }
    }
    walk.is_complete().unwrap()
}

const RIGHT: &str = r#"{"name": "get_weather", "arguments": {"city": "Rome", "days": 3}}"#;
const OTHER: &str = r#"{"name": "note", "arguments": {"anything": [1, {}]}}"#;
/// What no style may let through: a value that the schema does not have, one of another type, too few, a tool that is not there.
const WRONG: [&str; 4] = [
    r#"{"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}}"#,
    r#"{"name": "get_weather", "arguments": {"city": "Rome", "days": "3"}}"#,
    r#"{"name": "get_weather", "arguments": {"city": "Rome"}}"#,
    r#"{"name": "rm", "arguments": {}}"#,
];

/// Breaks when a template's way of writing calls is not seen, or is taken for another.
#[test]
fn styles_are_seen_in_what_templates_write() {
    let of = |text: &str| Style::of_text(&text.replace("NAME", PROBE));
    let hermes = "<|im_start|>assistant\n<tool_call>\n{\"name\": \"NAME\", \"arguments\": {\"a\": 1}}\n</tool_call>";
    assert_eq!(of(hermes), Some(Style::Hermes));
    let list =
        "[TOOL_CALLS] [{\"name\": \"NAME\", \"arguments\": {\"a\": 1}, \"id\": \"call00001\"}]";
    assert_eq!(of(list), Some(Style::MistralList));
    let named = "[TOOL_CALLS]NAME[ARGS]{\"a\": 1}</s>";
    assert_eq!(of(named), Some(Style::MistralNamed { has_mark: true }));
    let unmarked = "[TOOL_CALLS]NAME{\"a\": 1}</s>";
    assert_eq!(of(unmarked), Some(Style::MistralNamed { has_mark: false }));
    let llama =
        "assistant<|end_header_id|>\n\n{\"name\": \"NAME\", \"parameters\": {\"a\": 1}}<|eot_id|>";
    let parameters = Style::Json {
        arguments: "parameters",
    };
    assert_eq!(of(llama), Some(parameters));
    for unknown in [
        "<tool_call>\n<function=NAME>\n<parameter=a>1</parameter>",
        "<|tool_call|>call:NAME{a:1}",
        "the template writes no call",
    ] {
        assert_eq!(of(unknown), None, "{unknown}");
    }
}

/// Breaks when free text is forced into a form, when a call is not, or when only one call is possible.
#[test]
fn calls_between_marks_are_valid() {
    let after = |calls: &[&str]| {
        let mut pieces = vec!["Let me see.\n", CALL];
        pieces.extend(calls);
        is_possible(Style::Hermes, &pieces)
    };
    assert!(!after(&[]), "a call that was begun is made");
    assert!(after(&["\n", RIGHT, "\n", END_CALL]));
    assert!(after(&[OTHER, END_CALL, "\n", CALL, "\n", RIGHT, END_CALL]));
    assert!(!after(&[RIGHT, END_CALL, " And now?"]));
    for wrong in WRONG {
        assert!(!after(&[wrong, END_CALL]), "{wrong}");
        assert!(!after(&[OTHER, END_CALL, CALL, wrong, END_CALL]), "{wrong}");
    }
}

/// Breaks likewise for Mistral's two ways.
#[test]
fn calls_after_a_mark_are_valid() {
    let list = |json: &str| is_possible(Style::MistralList, &["Hm.", MISTRAL, json]);
    assert!(list(&format!("[{RIGHT}]")));
    let id = RIGHT.replace("}}", "}, \"id\": \"abcdefgh1\"}");
    assert!(list(&format!("[{OTHER}, {id}]")));
    assert!(!list("[]") && !list(RIGHT));
    for wrong in WRONG {
        assert!(!list(&format!("[{wrong}]")), "{wrong}");
    }
    let named = Style::MistralNamed { has_mark: true };
    let named = |name: &str, json: &str| is_possible(named, &[MISTRAL, name, ARGS, json]);
    assert!(named("get_weather", r#"{"city": "Rome", "days": 3}"#));
    assert!(named("note", r#"{"text": "x"}"#));
    assert!(!named("get_weather", r#"{"city": "Oslo", "days": 3}"#));
    assert!(!named("rm", "{}"));
}

/// Breaks when text is held for a call, or when a call at the beginning of an answer is free.
#[test]
fn answers_that_begin_with_a_bracket_are_calls() {
    let is_possible = |text: &str| is_possible(Style::TOLD, &[text]);
    for text in ["Hello {\"a\": 1}!", "\n It rains.\n\n", "[1] is a note", ""] {
        assert!(is_possible(text), "{text:?}");
    }
    assert!(is_possible(RIGHT) && is_possible(OTHER));
    assert!(is_possible(&format!("{RIGHT}; {OTHER}")));
    assert!(is_possible(&format!("[{RIGHT}, {OTHER}]")));
    assert!(!is_possible("{\"a\": 1}"));
    for wrong in WRONG {
        assert!(!is_possible(wrong), "{wrong}");
        assert!(!is_possible(&format!("[{wrong}]")), "{wrong}");
        assert!(!is_possible(&format!("\n{RIGHT};{wrong}")), "{wrong}");
    }
}

/// Breaks when a schema that cannot be held to is not told of, and its tool called with anything.
#[test]
fn schemas_that_cannot_be_used_are_refused() {
    let mut tools = tools();
    tools[0].parameters = json!({"type": "object", "properties": {"a": {"type": "strin"}}});
    let refused = Style::Hermes.grammar(model(), &tools, false).unwrap_err();
    assert_eq!(refused.param.as_deref(), Some("tools"));
    assert!(refused.message.contains("strin"), "{}", refused.message);
    tools[0].strict = false;
    assert!(Style::Hermes.grammar(model(), &tools, false).is_ok());
}
