//! Forms that an answer must have, and samplers, as clients of other servers name them.

use super::client::post;
use super::{question, serve};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";

/// Breaks when a form that other servers know becomes a free answer.
#[test]
fn every_form_is_enforced() {
    let server = serve(|_| {});
    let schema = json!({"type": "object", "properties": {"n": {"const": 7}}, "required": ["n"], "additionalProperties": false});
    let gbnf = "root ::= \"n=\" [67]";
    for (field, form, wanted) in [
        ("guided_json", schema.clone(), "{\"n\":7}"),
        ("guided_json", schema.to_string().into(), "{\"n\":7}"),
        ("guided_regex", "n=[67]".into(), "n="),
        ("guided_choice", json!(["n=6", "n=7"]), "n="),
        ("guided_grammar", gbnf.into(), "n="),
        ("grammar", gbnf.into(), "n="),
        ("json_schema", schema.clone(), "{\"n\":7}"),
        ("structured_outputs", json!({"json": schema}), "{\"n\":7}"),
        (
            "structured_outputs",
            json!({"choice": ["n=6", "n=7"]}),
            "n=",
        ),
        (
            "response_format",
            json!({"type": "json_object", "schema": schema}),
            "{\"n\":7}",
        ),
    ] {
        for path in [CHAT, TEXT] {
            let mut asked = question("Hello", 90);
            asked["prompt"] = "Hello".into();
            asked[field] = form.clone();
            let body = post(server.address, path, &asked).json();
            let choice = &body["choices"][0];
            let text = choice["message"]["content"]
                .as_str()
                .or(choice["text"].as_str())
                .unwrap();
            let text: String = text.split_whitespace().collect();
            assert!(text.starts_with(wanted), "{path} {field}: {text}");
            assert_eq!(
                text.len(),
                if wanted.len() > 2 { wanted.len() } else { 3 },
                "{field}: {text}"
            );
        }
    }
    let format = json!({"type": "json_schema", "schema": schema});
    for (field, given) in [
        ("output_config", json!({"format": format})),
        ("output_format", format),
    ] {
        let mut asked = question("Hello", 90);
        asked[field] = given;
        let body = post(server.address, "/v1/messages", &asked).json();
        let found: Value =
            serde_json::from_str(body["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(found, json!({"n": 7}), "{field}");
    }
    let asked = json!({"model": "smollm2", "prompt": "Hello", "format": schema, "stream": false});
    for raw in [false, true] {
        let mut asked = asked.clone();
        asked["raw"] = raw.into();
        let body = post(server.address, "/api/generate", &asked).json();
        let found: Value = serde_json::from_str(body["response"].as_str().unwrap()).unwrap();
        assert_eq!(found, json!({"n": 7}), "raw: {raw}");
    }
}

/// Breaks when something that changes the answer is dropped without a word.
#[test]
fn what_cannot_be_had_is_refused() {
    let server = serve(|_| {});
    for (field, value) in [
        ("guided_regex", json!("(")),
        ("guided_choice", json!([])),
        ("guided_choice", json!("yes")),
        ("grammar", json!("root ::= missing")),
        ("guided_json", json!({"type": "strin"})),
        ("structured_outputs", json!({"structural_tag": {"a": 1}})),
        ("best_of", json!(3)),
        ("use_beam_search", json!(true)),
        ("min_tokens", json!(5)),
        ("bad_words", json!(["x"])),
        ("prompt_logprobs", json!(1)),
        ("mirostat", json!(1)),
        ("typical_p", json!(1.5)),
        ("xtc_probability", json!(-1)),
        ("repeat_last_n", json!(-2)),
        ("dry_base", json!("x")),
        ("stop_token_ids", json!([4_000_000])),
    ] {
        let mut asked = question("Hello", 5);
        asked["prompt"] = "Hello".into();
        asked[field] = value.clone();
        for path in [CHAT, TEXT] {
            let refused = post(server.address, path, &asked);
            assert_eq!(refused.status, 400, "{path} {field}: {value}");
            let error = refused.json();
            assert_eq!(error["error"]["param"], field, "{error}");
            assert!(
                error["error"]["message"].as_str().unwrap().contains(field),
                "{error}"
            );
        }
    }
    let mut asked = question("Hello", 5);
    for (field, value) in [
        ("best_of", json!(1)),
        ("use_beam_search", json!(false)),
        ("mirostat", json!(0)),
        ("grammar", json!("")),
    ] {
        asked[field] = value;
    }
    assert_eq!(post(server.address, CHAT, &asked).status, 200);
}

/// Breaks when a sampler of the engine has no effect here.
#[test]
fn samplers_reach_the_engine() {
    let server = serve(|_| {});
    let ask = |more: Value| {
        let mut asked = json!({"prompt": "The sea is", "max_tokens": 24, "temperature": 1.5, "seed": 5, "ignore_eos": true});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let body = post(server.address, TEXT, &asked).json();
        body["choices"][0]["text"].as_str().unwrap().to_string()
    };
    let plain = ask(json!({}));
    assert_eq!(
        ask(json!({"mirostat_tau": 1})),
        plain,
        "without mirostat it says nothing"
    );
    for more in [
        json!({"typical_p": 0.05}),
        json!({"top_n_sigma": 0.1}),
        json!({"xtc_probability": 1, "xtc_threshold": 0.02}),
        json!({"dynatemp_range": 1.4}),
        json!({"mirostat": 2, "mirostat_tau": 0.5}),
        json!({"repetition_penalty": 8, "repeat_last_n": -1}),
    ] {
        assert_ne!(ask(more.clone()), plain, "{more}");
    }
    assert_eq!(
        ask(json!({"repetition_penalty": 8, "repeat_last_n": 0})),
        plain
    );
    // What a small model repeats word by word.
    let dry = |more: Value| {
        let mut asked = json!({"temperature": 0, "max_tokens": 80, "dry_multiplier": 50, "dry_allowed_length": 1});
        asked
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        ask(asked)
    };
    let repeated = dry(json!({"dry_multiplier": 0}));
    assert_ne!(dry(json!({"dry_sequence_breakers": []})), repeated);
    assert_eq!(dry(json!({"dry_penalty_last_n": 0})), repeated);
}

/// Breaks when an answer goes on after one of the tokens that end it, or has its text.
#[test]
fn tokens_end_answers() {
    let server = serve(|_| {});
    let mut asked =
        json!({"prompt": "One, two, three,", "max_tokens": 20, "temperature": 0, "logprobs": 0});
    let body = post(server.address, TEXT, &asked).json();
    let tokens = body["choices"][0]["logprobs"]["tokens"].as_array().unwrap();
    let ids = post(server.address, "/tokenize", &json!({"content": tokens[3]})).json();
    asked["stop_token_ids"] = ids["tokens"].clone();
    let ended = post(server.address, TEXT, &asked).json();
    let first = tokens.iter().position(|token| *token == tokens[3]).unwrap();
    let wanted: String = tokens[..first]
        .iter()
        .map(|token| token.as_str().unwrap())
        .collect();
    assert_eq!(ended["choices"][0]["text"], wanted, "{ended}");
    assert_eq!(ended["choices"][0]["finish_reason"], "stop");
}
