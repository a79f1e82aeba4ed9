//! The input of a response as messages.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::content::Content;
use crate::error::ApiError;
use crate::openai::messages::{Message, MessagePart, parsed, text_of};
use crate::question::{calling, template_call, tool_result};

/// An item of an input: a message, a call, a call's output, or a thought.
#[derive(Deserialize, JsonSchema)]
pub(super) struct InputItem {
    r#type: Option<String>,
    role: Option<String>,
    content: Option<Content<MessagePart>>,
    call_id: Option<String>,
    name: Option<String>,
    /// A JSON object, as text.
    arguments: Option<Value>,
    output: Option<Content<MessagePart>>,
}

/// The messages of an input: a text, or a list of items.
pub(super) fn messages(input: Content<InputItem>) -> Result<Vec<akunu::Message>, ApiError> {
    let mut messages = Vec::new();
    match input {
        Content::Text(text) => messages.push(akunu::Message::new("user", text)),
        Content::Parts(items) => {
            for (at, item) in items.into_iter().enumerate() {
                messages.extend(message(item, &format!("input[{at}]"))?);
            }
        }
    }
    Ok(messages)
}

/// The message that an item is; thoughts of earlier answers are none.
fn message(item: InputItem, field: &str) -> Result<Option<akunu::Message>, ApiError> {
    let kind = item.r#type.as_deref().unwrap_or("message");
    let message = match (kind, item.role) {
        ("message", Some(role)) => {
            let message = Message {
                role,
                content: item.content,
                extra: Map::new(),
            };
            message.normal(field)?
        }
        ("function_call", _) => {
            let name = item.name.unwrap_or_default();
            let arguments = parsed(item.arguments.unwrap_or_default());
            calling(vec![template_call(
                item.call_id.as_deref(),
                &name,
                arguments,
            )])
        }
        ("function_call_output", _) => tool_result(item.call_id, text_of(item.output, field)?),
        ("reasoning", _) => return Ok(None),
        _ => {
            let message =
                format!("{field}: a message with a role, a call, or a call's output is wanted");
            return Err(ApiError::bad_field(field, message));
        }
    };
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_become_messages() {
        let input = json!([
            {"role": "user", "content": [{"type": "input_text", "text": "Rain?"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"a\": 1}"},
            {"type": "function_call_output", "call_id": "c1", "output": "no"},
        ]);
        let read = |input: Value| serde_json::from_value(input).expect("an input");
        let messages = messages(read(input)).expect("items");
        let roles: Vec<&str> = messages
            .iter()
            .map(|message| message.role.as_str())
            .collect();
        assert_eq!(roles, ["user", "assistant", "tool"]);
        assert_eq!(
            (&messages[0].content, &messages[2].content),
            (&json!("Rain?"), &json!("no"))
        );
        assert_eq!(
            messages[1].extra["tool_calls"][0]["function"]["arguments"]["a"],
            1
        );
        for (item, field) in [
            (json!({"type": "image"}), "input[0]"),
            (json!({"role": "wizard", "content": "Hi"}), "input[0].role"),
            (
                json!({"role": "user", "content": [{"type": "file"}]}),
                "input[0].content",
            ),
        ] {
            let wrong = super::messages(read(json!([item]))).expect_err("no text");
            assert_eq!(wrong.param.as_deref(), Some(field));
            assert!(wrong.message.starts_with(field), "{}", wrong.message);
        }
    }
}
