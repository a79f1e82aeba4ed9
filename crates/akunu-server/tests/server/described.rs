//! `/openapi.json` against what the server does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::client::{Response, get, post, with};
use super::{Running, audio, endless, question, schema, serve, serve_asset, serve_source};
use akunu::{Device, ModelOptions};
use akunu_server::{Served, Source};
use serde_json::{Value, json};

fn document(server: &Running) -> Value {
    get(server.address, "/openapi.json").json()
}

/// Reads a response, and checks it against what the document says of the path.
fn check(document: &Value, path: &str, mut response: Response) {
    let method = &document["paths"][path];
    let method = method
        .as_object()
        .and_then(|methods| methods.values().next());
    let responses = &method.unwrap_or_else(|| panic!("{path} is not described"))["responses"];
    let is_error = response.status != 200;
    let status = if is_error { "default" } else { "200" };
    let kind = response.header("content-type").unwrap().to_string();
    let kind = kind.split(';').next().unwrap();
    let content = &responses[status]["content"];
    let values = match kind {
        "text/event-stream" => response.events().0,
        "application/x-ndjson" => {
            let lines = std::iter::from_fn(|| response.line());
            lines
                .map(|line| serde_json::from_str(&line).unwrap())
                .collect()
        }
        "application/json" => vec![response.json()],
        _ => vec![response.text().into()],
    };
    assert!(content[kind].is_object(), "{path} answers {kind}");
    assert!(!values.is_empty(), "{path}");
    for value in values {
        let found = schema::check(document, &content[kind]["schema"], &value, path);
        assert_eq!(found, Ok(()), "{status} {value}");
    }
}

fn with_tool(mut asked: Value, tool: Value) -> Value {
    asked["tools"] = json!([tool]);
    asked
}

/// What is asked of a model that generates text: paths, bodies, and whether they can be streamed.
fn questions() -> Vec<(&'static str, Value, bool)> {
    let asked = question("What is the capital of France?", 6);
    let parameters =
        json!({"type": "object", "properties": {"city": {"enum": ["Rome"]}}, "required": ["city"]});
    let function = json!({"name": "weather", "parameters": parameters});
    let tool = json!({"type": "function", "function": function});
    let mut called = with_tool(question("Weather?", 60), tool);
    called["tool_choice"] = "required".into();
    let mut scored = asked.clone();
    scored["logprobs"] = true.into();
    scored["top_logprobs"] = 2.into();
    scored["stream_options"] = json!({"include_usage": true});
    let mut text = json!({"prompt": "1, 2,", "max_tokens": 2, "logprobs": 1});
    text["stream_options"] = json!({"include_usage": true});
    let mut item_called = with_tool(json!({"input": "Weather?"}), function.clone());
    item_called["tool_choice"] = "required".into();
    let anthropic_tool = json!({"name": "weather", "input_schema": parameters});
    let mut block_called = with_tool(question("Weather?", 60), anthropic_tool);
    block_called["tool_choice"] = json!({"type": "any"});
    let ollama = |mut asked: Value| {
        asked["model"] = "smollm2".into();
        asked["options"] = json!({"num_predict": 3});
        asked
    };
    let messages = asked["messages"].clone();
    vec![
        ("/v1/chat/completions", asked.clone(), true),
        ("/v1/chat/completions", called, true),
        ("/v1/chat/completions", scored, true),
        ("/v1/completions", text, true),
        (
            "/v1/completions",
            json!({"prompt": "1,", "echo": true}),
            true,
        ),
        (
            "/v1/responses",
            json!({"input": "Hi", "max_output_tokens": 4}),
            true,
        ),
        ("/v1/responses", item_called, true),
        ("/v1/messages", asked.clone(), true),
        ("/v1/messages", block_called, true),
        ("/api/chat", ollama(json!({"messages": messages})), true),
        ("/api/chat", ollama(json!({})), true),
        ("/api/generate", ollama(json!({"prompt": "Hi"})), true),
        ("/v1/messages/count_tokens", asked.clone(), false),
        ("/v1/embeddings", json!({"input": ["a", "b"]}), false),
        (
            "/v1/embeddings",
            json!({"input": "a", "encoding_format": "base64"}),
            false,
        ),
        ("/api/embed", ollama(json!({"input": "a"})), false),
        ("/api/embeddings", ollama(json!({"prompt": "a"})), false),
        ("/api/show", json!({"model": "smollm2"}), false),
        ("/tokenize", json!({"content": "Hi"}), false),
        (
            "/tokenize",
            json!({"content": "\u{1f980}", "with_pieces": true}),
            false,
        ),
        (
            "/completion",
            json!({"prompt": "1,", "n_predict": 2, "n_probs": 1}),
            true,
        ),
        (
            "/completion",
            json!({"prompt": ["1,", "2,"], "n_predict": 1}),
            true,
        ),
        (
            "/infill",
            json!({"input_prefix": "a", "input_suffix": "b"}),
            false,
        ),
        (
            "/v2/rerank",
            json!({"query": "q", "documents": ["d"]}),
            false,
        ),
        ("/rerank", json!({"query": "q", "documents": ["d"]}), false),
        ("/detokenize", json!({"tokens": [1, 2]}), false),
        ("/apply-template", asked, false),
        (
            "/v1/rerank",
            json!({"query": "q", "documents": ["d"]}),
            false,
        ),
    ]
}

