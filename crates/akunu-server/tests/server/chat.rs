//! Questions and answers.

use super::client::{get, post, with};
use super::{question, serve};
use serde_json::{Value, json};

/// Breaks when clients would not find the role, the text, the end, the usage or `[DONE]` where they look for them.
#[test]
fn a_stream_has_the_order_that_clients_depend_on() {
    let server = serve(|_| {});
    let mut asked = question("What is the capital of France?", 24);
    let whole = post(server.address, "/v1/chat/completions", &asked).json();
    assert_eq!(whole["object"], "chat.completion");
    let choice = &whole["choices"][0];
    let text = choice["message"]["content"].as_str().unwrap();
    assert!(text.contains("Paris"), "{whole}");
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"]["role"], "assistant");

    asked["stream"] = true.into();
    asked["stream_options"] = json!({"include_usage": true});
    let mut response = post(server.address, "/v1/chat/completions", &asked);
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    assert_eq!(response.header("x-accel-buffering"), Some("no"));
    let (chunks, is_done) = response.events();
    assert!(is_done, "[DONE] is the last");
    let n = chunks.len();
    let delta = |at: usize| &chunks[at]["choices"][0]["delta"];
    assert_eq!(delta(0), &json!({"role": "assistant", "content": ""}));
    let streamed: Vec<&str> = (1..n - 2)
        .map(|at| delta(at)["content"].as_str().unwrap())
        .collect();
    assert_eq!(streamed.concat(), text);
    assert_eq!(delta(n - 2), &json!({}), "an empty delta tells the end");
    for (at, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["id"], chunks[0]["id"]);
        let finish = if at == n - 2 {
            json!("stop")
        } else {
            Value::Null
        };
        assert_eq!(chunk["choices"][0]["finish_reason"], finish, "{chunk}");
        assert_eq!(chunk["usage"].is_null(), at != n - 1, "{chunk}");
    }
    let last = &chunks[n - 1];
    assert_eq!(last["choices"], json!([]));
    let used = &last["usage"];
    assert_eq!(used["prompt_tokens"], whole["usage"]["prompt_tokens"]);
    assert_eq!(
        used["completion_tokens"],
        whole["usage"]["completion_tokens"]
    );
}

/// Breaks when a token has no log probability, the chosen one is not the best of a greedy answer, or a stream tells
/// others than the whole answer.
#[test]
fn log_probabilities_are_told_to_who_asks() {
    let server = serve(|_| {});
    let mut asked = question("What is the capital of France?", 8);
    asked["logprobs"] = true.into();
    asked["top_logprobs"] = 2.into();
    let whole = post(server.address, "/v1/chat/completions", &asked).json();
    let content = whole["choices"][0]["logprobs"]["content"].clone();
    let tokens = content.as_array().unwrap();
    let n_tokens = whole["usage"]["completion_tokens"].as_u64().unwrap();
    assert_eq!(tokens.len() as u64, n_tokens, "{whole}");
    for token in tokens {
        let best = &token["top_logprobs"];
        assert_eq!(best.as_array().unwrap().len(), 2);
        assert_eq!(token["token"], best[0]["token"], "greedy takes the best");
        let logprob = token["logprob"].as_f64().unwrap();
        assert!((-20.0..=0.0).contains(&logprob), "{token}");
        assert!(logprob >= best[1]["logprob"].as_f64().unwrap());
    }
    asked["stream"] = true.into();
    let (chunks, _) = post(server.address, "/v1/chat/completions", &asked).events();
    let streamed = chunks.iter().flat_map(|chunk| {
        let content = chunk["choices"][0]["logprobs"]["content"].as_array();
        content.cloned().unwrap_or_default()
    });
    assert_eq!(Value::from_iter(streamed), content);
    asked["top_logprobs"] = 21.into();
    let refused = post(server.address, "/v1/chat/completions", &asked);
    assert_eq!(
        (refused.status, refused.json()["error"]["param"].as_str()),
        (400, Some("top_logprobs"))
    );
}

/// Breaks when a bias does not reach the choice, or when one of a token that is not there is taken.
#[test]
fn a_bias_decides_the_answer() {
    let server = serve(|_| {});
    let ids = post(server.address, "/tokenize", &json!({"content": " blue"})).json();
    let id = ids["tokens"][0].as_u64().unwrap();
    let mut asked = question("What is the capital of France?", 3);
    asked["logit_bias"] = json!({id.to_string(): 100});
    let answer = post(server.address, "/v1/chat/completions", &asked).json();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(text.trim(), "blue blue blue", "{answer}");
    asked["logit_bias"] = json!({"999999": 1});
    let refused = post(server.address, "/v1/chat/completions", &asked);
    assert_eq!(
        (refused.status, refused.json()["error"]["param"].as_str()),
        (400, Some("logit_bias"))
    );
}

