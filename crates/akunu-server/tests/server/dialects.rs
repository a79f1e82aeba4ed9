//! The other protocols, several models, and the page.

use super::client::{get, post};
use super::{question, serve, serve_pinned};
use akunu_server::ServerOptions;
use serde_json::{Value, json};
use std::time::Duration;

/// Breaks when an event of Anthropic's protocol is missing, or comes at another place.
#[test]
fn anthropic_streams_blocks_with_names() {
    let server = serve(|_| {});
    let mut asked = question("What is the capital of France?", 24);
    let whole = post(server.address, "/v1/messages", &asked).json();
    let text = whole["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Paris"), "{whole}");
    assert_eq!(whole["stop_reason"], "end_turn");
    asked["stream"] = true.into();
    let (events, _) = post(server.address, "/v1/messages", &asked).events();
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let n = kinds.len();
    assert_eq!(kinds[..2], ["message_start", "content_block_start"]);
    assert_eq!(
        kinds[n - 3..],
        ["content_block_stop", "message_delta", "message_stop"]
    );
    let deltas = events[2..n - 3]
        .iter()
        .map(|event| event["delta"]["text"].as_str().unwrap());
    assert_eq!(deltas.collect::<String>(), text);
    assert_eq!(
        events[n - 2]["usage"]["output_tokens"],
        whole["usage"]["output_tokens"]
    );
    let refused = post(server.address, "/v1/messages", &json!({"messages": []}));
    assert_eq!(refused.status, 400);
    let error = refused.json();
    assert_eq!(
        (&error["type"], &error["error"]["type"]),
        (&json!("error"), &json!("invalid_request_error"))
    );
}

/// Breaks when a line is no object, or when the last one does not tell the end.
#[test]
fn ollama_streams_lines() {
    let server = serve(|_| {});
    let asked = json!({
        "model": "smollm2:latest",
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "options": {"temperature": 0, "num_predict": 24},
    });
    let mut response = post(server.address, "/api/chat", &asked);
    assert_eq!(
        response.header("content-type"),
        Some("application/x-ndjson")
    );
    let lines = std::iter::from_fn(|| response.line());
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    let said = lines
        .iter()
        .map(|line| line["message"]["content"].as_str().unwrap());
    assert!(said.collect::<String>().contains("Paris"));
    let (last, before) = lines.split_last().unwrap();
    assert!(before.iter().all(|line| line["done"] == false));
    assert_eq!(
        (&last["done"], &last["done_reason"]),
        (&json!(true), &json!("stop"))
    );
    assert_eq!(
        last["eval_count"].as_u64().unwrap(),
        before.len() as u64,
        "{last}"
    );
    let shown = post(server.address, "/api/show", &json!({"model": "smollm2"})).json();
    assert_eq!(shown["details"]["format"], "gguf", "{shown}");
    assert_eq!(shown["model_info"]["general.architecture"], "llama");
    let list = get(server.address, "/api/tags").json();
    let details = |at: usize| &list["models"][at]["details"];
    assert_eq!(details(0), &shown["details"]);
    assert_eq!(details(1), &json!({}), "the second is not loaded");
    let unknown = post(
        server.address,
        "/api/chat",
        &json!({"model": "none", "messages": []}),
    );
    assert_eq!(unknown.status, 404);
    assert!(unknown.json()["error"].is_string());
}

/// Breaks when images are left out without a word.
#[test]
fn ollama_refuses_images() {
    let server = serve(|_| {});
    let chat = |images: Value| {
        let message = json!({"role": "user", "content": "Hi", "images": images});
        let asked = json!({
            "model": "smollm2",
            "messages": [message],
            "stream": false,
            "options": {"num_predict": 1},
        });
        post(server.address, "/api/chat", &asked)
    };
    let generate = |images: Value| {
        let asked = json!({
            "model": "smollm2",
            "prompt": "Hi",
            "images": images,
            "stream": false,
            "options": {"num_predict": 1},
        });
        post(server.address, "/api/generate", &asked)
    };
    for nothing in [json!([]), Value::Null] {
        assert_eq!(chat(nothing.clone()).status, 200);
        assert_eq!(generate(nothing).status, 200);
    }
    for (refused, field) in [
        (chat(json!(["aGk="])), "messages[0].images"),
        (generate(json!(["aGk="])), "images"),
    ] {
        assert_eq!(refused.status, 400);
        let error = refused.json();
        let wanted = format!("{field}: this model reads text only");
        assert_eq!(error["error"], wanted, "{error}");
    }
}

