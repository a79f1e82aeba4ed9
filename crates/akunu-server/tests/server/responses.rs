//! Responses that go on with earlier ones, and tools that only OpenAI's own servers run.

use serde_json::{Value, json};

use super::client::post;
use super::{Running, serve};

const PATH: &str = "/v1/responses";

fn ask(server: &Running, input: Value, further: Value) -> Value {
    let mut body = json!({"input": input, "max_output_tokens": 12, "temperature": 0});
    for (name, value) in further.as_object().unwrap() {
        body[name] = value.clone();
    }
    post(server.address, PATH, &body).json()
}

fn text(response: &Value) -> &str {
    let text = response["output"][0]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("{response}"))
}

/// Breaks when an answer that goes on with an earlier one differs from that to the whole conversation, when its instructions are carried
/// over, or when a stream is not kept.
#[test]
fn a_response_goes_on_with_an_earlier_one() {
    let server = serve(|_| {});
    let (first_question, second_question) = ("My name is Ada.", "What is my name?");
    let instructions = json!({"instructions": "Answer in one word."});
    let first = ask(&server, first_question.into(), instructions);
    let previous = json!({"previous_response_id": first["id"]});
    let second = ask(&server, second_question.into(), previous);
    let message = |role: &str, text: &str| json!({"role": role, "content": text});
    let whole = json!([
        message("user", first_question),
        message("assistant", text(&first)),
        message("user", second_question),
    ]);
    let wanted = ask(&server, whole.clone(), json!({}));
    assert_eq!(text(&second), text(&wanted));
    let tokens = |response: &Value| response["usage"]["input_tokens"].clone();
    assert_eq!(tokens(&second), tokens(&wanted));
    assert_eq!(second["previous_response_id"], first["id"]);

    let body = json!({"input": second_question, "max_output_tokens": 12, "temperature": 0, "stream": true,
                      "previous_response_id": first["id"]});
    let (events, _) = post(server.address, PATH, &body).events();
    let last = &events[events.len() - 1]["response"];
    assert_eq!(text(last), text(&wanted));
    let mut longer = whole.as_array().unwrap().clone();
    longer.extend([
        message("assistant", text(&wanted)),
        message("user", "Thanks."),
    ]);
    let third = ask(
        &server,
        "Thanks.".into(),
        json!({"previous_response_id": last["id"]}),
    );
    assert_eq!(
        tokens(&third),
        tokens(&ask(&server, longer.into(), json!({})))
    );
}

/// Breaks when a conversation is kept that should not be, when memory grows with every response, or when a client is not told that what it
/// goes on with is gone.
#[test]
fn conversations_are_kept_in_bounded_memory_if_at_all() {
    let server = serve(|options| options.limits.kept_bytes = 4000);
    let is_gone = |id: &Value| {
        let asked = ask(&server, "And?".into(), json!({"previous_response_id": id}));
        let is_gone = asked["error"]["code"] == "previous_response_not_found";
        assert_eq!(is_gone, asked["id"].is_null(), "{asked}");
        is_gone
    };
    let unkept = ask(&server, "Hello".into(), json!({"store": false}));
    assert!(is_gone(&unkept["id"]) && is_gone(&"resp_none".into()));
    let first = ask(&server, "Hello".into(), json!({}));
    assert!(!is_gone(&first["id"]));
    for _ in 0..8 {
        ask(&server, "Hi there".into(), json!({}));
    }
    assert!(is_gone(&first["id"]));
}

/// Breaks when a tool that only OpenAI's own servers run is refused without its name, or not at all.
#[test]
fn built_in_tools_are_refused_by_name() {
    let server = serve(|_| {});
    for (path, tool) in [
        (PATH, json!({"type": "web_search"})),
        (
            PATH,
            json!({"type": "file_search", "vector_store_ids": ["a"]}),
        ),
        ("/v1/chat/completions", json!({"type": "code_interpreter"})),
    ] {
        let function = json!({"type": "function", "name": "f", "function": {"name": "f"}});
        let messages = json!([{"role": "user", "content": "Hi"}]);
        let body = json!({"input": "Hi", "messages": messages, "max_tokens": 2, "max_output_tokens": 2,
                          "tools": [function, tool]});
        let refused = post(server.address, path, &body);
        assert_eq!(refused.status, 400);
        let error = refused.json()["error"].clone();
        assert_eq!(error["param"], "tools[1].type", "{error}");
        let name = tool["type"].as_str().unwrap();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("`{name}`")), "{message}");
    }
}