/// Breaks when the second of two requests reads again what the first has read: its pages have 64 positions.
#[test]
fn what_was_read_before_is_told_as_cached() {
    let server = serve(|_| {});
    let long = "The sea is blue. ".repeat(20);
    let ask = |text: &str| {
        let body = post(server.address, "/v1/chat/completions", &question(text, 2)).json();
        let used = body["usage"].clone();
        let cached = used["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .unwrap();
        (used["prompt_tokens"].as_u64().unwrap(), cached)
    };
    let (n, cached) = ask(&format!("{long} Why?"));
    assert_eq!(cached, 0);
    let (again, cached) = ask(&format!("{long} Where?"));
    assert!(again > 100 && again.abs_diff(n) < 5);
    assert!(cached >= 64 && cached < again, "{cached} of {again}");
}

#[test]
fn choices_stops_and_lengths() {
    let server = serve(|_| {});
    let mut asked = question("Count from one to ten in words.", 5);
    asked["n"] = 3.into();
    asked["temperature"] = 1.5.into();
    asked["seed"] = 7.into();
    let body = post(server.address, "/v1/chat/completions", &asked).json();
    let choices = body["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 3);
    for (at, choice) in choices.iter().enumerate() {
        assert_eq!(
            (choice["index"].as_u64(), &choice["finish_reason"]),
            (Some(at as u64), &json!("length"))
        );
    }
    assert_eq!(body["usage"]["completion_tokens"], 15);
    let again = post(server.address, "/v1/chat/completions", &asked).json();
    assert_eq!(
        again["choices"], body["choices"],
        "the same seed, the same answers"
    );
    let texts: std::collections::HashSet<String> = choices
        .iter()
        .map(|choice| choice["message"]["content"].to_string())
        .collect();
    assert!(texts.len() > 1, "each choice draws for itself: {texts:?}");

    let asked = json!({"prompt": "1, 2, 3, 4, 5,", "max_tokens": 20, "temperature": 0, "stop": [" 8", "zebra"]});
    let body = post(server.address, "/v1/completions", &asked).json();
    let choice = &body["choices"][0];
    assert_eq!(
        (&choice["text"], &choice["finish_reason"]),
        (&json!(" 6, 7,"), &json!("stop"))
    );
    assert_eq!(body["object"], "text_completion");
}

#[test]
fn models_tokens_and_templates() {
    let server = serve(|_| {});
    assert_eq!(
        get(server.address, "/health").json(),
        json!({"status": "ok"})
    );
    let list = get(server.address, "/v1/models").json();
    assert_eq!(list["data"][0]["id"], "smollm2");
    assert_eq!(list["data"][0]["meta"]["context"], 512);
    assert_eq!(
        get(server.address, "/v1/models/smollm2").json()["object"],
        "model"
    );
    assert_eq!(get(server.address, "/v1/models/other").status, 404);

    let asked = json!({"content": "Hello, world", "with_pieces": true});
    let tokens = post(server.address, "/tokenize", &asked).json();
    let ids: Vec<&Value> = tokens["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["id"])
        .collect();
    assert_eq!(tokens["tokens"][0]["piece"], "Hello");
    let text = post(server.address, "/detokenize", &json!({"tokens": ids})).json();
    assert_eq!(text["content"], "Hello, world");
    let unknown = post(
        server.address,
        "/detokenize",
        &json!({"tokens": [1, 49_152]}),
    );
    assert_eq!(unknown.status, 400);
    let error = unknown.json()["error"].take();
    assert_eq!(error["param"], "tokens");
    assert_eq!(
        error["message"],
        "tokens: token 49152 is beyond the vocabulary of 49152"
    );
    let asked = json!({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U<|im_end|>"}]});
    let prompt = post(server.address, "/apply-template", &asked).json();
    assert_eq!(
        prompt["prompt"],
        "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|><|im_end|>\n<|im_start|>assistant\n"
    );
}

/// Sends what `curl` sends for the first command of docs/server.md. Breaks when that would not get an answer.
#[test]
fn the_request_of_the_documentation_is_answered() {
    let page = std::fs::read_to_string("../../docs/server.md").unwrap();
    let command = page.split("curl http://127.0.0.1:8080").nth(1).unwrap();
    let (path, rest) = command.split_once(" -d '").unwrap();
    let (body, _) = rest.split_once('\'').unwrap();
    let server = serve(|_| {});
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let response = with(server.address, "POST", path, &form, body.as_bytes());
    assert_eq!(response.status, 200);
    let answer = response.json();
    let text = answer["choices"][0]["message"]["content"].as_str();
    assert!(text.unwrap().contains("Paris"), "{answer}");
}
