//! Messages as templates take them, and tools.

use akunu::Message;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::calls::Tool;
use crate::error::ApiError;

/// A call of a tool as templates take it. `id` is null where the client gave none.
pub(crate) fn template_call(id: Option<&str>, name: &str, arguments: Value) -> Value {
    json!({
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    })
}

/// A message in which the assistant calls tools.
pub(crate) fn calling(calls: Vec<Value>) -> Message {
    let mut message = Message::new("assistant", "");
    message.extra.insert("tool_calls".into(), calls.into());
    message
}

/// What a tool answered to the call of this id.
pub(crate) fn tool_result(id: Option<String>, text: impl Into<String>) -> Message {
    let mut message = Message::new("tool", text);
    message.extra.insert("tool_call_id".into(), id.into());
    message
}

/// Reads the name of a tool. A grammar and a template write it between marks, which a space or a line's end would blur.
pub(crate) fn tool_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(serde::de::Error::custom(
            "a tool needs a name, without spaces and control characters",
        ));
    }
    Ok(name)
}

/// The conversation with the tools told as text, for templates that do not know any.
pub(super) fn tell_tools(messages: &[Message], tools: &[Tool]) -> Vec<Message> {
    let mut told = String::from(
        "You may call tools. To call one, answer with nothing but a JSON object like \
         {\"name\": \"tool name\", \"arguments\": {}}. The tools are:\n",
    );
    for tool in tools {
        told.push_str(&tool.for_template()["function"].to_string());
        told.push('\n');
    }
    let mut messages = messages.to_vec();
    match messages.first_mut().filter(|first| first.role == "system") {
        Some(first) => {
            let before = first.content.as_str().unwrap_or_default();
            first.content = format!("{before}\n\n{told}").into();
        }
        None => messages.insert(0, Message::new("system", told)),
    }
    messages.into_iter().map(as_text).collect()
}

/// A message about tools as a template that knows none can write it.
fn as_text(mut message: Message) -> Message {
    let calls = message.extra.remove("tool_calls");
    for call in calls.iter().flat_map(|calls| calls.as_array()).flatten() {
        let before = message.content.as_str().unwrap_or_default();
        message.content = format!("{before}{}", call["function"]).into();
    }
    if message.role == "tool" {
        message.role = "user".into();
        let result = message.content.as_str().unwrap_or_default();
        message.content = format!("The tool's result: {result}").into();
    }
    message
}

/// Refuses a role that templates would leave out or write as if it were known.
pub(crate) fn check_role(role: &str, known: &[&str], field: &str) -> Result<(), ApiError> {
    if known.contains(&role) {
        return Ok(());
    }
    let field = format!("{field}.role");
    let known = known.join(", ");
    let message = format!("{field}: there is no role `{role}`; there are: {known}");
    Err(ApiError::bad_field(field, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a result or a call is lost on a template that writes roles and contents only.
    #[test]
    fn tools_are_told_as_text_where_the_template_knows_none() {
        let tool = Tool {
            name: "weather".into(),
            description: None,
            parameters: json!({"type": "object"}),
            strict: false,
        };
        let mut call = Message::new("assistant", "");
        let calls = json!([{"function": {"name": "weather", "arguments": {}}}]);
        call.extra.insert("tool_calls".into(), calls);
        let messages = [
            Message::new("user", "Rain?"),
            call,
            Message::new("tool", "no"),
        ];
        let told = tell_tools(&messages, &[tool]);
        let said = |at: usize| told[at].content.as_str().unwrap_or_default();
        assert_eq!(told[0].role, "system");
        assert!(said(0).contains("\"name\":\"weather\""), "{}", said(0));
        assert!(said(2).contains("weather"), "{}", said(2));
        assert_eq!(
            (told[3].role.as_str(), said(3)),
            ("user", "The tool's result: no")
        );
    }
}
