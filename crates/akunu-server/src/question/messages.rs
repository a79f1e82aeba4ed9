//! Messages as templates take them, and tools.

use akunu::Message;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::error::ApiError;

/// A tool that a model may call.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub name: String,
    pub description: Option<String>,
    /// A JSON schema of its arguments.
    pub parameters: Value,
    /// Whether its arguments must be valid by the schema, also where the model calls it by itself.
    pub strict: bool,
}

impl Tool {
    /// The shape that templates were written for, which is OpenAI's.
    pub fn for_template(&self) -> Value {
        let mut function = Map::new();
        function.insert("name".into(), self.name.as_str().into());
        let description = self.description.as_deref().unwrap_or_default();
        function.insert("description".into(), description.into());
        function.insert("parameters".into(), self.parameters.clone());
        json!({"type": "function", "function": function})
    }
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

/// Who may speak; `developer` is a newer name of `system`, and `function` an older one of `tool`.
const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// The messages of a request, of OpenAI's kind, as templates take them.
pub(crate) fn normal_messages(messages: Vec<Message>) -> Result<Vec<Message>, ApiError> {
    let messages = messages.into_iter().enumerate();
    let messages =
        messages.map(|(at, message)| normal_message(message, &format!("messages[{at}]")));
    messages.collect()
}

/// A message of OpenAI's kind as templates take it: text as one string, arguments of calls as objects. `field` is where it was.
pub(crate) fn normal_message(mut message: Message, field: &str) -> Result<Message, ApiError> {
    check_role(&message.role, &ROLES, field)?;
    message.content = Value::String(text_of(&message.content, field)?);
    if message.role == "developer" {
        message.role = "system".into();
    }
    let calls = message.extra.get_mut("tool_calls");
    for call in calls.and_then(Value::as_array_mut).into_iter().flatten() {
        let arguments = call.pointer_mut("/function/arguments");
        if let Some(arguments) = arguments
            && let Some(text) = arguments.as_str()
            && let Ok(object) = serde_json::from_str::<Map<String, Value>>(text)
        {
            *arguments = Value::Object(object);
        }
    }
    Ok(message)
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

/// The text of a message's content: a string, parts, or nothing.
fn text_of(content: &Value, field: &str) -> Result<String, ApiError> {
    let wrong = |message: &str| {
        let field = format!("{field}.content");
        let message = format!("{field}: {message}");
        Err(ApiError::bad_field(field, message))
    };
    let parts = match content {
        Value::Null => return Ok(String::new()),
        Value::String(text) => return Ok(text.clone()),
        Value::Array(parts) => parts,
        _ => return wrong("a string or a list of parts is wanted"),
    };
    let mut text = String::new();
    for part in parts {
        match (part["type"].as_str(), &part["text"]) {
            (Some("text" | "input_text" | "output_text"), Value::String(piece)) => {
                text.push_str(piece);
            }
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

    fn normal(json: Value) -> Result<Message, ApiError> {
        let message = serde_json::from_value(json).expect("a message");
        normal_message(message, "messages[3]")
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
        for (content, wanted) in [(image, "text only"), (json!(7), "a string or a list")] {
            let refused = normal(json!({"role": "user", "content": content}));
            let refused = refused.expect_err("no text");
            assert_eq!(refused.param.as_deref(), Some("messages[3].content"));
            assert!(refused.message.contains(wanted), "{}", refused.message);
        }
    }

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
