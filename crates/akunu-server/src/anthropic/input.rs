//! Anthropic's messages as templates take them.

use akunu::Message;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::content::Content;
use crate::error::ApiError;
use crate::question::{check_role, template_call, tool_result};

/// Who may speak; `system` is a field of its own by the protocol, but some clients send messages of it.
const ROLES: [&str; 3] = ["user", "assistant", "system"];

/// A message of a request.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AskedMessage {
    #[schemars(extend("enum" = ROLES))]
    role: String,
    /// It may be null, and must not be left out.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schemars(required)]
    content: Option<Content<AskedBlock>>,
}

/// A block of a message's content: a text, a thought, a call, or a call's result.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AskedBlock {
    r#type: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    id: Option<String>,
    name: Option<String>,
    /// The arguments of a call.
    #[serde(default)]
    input: Value,
    tool_use_id: Option<String>,
    /// The result of a call.
    content: Option<Content<AskedBlock>>,
}

impl AskedMessage {
    /// The messages that it is: results of tools are messages of their own. `field` is where it was.
    pub fn normal(self, field: &str) -> Result<Vec<Message>, ApiError> {
        check_role(&self.role, &ROLES, field)?;
        let field = format!("{field}.content");
        let blocks = match self.content {
            Some(Content::Parts(blocks)) => blocks,
            other => {
                let text = text(other, &field)?;
                return Ok(vec![Message::new(self.role, text)]);
            }
        };
        let mut messages = Vec::new();
        let (mut said, mut thought) = (String::new(), String::new());
        let mut calls = Vec::new();
        for block in blocks {
            match block.r#type.as_deref() {
                Some("thinking") => thought += &block.thinking.unwrap_or_default(),
                Some("redacted_thinking") => {}
                Some("tool_use") => calls.push(template_call(
                    block.id.as_deref(),
                    &block.name.unwrap_or_default(),
                    block.input,
                )),
                Some("tool_result") => {
                    let result = text(block.content, &field)?;
                    messages.push(tool_result(block.tool_use_id, result));
                }
                _ => said += &block.text(&field)?,
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

impl AskedBlock {
    fn text(self, field: &str) -> Result<String, ApiError> {
        match (self.r#type.as_deref(), self.text) {
            (Some("text"), Some(text)) => Ok(text),
            _ => {
                let message = format!(
                    "{field}: this model reads text only, as a string or as blocks of type text"
                );
                Err(ApiError::bad_field(field, message))
            }
        }
    }
}

/// The text of a string, of blocks of text, or of nothing.
pub(super) fn text(content: Option<Content<AskedBlock>>, field: &str) -> Result<String, ApiError> {
    match content {
        None => Ok(String::new()),
        Some(Content::Text(text)) => Ok(text),
        Some(Content::Parts(blocks)) => blocks.into_iter().map(|block| block.text(field)).collect(),
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
    use serde_json::json;

    /// Breaks when a call or a result of a tool does not reach the template.
    #[test]
    fn calls_and_results_become_messages() {
        let normal = |json: Value| {
            let message: AskedMessage = serde_json::from_value(json).expect("a message");
            message.normal("messages[1]")
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
