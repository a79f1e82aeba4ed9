//! Anthropic's messages as templates take them.

use akunu::Message;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::question::check_role;

/// Who may speak; `system` is a field of its own by the protocol, but some clients send messages of it.
const ROLES: [&str; 3] = ["user", "assistant", "system"];

/// A message of a request.
#[derive(Deserialize)]
pub(super) struct Field {
    role: String,
    content: Value,
}

impl Field {
    /// The messages that it is: results of tools are messages of their own.
    pub fn normal(self, at: usize) -> Result<Vec<Message>, ApiError> {
        check_role(&self.role, &ROLES, &format!("messages[{at}]"))?;
        let field = format!("messages[{at}].content");
        let Value::Array(blocks) = &self.content else {
            return Ok(vec![Message::new(self.role, text(&self.content, &field)?)]);
        };
        let mut messages = Vec::new();
        let (mut said, mut thought) = (String::new(), String::new());
        let mut calls = Vec::new();
        for block in blocks {
            match block["type"].as_str() {
                Some("thinking") => thought += block["thinking"].as_str().unwrap_or_default(),
                Some("redacted_thinking") => {}
                Some("tool_use") => calls.push(json!({
                    "id": block["id"],
                    "type": "function",
                    "function": {"name": block["name"], "arguments": block["input"]},
                })),
                Some("tool_result") => {
                    let mut result = Message::new("tool", text(&block["content"], &field)?);
                    let id = block["tool_use_id"].clone();
                    result.extra.insert("tool_call_id".into(), id);
                    messages.push(result);
                }
                _ => said += &text(&json!([block]), &field)?,
            }
        }
        let mut extra = Map::new();
        if !thought.is_empty() {
            extra.insert("reasoning_content".into(), thought.into());
        }
        if !calls.is_empty() {
            extra.insert("tool_calls".into(), calls.into());
        }
        if !said.is_empty() || !extra.is_empty() || messages.is_empty() {
            messages.push(Message {
                extra,
                ..Message::new(self.role, said)
            });
        }
        Ok(messages)
    }
}

/// The text of a string, of blocks of text, or of nothing.
pub(super) fn text(content: &Value, field: &str) -> Result<String, ApiError> {
    let wrong = || {
        let message =
            format!("{field}: this model reads text only, as a string or as blocks of type text");
        ApiError::bad_field(field, message)
    };
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(blocks) => {
            let texts = blocks
                .iter()
                .map(|block| match (block["type"].as_str(), &block["text"]) {
                    (Some("text"), Value::String(text)) => Ok(text.as_str()),
                    _ => Err(wrong()),
                });
            texts.collect()
        }
        _ => Err(wrong()),
    }
}

/// A system prompt without the header that Anthropic's own programs begin it with:
/// `x-anthropic-billing-header: cc_version=2.1; cch=a5145;`. It is other with each request and says nothing to a model, and what begins
/// otherwise would have to be read anew.
pub(super) fn without_billing(system: &str) -> &str {
    let Some(mut rest) = system.strip_prefix("x-anthropic-billing-header:") else {
        return system;
    };
    while let Some((entry, after)) = rest.split_once(';') {
        let is_entry = entry
            .trim_start()
            .split_once('=')
            .is_some_and(|(name, value)| {
                let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
                !name.is_empty()
                    && name.chars().all(is_name)
                    && !value.contains(char::is_whitespace)
            });
        if !is_entry {
            break;
        }
        rest = after;
    }
    rest.trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a call or a result of a tool does not reach the template.
    #[test]
    fn calls_and_results_become_messages() {
        let normal = |json: Value| {
            let field: Field = serde_json::from_value(json).expect("a message");
            field.normal(1)
        };
        let asked = json!({"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}},
        ]});
        let message = &normal(asked).expect("a call")[0];
        assert_eq!(message.content, json!("I look."));
        assert_eq!(
            message.extra["tool_calls"][0]["function"]["arguments"]["city"],
            "Rome"
        );
        let answered = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "sun"}]},
            {"type": "text", "text": "And now?"},
        ]});
        let messages = normal(answered).expect("a result");
        let roles: Vec<&str> = messages
            .iter()
            .map(|message| message.role.as_str())
            .collect();
        assert_eq!(roles, ["tool", "user"]);
        assert_eq!(
            (&messages[0].content, &messages[0].extra["tool_call_id"]),
            (&json!("sun"), &json!("t1"))
        );
        let image = normal(json!({"role": "user", "content": [{"type": "image", "source": {}}]}));
        assert_eq!(
            image.expect_err("no text").param.as_deref(),
            Some("messages[1].content")
        );
        let role = normal(json!({"role": "wizard", "content": "Hi"}));
        assert_eq!(
            role.expect_err("nobody").param.as_deref(),
            Some("messages[1].role")
        );
    }

    /// Breaks when requests of Claude Code, which differ in this line alone, do not begin alike, or when more than it is lost.
    #[test]
    fn a_header_that_is_other_each_time_is_left_out() {
        let header = "x-anthropic-billing-header: cc_version=2.1.101.e51; cc_entrypoint=cli; cch=";
        for (value, rest) in [("a5145;", "You are; a=b; "), ("00000;\n", "Be brief.")] {
            let system = format!("{header}{value}{rest}");
            assert_eq!(without_billing(&system), rest, "{system}");
        }
        assert_eq!(without_billing("Be brief; a=b;"), "Be brief; a=b;");
    }
}
