//! Texts that go on: several at once, with the probabilities of their own tokens, and with what comes after them.

use std::path::PathBuf;

use akunu::{CpuOptions, Device, Model};
use akunu_server::{ServerOptions, Source};
use serde_json::{Value, json};

use super::client::post;
use super::{ALONE, Running, serve, start};

fn complete(server: &Running, body: Value) -> Value {
    let response = post(server.address, "/v1/completions", &body);
    assert_eq!(response.status, 200, "{body}");
    response.json()
}

fn refused(server: &Running, body: Value) -> Value {
    let response = post(server.address, "/v1/completions", &body);
    assert_eq!(response.status, 400, "{body}");
    response.json()["error"]["param"].clone()
}

fn texts(answer: &Value) -> Vec<(u64, String)> {
    let choices = answer["choices"].as_array().unwrap().iter();
    let text = |choice: &Value| choice["text"].as_str().unwrap().to_string();
    choices
        .map(|choice| (choice["index"].as_u64().unwrap(), text(choice)))
        .collect()
}

fn ids(server: &Running, text: &str) -> Vec<u64> {
    let body = json!({"content": text, "parse_special": true});
    let tokens = post(server.address, "/tokenize", &body).json();
    serde_json::from_value(tokens["tokens"].clone()).unwrap()
}

