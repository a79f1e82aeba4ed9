//! Messages as OpenAI's requests have them, and those of Ollama and our own, which are alike.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::content::Content;
use crate::error::ApiError;
use crate::question::check_role;

/// Who may speak; `developer` is a newer name of `system`, and `function` an older one of `tool`.
const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// A message of a conversation.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Message {
    #[schemars(extend("enum" = ROLES))]
    pub role: String,
    pub content: Option<Content<MessagePart>>,
    /// Whatever else the chat template understands: `tool_calls`, `name`, `reasoning_content`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A part of a message's content.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct MessagePart {
    #[schemars(extend("enum" = ["text", "input_text", "output_text"]))]
    r#type: Option<String>,
    text: Option<String>,
}

impl Message {
    /// The message as templates take it: text as one string, arguments of calls as objects. `field` is where it was.
    pub fn normal(self, field: &str) -> Result<akunu::Message, ApiError> {
        check_role(&self.role, &ROLES, field)?;
        let role = match self.role.as_str() {
            "developer" => "system",
            "function" => "tool",
            role => role,
        };
        let mut message = akunu::Message {
            extra: self.extra,
            ..akunu::Message::new(role, text_of(self.content, field)?)
        };
        if let Some(function @ Value::Object(_)) = message.extra.remove("function_call") {
            let call = json!({"type": "function", "function": function});
            message.extra.entry("tool_calls").or_insert(json!([call]));
        }
        let calls = message.extra.get_mut("tool_calls");
        for call in calls.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(arguments) = call.pointer_mut("/function/arguments") {
                *arguments = parsed(arguments.take());
            }
        }
        Ok(message)
    }
}

/// The messages of a request as templates take them.
pub(crate) fn normal(messages: Vec<Message>) -> Result<Vec<akunu::Message>, ApiError> {
    let messages = messages.into_iter().enumerate();
    let messages = messages.map(|(at, message)| message.normal(&format!("messages[{at}]")));
    messages.collect()
}

/// Arguments that may have been written as a text.
pub(super) fn parsed(arguments: Value) -> Value {
    let object = arguments
        .as_str()
        .map(serde_json::from_str::<Map<String, Value>>);
    match object {
        Some(Ok(object)) => Value::Object(object),
        Some(Err(_)) | None => arguments,
    }
}

/// The text of a message's content: a string, parts, or nothing.
pub(super) fn text_of(
    content: Option<Content<MessagePart>>,
    field: &str,
) -> Result<String, ApiError> {
    let wrong = |message: &str| {
        let field = format!("{field}.content");
        let message = format!("{field}: {message}");
        Err(ApiError::bad_field(field, message))
    };
    let parts = match content {
        None => return Ok(String::new()),
        Some(Content::Text(text)) => return Ok(text),
        Some(Content::Parts(parts)) => parts,
    };
    let mut text = String::new();
    for part in parts {
        match (part.r#type.as_deref(), part.text) {
            (Some("text" | "input_text" | "output_text"), Some(piece)) => text.push_str(&piece),
            (Some("image_url" | "input_image" | "image" | "input_audio" | "file"), _) => {
                return wrong("this model reads text only");
            }
            _ => return wrong("a part must be {\"type\": \"text\", \"text\": …}"),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(json: Value) -> Result<akunu::Message, ApiError> {
        let message: Message = serde_json::from_value(json).expect("a message");
        message.normal("messages[3]")
    }

    #[test]
    fn parts_become_one_text_and_arguments_an_object() {
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let message = normal(json!({"role": "developer", "content": parts})).expect("text");
        assert_eq!(
            (message.role.as_str(), &message.content),
            ("system", &json!("ab"))
        );
        let call = json!({"id": "x", "function": {"name": "f", "arguments": "{\"a\": 1}"}});
        let message = normal(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        let message = message.expect("a call");
        assert_eq!(message.content, json!(""));
        let arguments = &message.extra["tool_calls"][0]["function"]["arguments"];
        assert_eq!(arguments, &json!({"a": 1}));
    }

    /// Breaks when a template gets a role that it writes without knowing it.
    #[test]
    fn roles_that_nobody_has_are_refused() {
        for role in ROLES {
            normal(json!({"role": role, "content": "Hi"})).expect("a known role");
        }
        for role in ["wizard", "", "User"] {
            let refused = normal(json!({"role": role, "content": "Hi"}));
            let refused = refused.expect_err("an unknown role");
            assert_eq!(refused.param.as_deref(), Some("messages[3].role"));
            assert!(
                refused.message.contains("user, assistant"),
                "{}",
                refused.message
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let image = json!([{"type": "image_url", "image_url": {"url": "x"}}]);
        let other = json!([{"text": "x"}]);
        for (content, wanted) in [(image, "text only"), (other, "a part must be")] {
            let refused = normal(json!({"role": "user", "content": content}));
            let refused = refused.expect_err("no text");
            assert_eq!(refused.param.as_deref(), Some("messages[3].content"));
            assert!(refused.message.contains(wanted), "{}", refused.message);
        }
    }
}
