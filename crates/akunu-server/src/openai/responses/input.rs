//! The input of a response as messages.

use akunu::Message;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::question::normal_message;

/// The messages of an input: a text, or a list of items.
pub(super) fn messages(
    instructions: Option<String>,
    input: &Value,
) -> Result<Vec<Message>, ApiError> {
    let told = instructions.map(|text| Message::new("system", text));
    let mut messages: Vec<Message> = told.into_iter().collect();
    match input {
        Value::String(text) => messages.push(Message::new("user", text.as_str())),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                messages.extend(message(item, at)?);
            }
        }
        _ => {
            return Err(ApiError::bad_field(
                "input",
                "input: a text or a list of items is wanted",
            ));
        }
    }
    Ok(messages)
}

/// The message that an item is; thoughts of earlier answers are none.
fn message(item: &Value, at: usize) -> Result<Option<Message>, ApiError> {
    let kind = item["type"].as_str().unwrap_or("message");
    let message = match (kind, item["role"].as_str()) {
        ("message", Some(role)) => Message {
            content: item["content"].clone(),
            ..Message::new(role, "")
        },
        ("function_call", _) => {
            let mut message = Message::new("assistant", "");
            let function = json!({"name": item["name"], "arguments": item["arguments"]});
            let call = json!({"id": item["call_id"], "type": "function", "function": function});
            message.extra.insert("tool_calls".into(), json!([call]));
            message
        }
        ("function_call_output", _) => {
            let mut message = Message::new("tool", "");
            message.content = item["output"].clone();
            let id = item["call_id"].clone();
            message.extra.insert("tool_call_id".into(), id);
            message
        }
        ("reasoning", _) => return Ok(None),
        _ => {
            let field = format!("input[{at}]");
            let message =
                format!("{field}: a message with a role, a call, or a call's output is wanted");
            return Err(ApiError::bad_field(field, message));
        }
    };
    normal_message(message, &format!("input[{at}]")).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_become_messages() {
        let input = json!([
            {"role": "user", "content": [{"type": "input_text", "text": "Rain?"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"a\": 1}"},
            {"type": "function_call_output", "call_id": "c1", "output": "no"},
        ]);
        let messages = messages(Some("Be brief.".into()), &input).expect("items");
        let roles: Vec<&str> = messages
            .iter()
            .map(|message| message.role.as_str())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
        assert_eq!(
            (&messages[1].content, &messages[3].content),
            (&json!("Rain?"), &json!("no"))
        );
        assert_eq!(
            messages[2].extra["tool_calls"][0]["function"]["arguments"]["a"],
            1
        );
        for (item, field) in [
            (json!({"type": "image"}), "input[0]"),
            (json!({"role": "wizard", "content": "Hi"}), "input[0].role"),
            (json!({"role": "user", "content": 7}), "input[0].content"),
        ] {
            let wrong = super::messages(None, &json!([item])).expect_err("no text");
            assert_eq!(wrong.param.as_deref(), Some(field));
            assert!(wrong.message.starts_with(field), "{}", wrong.message);
        }
    }
}