/// Breaks when one of several prompts gets the answer to another, or another number than by itself; or when their tokens are counted wrong.
#[test]
fn several_prompts_are_answered_in_order() {
    let server = serve(|_| {});
    let prompts = ["1, 2, 3,", "The capital of France is", "a b c d"];
    let ask = |prompt: Value| {
        complete(
            &server,
            json!({"prompt": prompt, "max_tokens": 6, "temperature": 0, "echo": true}),
        )
    };
    let alone = prompts.map(|prompt| ask(prompt.into()));
    let together = ask(json!(prompts));
    let wanted: Vec<(u64, String)> = (0..)
        .zip(alone.iter().map(|it| texts(it).remove(0).1))
        .collect();
    assert_eq!(texts(&together), wanted);
    let as_ids = json!(prompts.map(|prompt| ids(&server, prompt)));
    assert_eq!(texts(&ask(as_ids)), wanted);
    for count in ["prompt_tokens", "completion_tokens"] {
        let of = |answer: &Value| answer["usage"][count].as_u64().unwrap();
        assert_eq!(of(&together), alone.iter().map(of).sum::<u64>(), "{count}");
    }
    let twice = json!({"prompt": ["1, 2,", "x y"], "n": 2, "max_tokens": 3, "temperature": 0});
    let twice = texts(&complete(&server, twice));
    assert_eq!(
        twice.iter().map(|it| it.0).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert!(twice[0].1 == twice[1].1 && twice[2].1 == twice[3].1);

    let body =
        json!({"prompt": prompts, "max_tokens": 6, "temperature": 0, "echo": true, "stream": true});
    let (events, is_done) = post(server.address, "/v1/completions", &body).events();
    assert!(is_done);
    let mut streamed = vec![String::new(); 3];
    for (index, text) in events.iter().flat_map(texts) {
        streamed[index as usize] += &text;
    }
    let wanted: Vec<String> = wanted.into_iter().map(|it| it.1).collect();
    assert_eq!(streamed, wanted);

    assert_eq!(refused(&server, json!({"prompt": []})), "prompt");
    assert_eq!(refused(&server, json!({"prompt": ["a", ""]})), "prompt");
    let many = vec!["a"; 73];
    assert_eq!(refused(&server, json!({"prompt": many})), "prompt");
}

fn logprobs(answer: &Value) -> Vec<Option<f64>> {
    serde_json::from_value(answer["choices"][0]["logprobs"]["token_logprobs"].clone()).unwrap()
}

/// Breaks when a token of the prompt has another probability than as a token of the answer, or stands at another place.
#[test]
fn the_prompt_is_scored_as_the_answer_is() {
    let server = serve(|_| {});
    let prompt = ids(&server, "The capital of France is");
    let base = json!({"prompt": prompt, "max_tokens": 6, "temperature": 0, "logprobs": 2, "ignore_eos": true});
    let answered = complete(&server, base.clone());
    let said = ids(&server, answered["choices"][0]["text"].as_str().unwrap());
    let mut scored = base.clone();
    scored["prompt"] = json!([prompt.clone(), said.clone()].concat());
    scored["echo"] = true.into();
    scored["max_tokens"] = 0.into();
    let scored = complete(&server, scored);
    let (all, written) = (logprobs(&scored), logprobs(&answered));
    assert_eq!(all.len(), prompt.len() + said.len());
    assert_eq!(all[0], None, "nothing comes before the first token");
    for (of_prompt, of_answer) in all[prompt.len()..].iter().zip(&written) {
        let (a, b) = (of_prompt.unwrap(), of_answer.unwrap());
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
    let top = &scored["choices"][0]["logprobs"]["top_logprobs"];
    assert!(top[0].is_null());
    assert_eq!(top[1].as_object().unwrap().len(), 2);
    assert_eq!(scored["usage"]["completion_tokens"], 0);
    assert_eq!(scored["choices"][0]["finish_reason"], "length");

    let mut both = base;
    both["echo"] = true.into();
    both["prompt"] = json!([prompt, ids(&server, "Hello there")]);
    let both = complete(&server, both);
    let first = logprobs(&both);
    assert_eq!(first.len(), prompt.len() + 6);
    assert_eq!(first[prompt.len()..], written);
    let tokens = both["choices"][0]["logprobs"]["tokens"].as_array().unwrap();
    let text: String = tokens.iter().map(|token| token.as_str().unwrap()).collect();
    assert_eq!(both["choices"][0]["text"], text);
}

/// Breaks when a request for no tokens is refused, or gets some.
#[test]
fn no_tokens_can_be_asked_for() {
    let server = serve(|_| {});
    let echo = complete(
        &server,
        json!({"prompt": ["Hello", "there"], "max_tokens": 0, "echo": true}),
    );
    assert_eq!(
        texts(&echo),
        [(0, "Hello".to_string()), (1, "there".to_string())]
    );
    let nothing = complete(&server, json!({"prompt": "Hello", "max_tokens": 0}));
    assert_eq!(texts(&nothing), [(0, String::new())]);
    assert_eq!(nothing["usage"]["prompt_tokens"], 1);
    let body = json!({"prompt": "Hello", "max_tokens": 0, "echo": true, "stream": true});
    let (events, is_done) = post(server.address, "/v1/completions", &body).events();
    assert!(is_done);
    assert_eq!(
        events
            .iter()
            .flat_map(texts)
            .map(|it| it.1)
            .collect::<String>(),
        "Hello"
    );
}

/// SmolLM2 with other names for three tokens that it does not need: those of a model for code.
fn model_for_code() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.gguf");
    let model = akunu_assets::path("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let mut bytes = std::fs::read(model).unwrap();
    for (old, new) in [
        ("<jupyter_text>", "<|fim_prefix|>"),
        ("<jupyter_code>", "<|fim_suffix|>"),
        ("<empty_output>", "<|fim_middle|>"),
    ] {
        let at = bytes[..8 << 20]
            .windows(old.len())
            .position(|window| window == old.as_bytes());
        let at = at.unwrap_or_else(|| panic!("{old}"));
        bytes[at..at + new.len()].copy_from_slice(new.as_bytes());
    }
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// Breaks when what comes after does not reach the model by its own tokens, in one of the protocols; or when a model without such tokens
/// gets it as plain text.
#[test]
fn a_gap_is_filled_by_the_models_own_tokens() {
    let (_folder, path) = model_for_code();
    let alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
    let options = ServerOptions {
        address: ([127, 0, 0, 1], 0).into(),
        context: Some(512),
        ..ServerOptions::default()
    };
    let open = move || {
        let exact = CpuOptions {
            exact: true,
            ..CpuOptions::default()
        };
        Ok(Model::open_on(&path, Device::Cpu(exact))?.into())
    };
    let server = start(options, vec![Source::new("code", open)], alone);
    let (before, after) = ("def add(a, b):\n    return", "\n\nprint(add(1, 2))\n");
    let marked = format!("<|fim_prefix|>{before}<|fim_suffix|>{after}<|fim_middle|>");
    let base = json!({"max_tokens": 8, "temperature": 0});
    let mut plain = base.clone();
    plain["prompt"] = json!(ids(&server, &marked));
    let wanted = complete(&server, plain);
    let mut filled = base;
    filled["prompt"] = before.into();
    filled["suffix"] = after.into();
    let got = complete(&server, filled);
    assert_eq!(texts(&got), texts(&wanted));
    let prompt = &got["usage"]["prompt_tokens"];
    assert_eq!(*prompt, wanted["usage"]["prompt_tokens"]);
    let ollama = json!({"model": "code", "prompt": before, "suffix": after, "stream": false,
                        "options": {"num_predict": 8, "temperature": 0}});
    let said = post(server.address, "/api/generate", &ollama).json();
    assert_eq!(said["response"], texts(&wanted)[0].1);
    assert_eq!(said["prompt_eval_count"], *prompt);
    drop(server);

    let server = serve(|_| {});
    assert_eq!(
        refused(&server, json!({"prompt": "a", "suffix": "b"})),
        "suffix"
    );
    let usual = json!({"prompt": "a", "suffix": "", "max_tokens": 1});
    complete(&server, usual);
}
