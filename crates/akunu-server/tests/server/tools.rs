//! Tools that a model calls by itself, and those that it must call.

use super::client::post;
use super::{question, serve};
use serde_json::{Value, json};

fn weather(strict: bool) -> Value {
    let days = json!({"$ref": "#/$defs/Days"});
    json!({
        "name": "get_weather",
        "strict": strict,
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": days},
            "required": ["city", "days"],
            "$defs": {"Days": {"enum": [1, 7]}},
        },
    })
}

/// Breaks when a strict tool is called with arguments that its schema does not have, although the model need not call it. The
/// bias makes the model begin with a bracket, and go on with brackets wherever that is possible.
#[test]
fn strict_tools_get_valid_arguments_where_the_model_may_choose() {
    let server = serve(|_| {});
    let tokenized = post(server.address, "/tokenize", &json!({"content": "{\""})).json();
    let bracket = tokenized["tokens"][0].as_u64().unwrap();
    let ask = |strict: bool| {
        let mut asked = question("What is the weather in Rome?", 60);
        asked["tools"] = json!([{"type": "function", "function": weather(strict)}]);
        asked["logit_bias"] = json!({bracket.to_string(): 100});
        let body = post(server.address, "/v1/chat/completions", &asked).json();
        body["choices"][0].clone()
    };
    let free = ask(false);
    assert!(free["message"]["tool_calls"].is_null(), "{free}");
    let called = ask(true);
    let function = &called["message"]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "get_weather", "{called}");
    let arguments: Value = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
    let has = |name: &str, values: [Value; 2]| values.contains(&arguments[name]);
    assert!(has("city", [json!("Paris"), json!("Rome")]), "{arguments}");
    assert!(has("days", [json!(1), json!(7)]), "{arguments}");
    assert_eq!(called["finish_reason"], "tool_calls");
}

/// Breaks when a strict tool keeps the model from answering in words.
#[test]
fn strict_tools_need_not_be_called() {
    let server = serve(|_| {});
    let tokenized = post(server.address, "/tokenize", &json!({"content": "Hello"})).json();
    let hello = tokenized["tokens"][0].as_u64().unwrap();
    let mut asked = question("Hi", 3);
    asked["tools"] = json!([{"type": "function", "function": weather(true)}]);
    asked["logit_bias"] = json!({hello.to_string(): 100});
    let body = post(server.address, "/v1/chat/completions", &asked).json();
    assert_eq!(body["choices"][0]["message"]["content"], "HelloHelloHello");
}

/// Breaks when `tool_choice` of a response is not looked at.
#[test]
fn responses_call_the_tool_that_they_must() {
    let server = serve(|_| {});
    let ask = |choice: Value| {
        let asked = json!({
            "model": "smollm2",
            "input": "What is the weather in Rome?",
            "tools": [weather(false)],
            "tool_choice": choice,
            "temperature": 0,
            "max_output_tokens": 60,
        });
        post(server.address, "/v1/responses", &asked)
    };
    for choice in [
        json!("required"),
        json!({"type": "function", "name": "get_weather"}),
    ] {
        let body = ask(choice.clone()).json();
        assert_eq!(
            (&body["tool_choice"], &body["tools"]),
            (&choice, &json!([weather(false)]))
        );
        let call = &body["output"][0];
        assert_eq!(
            (&call["type"], &call["name"]),
            (&json!("function_call"), &json!("get_weather")),
            "{body}"
        );
    }
    let unknown = ask(json!({"type": "function", "name": "other"}));
    assert_eq!(unknown.status, 400);
    assert_eq!(unknown.json()["error"]["param"], "tool_choice");
}

/// Breaks when a call could not be told from the text around it.
#[test]
fn tools_need_names() {
    let server = serve(|_| {});
    for name in ["", " ", "get weather", "get\nweather", "\u{0}"] {
        let tool = json!({"name": name});
        let function = json!({"type": "function", "function": tool});
        let ollama = json!({"model": "smollm2", "tools": [function]});
        for (path, asked, field) in [
            ("/v1/chat/completions", &function, "tools[0].function.name"),
            ("/v1/responses", &tool, "tools[0].name"),
            ("/v1/messages", &tool, "tools[0].name"),
        ] {
            let mut body = question("Hi", 1);
            body["input"] = "Hi".into();
            body["tools"] = json!([asked]);
            let refused = post(server.address, path, &body);
            assert_eq!(refused.status, 400, "{path} {name:?}");
            let error = refused.json();
            let message = error["error"]["message"].as_str().unwrap();
            assert!(message.starts_with(field), "{message}");
        }
        assert_eq!(post(server.address, "/api/chat", &ollama).status, 400);
    }
}

