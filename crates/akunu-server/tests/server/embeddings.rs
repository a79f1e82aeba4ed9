//! A server of an encoder: vectors by both protocols, and words for what it cannot do.

use super::client::{get, post};
use super::{serve, serve_asset, serve_asset_with};
use akunu_server::ServerOptions;
use serde_json::{Value, json};

/// Breaks when a server that was started to cut texts does not, or cuts although a request says otherwise; and when a model that writes cuts
/// nothing.
#[test]
fn a_server_cuts_long_texts_if_it_was_told_to() {
    let long = json!({"input": "word ".repeat(600)});
    let mut strict = long.clone();
    strict["truncate"] = false.into();
    let options = ServerOptions {
        truncate: true,
        ..ServerOptions::default()
    };
    let server = serve_asset_with("minilm", "config.json", options);
    let ask = |body: &Value| post(server.address, "/v1/embeddings", body);
    assert_eq!((ask(&long).status, ask(&strict).status), (200, 400));
    drop(server);
    let server = serve(|options| options.truncate = true);
    let cut = post(server.address, "/v1/embeddings", &long).json();
    assert_eq!(cut["usage"]["prompt_tokens"], 512, "{cut}");
}

fn dot(a: &Value, b: &Value) -> f64 {
    let numbers = |vector: &Value| -> Vec<f64> { serde_json::from_value(vector.clone()).unwrap() };
    let pairs = numbers(a).into_iter().zip(numbers(b));
    pairs.map(|(a, b)| a * b).sum()
}

#[test]
fn an_encoder_gives_vectors_and_says_what_it_cannot_do() {
    let server = serve_asset("minilm", "config.json");
    let ask = |path: &str, body: Value| post(server.address, path, &body).json();
    let texts = json!([
        "a cat sleeps",
        "the kitten is napping",
        "interest rates rose"
    ]);
    let made = ask(
        "/v1/embeddings",
        json!({"model": "minilm", "input": texts, "dimensions": 128}),
    );
    let vector = |at: usize| &made["data"][at]["embedding"];
    assert_eq!(vector(2).as_array().map(Vec::len), Some(128), "{made}");
    assert!((dot(vector(0), vector(0)) - 1.0).abs() < 1e-4);
    assert!(dot(vector(0), vector(1)) > dot(vector(0), vector(2)) + 0.2);
    let alone = |at: usize| ask("/v1/embeddings", json!({"input": texts[at]}));
    let tokens = |made: &Value| made["usage"]["prompt_tokens"].as_u64().unwrap();
    let of_all: u64 = (0..3).map(|at| tokens(&alone(at))).sum();
    assert_eq!(tokens(&made), of_all);

    let long = "word ".repeat(400);
    let refused = ask("/v1/embeddings", json!({"input": long}));
    assert_eq!(
        refused["error"]["code"], "context_length_exceeded",
        "{refused}"
    );
    let cut = ask("/api/embed", json!({"model": "minilm", "input": long}));
    assert_eq!(cut["prompt_eval_count"], 256, "{cut}");
    for (body, param) in [
        (json!({"input": "x", "dimensions": 0}), "dimensions"),
        (json!({"input": ""}), "input"),
        (json!({"input": [[1, 2]]}), "input"),
    ] {
        let refused = ask("/v1/embeddings", body);
        assert_eq!(refused["error"]["param"], param, "{refused}");
    }
    for further in [
        json!({"truncate": true}),
        json!({"truncate_prompt_tokens": -1}),
        json!({"truncate_prompt_tokens": 256}),
    ] {
        let mut body = json!({"input": long});
        body.as_object_mut()
            .unwrap()
            .extend(further.as_object().unwrap().clone());
        let cut = ask("/v1/embeddings", body);
        assert_eq!(cut["usage"]["prompt_tokens"], 256, "{cut}");
    }
    let refused = ask(
        "/v1/embeddings",
        json!({"input": "a", "truncate_prompt_tokens": 10}),
    );
    assert_eq!(
        refused["error"]["param"], "truncate_prompt_tokens",
        "{refused}"
    );
    let many = ask(
        "/v1/embeddings",
        json!({"input": vec!["a"; 2048], "dimensions": 2}),
    );
    assert_eq!(many["data"].as_array().map(Vec::len), Some(2048));
    let refused = ask("/v1/embeddings", json!({"input": vec!["a"; 2049]}));
    assert_eq!(refused["error"]["param"], "input", "{refused}");
    let shown = ask("/api/show", json!({"model": "minilm"}));
    assert_eq!(shown["capabilities"], json!(["embedding"]), "{shown}");
    assert_eq!(shown["details"]["format"], "safetensors");
    assert_eq!(shown["model_info"]["embedding_length"], 384);
    let list = get(server.address, "/api/tags").json();
    assert_eq!(list["models"][0]["details"], shown["details"], "{list}");
    let messages = json!([{"role": "user", "content": "Hello"}]);
    let refused = ask("/v1/chat/completions", json!({"messages": messages}));
    let words = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(words.contains("does not generate text"), "{refused}");
    let refused = ask("/v1/rerank", json!({"query": "q", "documents": ["d"]}));
    assert_eq!(refused["error"]["param"], "model", "{refused}");
}
