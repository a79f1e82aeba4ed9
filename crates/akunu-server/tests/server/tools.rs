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
