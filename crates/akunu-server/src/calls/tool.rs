//! Tools that a model may call, and calls of them.

use serde_json::{Map, Value, json};

/// A tool that a model may call.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub name: String,
    pub description: Option<String>,
    /// A JSON schema of its arguments.
    pub parameters: Value,
    /// Whether a schema that cannot be enforced is an error. Otherwise the tool then takes any arguments.
    pub strict: bool,
}

impl Tool {
    /// The shape that templates were written for, which is OpenAI's.
    pub fn for_template(&self) -> Value {
        json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description.as_deref().unwrap_or_default(),
                "parameters": self.parameters,
            },
        })
    }

    /// The schema of an argument, if the tool's schema names it.
    pub fn parameter(&self, name: &str) -> Option<&Value> {
        let property = self.parameters.get("properties")?.get(name)?;
        Some(resolved(&self.parameters, property))
    }
}

/// What a schema stands for that is a reference into `root`.
pub(crate) fn resolved<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    // Some references after each other, but not a circle of them.
    for _ in 0..8 {
        let path = schema.get("$ref").and_then(Value::as_str);
        let path = path.and_then(|path| path.strip_prefix('#'));
        let Some(target) = path.and_then(|path| root.pointer(path)) else {
            break;
        };
        schema = target;
    }
    schema
}

/// A call of a tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolCall {
    /// Names this call, for the message with its result.
    pub id: String,
    pub name: String,
    /// A JSON object as text; the beginning of one if the call was cut.
    pub arguments: String,
    /// How many bytes of the arguments have complete members only.
    pub complete: usize,
    /// Whether the arguments came to their end.
    pub is_whole: bool,
}

/// Ids differ always, and say nothing.
impl PartialEq for ToolCall {
    fn eq(&self, other: &ToolCall) -> bool {
        let key = |call: &ToolCall| (call.name.clone(), call.arguments.clone(), call.is_whole);
        key(self) == key(other)
    }
}

impl Eq for ToolCall {}

impl ToolCall {
    /// The arguments as an object: all of them, or those that came before the call was cut.
    pub fn object(&self) -> Map<String, Value> {
        let whole = serde_json::from_str(&self.arguments);
        let complete = || {
            let members = self.arguments.get(..self.complete).unwrap_or_default();
            serde_json::from_str(&format!("{members}}}")).unwrap_or_default()
        };
        whole.unwrap_or_else(|_| complete())
    }
}