/// Breaks when an answer, an event or an error has a field that the document does not describe, lacks one that it needs, or has
/// another type; and when a path of the document is not asked for here.
#[test]
fn answers_are_as_described() {
    let server = serve(|_| {});
    let document = document(&server);
    let mut seen = BTreeSet::new();
    for (path, mut body, can_stream) in questions() {
        for stream in [false, true] {
            if can_stream {
                body["stream"] = stream.into();
            }
            check(&document, path, post(server.address, path, &body));
        }
        seen.insert(path);
        let wrong = json!({"model": 7, "messages": 7, "input": {}});
        let refused = post(server.address, path, &wrong);
        assert_eq!(refused.status, 400, "{path}");
        check(&document, path, refused);
    }
    for (path, method) in document["paths"].as_object().unwrap() {
        let other = if method["get"].is_object() {
            let asked = get(server.address, &path.replace("{name}", "smollm2"));
            assert_eq!(asked.status, 200, "{path}");
            check(&document, path, asked);
            "POST"
        } else {
            let is_form = path.starts_with("/v1/audio/");
            assert!(seen.contains(path.as_str()) || is_form, "{path}");
            "GET"
        };
        let named = path.replace("{name}", "smollm2");
        let refused = with(server.address, other, &named, &[], b"{}");
        assert_eq!(refused.status, 405, "{other} {path}");
        check(&document, path, refused);
    }
}

/// Breaks when an answer that fails on its way is not described.
#[test]
fn answers_that_fail_are_as_described() {
    let server = serve(|options| {
        options.limits.answering = std::time::Duration::from_millis(100);
    });
    let document = document(&server);
    for path in ["/v1/chat/completions", "/v1/messages"] {
        let mut response = post(
            server.address,
            path,
            &endless("Write a long story about the sea."),
        );
        let (events, _) = response.events();
        let last = events.last().unwrap();
        assert!(last["error"].is_object(), "{last}");
        let content = &document["paths"][path]["post"]["responses"]["200"]["content"];
        let event = &content["text/event-stream"]["schema"];
        assert_eq!(schema::check(&document, event, last, path), Ok(()));
    }
}

/// The same for recordings.
#[test]
fn transcripts_are_as_described() {
    let server = serve_asset("whisper-tiny.en", "model.bin");
    let document = document(&server);
    for fields in [
        &[][..],
        &[
            ("response_format", "verbose_json"),
            ("timestamp_granularities[]", "word"),
            ("timestamp_granularities[]", "segment"),
        ],
        &[("response_format", "srt")],
        &[("response_format", "text")],
        &[("stream", "true")],
        &[("response_format", "pdf")],
    ] {
        let answer = audio::transcribe(&server, fields);
        check(&document, audio::PATH, answer);
    }
}