/// Breaks when tools do not reach a model whose template knows none, or when the items of a response are lost.
#[test]
fn tools_embeddings_and_responses() {
    let server = serve(|_| {});
    let mut asked = question("Hi", 4);
    let without = post(server.address, "/v1/chat/completions", &asked).json();
    let function = json!({"name": "get_weather", "description": "of a city", "parameters": {"type": "object"}});
    asked["tools"] = json!([{"type": "function", "function": function}]);
    let with = post(server.address, "/v1/chat/completions", &asked).json();
    let tokens = |body: &Value| body["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!(tokens(&with) > tokens(&without) + 20, "the tools are told");
    asked["tool_choice"] = "none".into();
    let none = post(server.address, "/v1/chat/completions", &asked).json();
    assert_eq!(tokens(&none), tokens(&without));
    asked["tool_choice"] = json!({"type": "function", "function": {"name": "other"}});
    let refused = post(server.address, "/v1/chat/completions", &asked);
    assert_eq!(refused.json()["error"]["param"], "tool_choice");

    let texts = json!({"input": ["the cat sleeps", "a cat is sleeping", "stock market"]});
    let made = post(server.address, "/v1/embeddings", &texts).json();
    let vector = |at: usize| -> Vec<f64> {
        serde_json::from_value(made["data"][at]["embedding"].clone()).unwrap()
    };
    let near = |a: usize, b: usize| {
        vector(a)
            .iter()
            .zip(vector(b))
            .map(|(x, y)| x * y)
            .sum::<f64>()
    };
    assert!((near(0, 0) - 1.0).abs() < 1e-4 && near(0, 1) > near(0, 2));

    let asked = json!({"input": "What is the capital of France?", "temperature": 0, "max_output_tokens": 40});
    let response = post(server.address, "/v1/responses", &asked).json();
    let text = response["output"][0]["content"][0]["text"]
        .as_str()
        .unwrap();
    assert!(
        text.contains("Paris") && response["status"] == "completed",
        "{response}"
    );
    assert_eq!(
        (&response["tool_choice"], &response["tools"]),
        (&json!("auto"), &json!([]))
    );
}

/// Breaks when an answer does not go on with what the assistant has begun to say, or says it again.
#[test]
fn answers_go_on_with_what_was_begun() {
    let server = serve(|_| {});
    let mut asked = question("What is the capital of France?", 4);
    let begun = json!({"role": "assistant", "content": "The capital of France is"});
    asked["messages"].as_array_mut().unwrap().push(begun);
    asked["continue_final_message"] = true.into();
    let body = post(server.address, "/v1/chat/completions", &asked).json();
    let text = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.starts_with(" Paris"), "{body}");
    let message = post(server.address, "/v1/messages", &asked).json();
    let said = &message["content"][0]["text"];
    assert_eq!(
        said, text,
        "Anthropic's protocol does so without being asked"
    );
    asked["add_generation_prompt"] = true.into();
    let both = post(server.address, "/v1/chat/completions", &asked).json();
    assert_eq!(both["error"]["param"], "continue_final_message", "{both}");
    asked["add_generation_prompt"] = Value::Null;
    asked["messages"].as_array_mut().unwrap().pop();
    let users = post(server.address, "/v1/chat/completions", &asked).json();
    assert_eq!(users["error"]["param"], "messages", "{users}");
}

/// Breaks when a prompt cannot be looked at as a request would make it.
#[test]
fn templates_are_applied_as_a_request_says() {
    let server = serve(|_| {});
    let prompt = |change: Value| {
        let mut asked = json!({"messages": [{"role": "user", "content": "Hello"}]});
        for (name, value) in change.as_object().unwrap() {
            asked[name] = value.clone();
        }
        let applied = post(server.address, "/apply-template", &asked).json();
        applied["prompt"].as_str().unwrap().to_string()
    };
    let open = prompt(json!({"tools": null}));
    assert!(open.ends_with("<|im_start|>assistant\n"), "{open}");
    let closed = prompt(json!({"add_generation_prompt": false}));
    assert_eq!(open, closed + "<|im_start|>assistant\n");
    let tool = json!({"type": "function", "function": {"name": "get_weather"}});
    assert!(prompt(json!({"tools": [tool]})).contains("get_weather"));
}

