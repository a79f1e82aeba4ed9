//! Tool calls written as JSON.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{Map, Value};

/// A call of a tool.
#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    /// Names this call, for the message with its result.
    pub id: String,
    pub name: String,
    /// A JSON object, as text.
    pub arguments: String,
}

/// Ids differ always, and say nothing.
impl PartialEq for ToolCall {
    fn eq(&self, other: &ToolCall) -> bool {
        (&self.name, &self.arguments) == (&other.name, &other.arguments)
    }
}

impl Eq for ToolCall {}

/// What a text begins with.
pub(super) enum First {
    /// Calls, which end at this byte.
    Calls(Vec<ToolCall>, usize),
    /// Something that may become calls.
    Incomplete,
    /// Anything else.
    Other,
}

/// The calls that a text is: one JSON object, or a list of them.
pub(super) fn parse(text: &str, tools: &[String]) -> Option<Vec<ToolCall>> {
    match first(text.trim(), tools) {
        First::Calls(calls, end) if text.trim()[end..].trim().is_empty() => Some(calls),
        _ => None,
    }
}

/// The calls that a text begins with.
pub(super) fn first(text: &str, tools: &[String]) -> First {
    if let Some((name, json)) = named(text, tools) {
        let start = text.len() - json.len();
        return match whole(json) {
            Ok((Value::Object(arguments), end)) => {
                First::Calls(vec![ToolCall::new(name, &arguments)], start + end)
            }
            Ok(_) => First::Other,
            Err(incomplete) => incomplete,
        };
    }
    let may_be_named = |name: &String| format!("{name}[ARGS]{{").starts_with(text.trim_start());
    if tools.iter().any(may_be_named) {
        return First::Incomplete;
    }
    let (value, end) = match whole(text) {
        Ok(found) => found,
        Err(incomplete) => return incomplete,
    };
    let values = match value {
        Value::Array(values) => values,
        value => vec![value],
    };
    let calls: Option<Vec<ToolCall>> = values.iter().map(|value| call(value, tools)).collect();
    match calls {
        Some(calls) if !calls.is_empty() => First::Calls(calls, end),
        _ => First::Other,
    }
}

/// The first JSON value of a text, and where it ends.
fn whole(text: &str) -> Result<(Value, usize), First> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    match values.next() {
        Some(Ok(value)) => Ok((value, values.byte_offset())),
        Some(Err(error)) if error.is_eof() => Err(First::Incomplete),
        None => Err(First::Incomplete),
        Some(Err(_)) => Err(First::Other),
    }
}

/// `name[ARGS]{…}`, or `name{…}`.
fn named<'t>(text: &'t str, tools: &'t [String]) -> Option<(&'t str, &'t str)> {
    let of = |name: &'t String| {
        let rest = text.trim_start().strip_prefix(name.as_str())?;
        let rest = rest.strip_prefix("[ARGS]").unwrap_or(rest);
        rest.starts_with('{').then_some((name.as_str(), rest))
    };
    tools.iter().find_map(of)
}

/// `{"name": …, "arguments": {…}}`, with the names that models use.
fn call(value: &Value, tools: &[String]) -> Option<ToolCall> {
    let object = value.get("function").unwrap_or(value).as_object()?;
    let name = object.get("name")?.as_str()?;
    let arguments = object.get("arguments").or_else(|| object.get("parameters"));
    let parsed;
    let arguments = match arguments {
        Some(Value::Object(arguments)) => arguments,
        Some(Value::String(text)) => {
            parsed = serde_json::from_str(text).ok()?;
            &parsed
        }
        Some(_) => return None,
        None => &Map::new(),
    };
    tools
        .iter()
        .any(|tool| tool == name)
        .then(|| ToolCall::new(name, arguments))
}

impl ToolCall {
    /// The arguments as an object.
    pub fn object(&self) -> Map<String, Value> {
        serde_json::from_str(&self.arguments).unwrap_or_default()
    }

    fn new(name: &str, arguments: &Map<String, Value>) -> ToolCall {
        static N_CALLS: AtomicU64 = AtomicU64::new(0);
        // Nine letters and digits: what Mistral's templates insist on.
        let n = N_CALLS.fetch_add(1, Relaxed) ^ akunu::random_seed();
        ToolCall {
            id: format!("c{:08x}", n as u32),
            name: name.to_string(),
            arguments: Value::Object(arguments.clone()).to_string(),
        }
    }
}