/// The folder of MiniLM with a classifier of one label that gives every text the same score.
fn reranker() -> PathBuf {
    let from = akunu_assets::path("minilm", "config.json");
    let from = from.parent().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reranker");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["config.json", "tokenizer.json"] {
        std::fs::copy(from.join(name), folder.join(name)).unwrap();
    }
    let whole = std::fs::read(from.join("model.safetensors")).unwrap();
    let n_head = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let (head, data) = whole[8..].split_at(n_head);
    let mut head: Value = serde_json::from_slice(head).unwrap();
    let (n_data, n_weights) = (data.len(), 384 * 4);
    for (name, shape, ends) in [
        ("classifier.weight", json!([1, 384]), [0, n_weights]),
        ("classifier.bias", json!([1]), [n_weights, n_weights + 4]),
    ] {
        let ends = ends.map(|end| n_data + end);
        head[name] = json!({"dtype": "F32", "shape": shape, "data_offsets": ends});
    }
    let mut head = head.to_string().into_bytes();
    head.resize(head.len().next_multiple_of(8), b' ');
    let length = (head.len() as u64).to_le_bytes();
    let file = [&length[..], &head, data, &vec![0; n_weights + 4]].concat();
    std::fs::write(folder.join("model.safetensors"), file).unwrap();
    folder
}

/// The same for rankings, of which only the best are told, with their texts.
#[test]
fn rankings_are_as_described() {
    let open = || {
        Ok(Served::open(
            &reranker(),
            Device::Auto,
            ModelOptions::default(),
        )?)
    };
    let server = serve_source(Source::new("reranker", open));
    let document = document(&server);
    let asked = json!({"query": "q", "documents": ["a", {"text": "b"}, "c"], "top_n": 2, "return_documents": true});
    let ranked = || post(server.address, "/v1/rerank", &asked);
    check(&document, "/v1/rerank", ranked());
    for path in ["/v2/rerank", "/rerank"] {
        let same = post(server.address, path, &asked);
        check(&document, path, same);
    }
    let results = &ranked().json()["results"];
    let first = json!({"index": 0, "relevance_score": 0.5, "document": {"text": "a"}});
    assert_eq!(
        (results.as_array().map(Vec::len), &results[0]),
        (Some(2), &first)
    );
    let shown = post(server.address, "/api/show", &json!({"model": "reranker"}));
    check(&document, "/api/show", shown);
}

/// Breaks when a program cannot make a request from the document.
#[test]
fn requests_are_described() {
    let server = serve(|_| {});
    let document = document(&server);
    let fields = |path: &str, kind: &str| -> Vec<Value> {
        let body = &document["paths"][path]["post"]["requestBody"]["content"][kind]["schema"];
        let all = body["allOf"].as_array().cloned();
        let all = all.unwrap_or_else(|| vec![body.clone()]).into_iter();
        let targets = all.map(|schema| {
            let pointer = schema["$ref"].as_str().unwrap().replace('#', "");
            document.pointer(&pointer).unwrap()["properties"].clone()
        });
        targets.collect()
    };
    let names = document["components"]["schemas"]
        .as_object()
        .unwrap()
        .keys();
    let twice = names.filter(|name| name.ends_with(|c: char| c.is_ascii_digit()));
    assert_eq!(
        twice.count(),
        0,
        "a number tells two types of one name apart"
    );
    let chat = fields("/v1/chat/completions", "application/json");
    assert_eq!(chat[0]["model"]["enum"], json!(["smollm2", "second"]));
    assert_eq!(chat[0]["messages"]["minItems"], 1);
    assert_eq!(chat[1]["top_p"]["maximum"], 1);
    let form = fields("/v1/audio/transcriptions", "multipart/form-data");
    assert!(form[0]["timestamp_granularities[]"].is_object());
    let file = form[0]["file"]["$ref"].as_str().unwrap().replace('#', "");
    assert_eq!(document.pointer(&file).unwrap()["format"], "binary");
}