/// Breaks when a model that is not asked for stays loaded, or does not come back.
#[test]
fn models_are_loaded_when_asked_for_and_unloaded_when_idle() {
    let server = serve(|options| options.keep = Some(Duration::from_millis(300)));
    let loaded = || {
        let list = get(server.address, "/v1/models").json();
        let models = list["data"].as_array().unwrap().clone();
        models
            .iter()
            .map(|model| model["meta"].is_object())
            .collect::<Vec<bool>>()
    };
    assert!(!loaded()[1], "nobody has asked for the second");
    let mut asked = question("Hi", 2);
    asked["model"] = "second".into();
    let body = post(server.address, "/v1/chat/completions", &asked).json();
    assert_eq!(body["model"], "second");
    for _ in 0..500 {
        if loaded() == [false, false] {
            asked["model"] = "smollm2".into();
            let again = post(server.address, "/v1/chat/completions", &asked);
            assert_eq!(again.status, 200);
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("still loaded: {:?}", loaded());
}

/// Breaks when a model that nobody uses stays loaded although memory is short and another one is wanted.
#[test]
fn models_make_room_when_memory_is_short() {
    let server = serve(|options| {
        options.keep = Some(Duration::from_secs(3600));
        options.memory_is_short = || true;
    });
    let mut asked = question("Hi", 2);
    asked["model"] = "second".into();
    assert_eq!(
        post(server.address, "/v1/chat/completions", &asked).status,
        200
    );
    let list = get(server.address, "/v1/models").json();
    let is_loaded = |at: usize| list["data"][at]["meta"].is_object();
    assert!(!is_loaded(0) && is_loaded(1), "{list}");
}

/// Breaks when a pinned model is unloaded because nobody uses it, or because memory is short.
#[test]
fn pinned_models_stay() {
    let short = |options: &mut ServerOptions| {
        options.keep = Some(Duration::from_millis(50));
        options.memory_is_short = || true;
    };
    let server = serve_pinned(short, "smollm2");
    let mut asked = question("Hi", 2);
    asked["model"] = "second".into();
    let answer = post(server.address, "/v1/chat/completions", &asked);
    assert_eq!(answer.status, 200);
    let is_loaded = |at: usize| {
        let list = get(server.address, "/v1/models").json();
        list["data"][at]["meta"].is_object()
    };
    for _ in 0..500 {
        if !is_loaded(1) {
            assert!(is_loaded(0), "the pinned model went as well");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the other model stays loaded");
}

#[test]
fn the_page_comes_with_its_policy() {
    let server = serve(|options| options.security.keys = vec!["secret".into()]);
    let page = get(server.address, "/");
    assert_eq!(page.status, 200, "the page itself needs no key");
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(page.text().contains("<title>Akunu</title>"));
    assert_eq!(
        get(server.address, "/page/app.js").header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert_eq!(get(server.address, "/page/../Cargo.toml").status, 401);
}

/// Breaks when an answer does not have the form that was asked for, or when a call that must be made is not.
#[test]
fn answers_have_the_form_that_was_asked_for() {
    let server = serve(|_| {});
    let schema = json!({
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}, "people": {"type": "integer", "maximum": 99}},
        "required": ["city", "people"],
        "additionalProperties": false,
    });
    let mut asked = question("Tell me about a city.", 60);
    asked["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "city", "schema": schema}});
    let body = post(server.address, "/v1/chat/completions", &asked).json();
    let text = body["choices"][0]["message"]["content"].as_str().unwrap();
    let city: Value = serde_json::from_str(text).unwrap();
    assert!(
        city["people"].is_i64() && city.as_object().unwrap().len() == 2,
        "{city}"
    );
    assert_eq!(body["choices"][0]["finish_reason"], "stop");

    asked["response_format"] =
        json!({"type": "json_schema", "json_schema": {"schema": {"type": 7}}});
    let refused = post(server.address, "/v1/chat/completions", &asked);
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["param"], "response_format");

    let parameters = json!({"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]});
    let mut asked = question("What is the weather in Rome?", 60);
    asked["tools"] = json!([{"type": "function", "function": {"name": "get_weather", "parameters": parameters}}]);
    asked["tool_choice"] = "required".into();
    asked["stream"] = true.into();
    let (chunks, _) = post(server.address, "/v1/chat/completions", &asked).events();
    let call = &chunks[1]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!(
        (&call["index"], &call["function"]["name"]),
        (&json!(0), &json!("get_weather"))
    );
    let (more, last) = chunks[2..].split_at(chunks.len() - 3);
    let arguments = more.iter().map(|chunk| {
        let delta = &chunk["choices"][0]["delta"]["tool_calls"][0];
        assert_eq!((&delta["index"], &delta["id"]), (&json!(0), &Value::Null));
        delta["function"]["arguments"].as_str().unwrap()
    });
    let arguments: Value = serde_json::from_str(&arguments.collect::<String>()).unwrap();
    assert!(
        arguments["city"].is_string() && arguments.as_object().unwrap().len() == 1,
        "{arguments}"
    );
    assert!(more.len() > 1, "the arguments come in parts");
    assert_eq!(last[0]["choices"][0]["finish_reason"], "tool_calls");
}