/// A question whose answer is a call of `note` with a long text, and has to be.
fn noting(max_tokens: usize) -> Value {
    let mut asked = question("Note what you know about Rome.", max_tokens);
    let parameters = json!({
        "type": "object",
        "properties": {"day": {"const": 7}, "text": {"type": "string", "minLength": 400}},
        "required": ["day", "text"],
    });
    let tool = json!({"name": "note", "parameters": parameters});
    asked["tools"] = json!([{"type": "function", "function": tool}]);
    asked["tool_choice"] = "required".into();
    asked
}

/// Breaks when a call that the limit cuts becomes text, when its finish reason hides that, or when a stream says something else.
#[test]
fn a_call_that_is_cut_is_told() {
    let server = serve(|_| {});
    let mut asked = noting(40);
    let body = post(server.address, "/v1/chat/completions", &asked).json();
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "length", "{body}");
    let function = &choice["message"]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "note", "{body}");
    let arguments = function["arguments"].as_str().unwrap();
    assert!(
        arguments.starts_with("{\"day\":7,\"text\":\""),
        "{arguments}"
    );

    asked["stream"] = true.into();
    let (chunks, _) = post(server.address, "/v1/chat/completions", &asked).events();
    let deltas = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]);
    let parts = deltas.map(|delta| delta["function"]["arguments"].as_str().unwrap_or_default());
    assert_eq!(parts.collect::<String>(), arguments);

    asked["stream"] = false.into();
    asked["tools"] = json!([{
        "name": "note",
        "input_schema": asked["tools"][0]["function"]["parameters"],
    }]);
    asked["tool_choice"] = json!({"type": "any"});
    let body = post(server.address, "/v1/messages", &asked).json();
    assert_eq!(body["stop_reason"], "max_tokens", "{body}");
    assert_eq!(body["content"][0]["input"], json!({"day": 7}), "{body}");
}

/// Breaks when the arguments of a call come as one piece, in the dialects that stream them.
#[test]
fn arguments_are_streamed() {
    let server = serve(|_| {});
    let mut asked = noting(60);
    asked["stream"] = true.into();
    asked["input"] = "Note what you know about Rome.".into();
    asked["max_output_tokens"] = 60.into();
    let parameters = asked["tools"][0]["function"]["parameters"].clone();
    asked["tools"] =
        json!([{"name": "note", "parameters": parameters, "input_schema": parameters}]);
    let (events, _) = post(server.address, "/v1/responses", &asked).events();
    let of = |kind: &str| {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .collect::<Vec<_>>()
    };
    let deltas = of("response.function_call_arguments.delta");
    assert!(deltas.len() > 5, "{events:?}");
    let text: String = deltas
        .iter()
        .map(|event| event["delta"].as_str().unwrap())
        .collect();
    assert_eq!(
        of("response.function_call_arguments.done")[0]["arguments"],
        text.as_str()
    );

    asked["tool_choice"] = json!({"type": "any", "disable_parallel_tool_use": true});
    let (events, _) = post(server.address, "/v1/messages", &asked).events();
    let deltas: Vec<&str> = events
        .iter()
        .filter_map(|event| event["delta"]["partial_json"].as_str())
        .collect();
    assert!(
        deltas.len() > 5 && deltas.concat().starts_with("{\"day\":7,"),
        "{events:?}"
    );
    assert_eq!(
        events
            .iter()
            .filter(|event| event["type"] == "content_block_stop")
            .count(),
        1
    );
}

/// Breaks when the older names of tools are ignored, or answered in the newer way.
#[test]
fn functions_are_tools() {
    let server = serve(|_| {});
    let mut asked = question("What is the weather in Rome?", 60);
    asked["functions"] = json!([weather(false)]);
    asked["function_call"] = json!({"name": "get_weather"});
    let body = post(server.address, "/v1/chat/completions", &asked).json();
    let choice = &body["choices"][0];
    assert_eq!(
        choice["message"]["function_call"]["name"], "get_weather",
        "{body}"
    );
    assert_eq!(choice["finish_reason"], "function_call");
    asked["stream"] = true.into();
    let (chunks, _) = post(server.address, "/v1/chat/completions", &asked).events();
    let deltas = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["function_call"]);
    let parts: Vec<&str> = deltas
        .filter_map(|delta| delta["arguments"].as_str())
        .collect();
    assert_eq!(
        parts.concat(),
        choice["message"]["function_call"]["arguments"]
            .as_str()
            .unwrap()
    );

    // And what was called before, in the older way.
    asked["stream"] = false.into();
    asked["function_call"] = "none".into();
    asked["messages"] = json!([
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "content": null, "function_call": {"name": "get_weather", "arguments": "{}"}},
        {"role": "function", "name": "get_weather", "content": "sun"},
    ]);
    let answered = post(server.address, "/v1/chat/completions", &asked);
    assert_eq!(answered.status, 200);
}
