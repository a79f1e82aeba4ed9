//! The schemas of calls and of their arguments.

use serde_json::{Map, Value, json};

use super::style::Fields;
use super::tool::Tool;

/// The schema of a call of any of these tools.
pub(super) fn any_call(tools: &[Tool], fields: &Fields, is_free: impl Fn(&Tool) -> bool) -> Value {
    let mut definitions = Map::new();
    let mut calls = Vec::new();
    for (n, tool) in tools.iter().enumerate() {
        let mut schema = of_arguments(tool, is_free(tool));
        move_references(&mut schema, &format!("#/$defs/tool{n}"));
        definitions.insert(format!("tool{n}"), schema);
        let given = json!({"$ref": format!("#/$defs/tool{n}")});
        let mut call = json!({
            "type": "object",
            "properties": {fields.name: {"const": tool.name}, fields.arguments: given},
            "required": [fields.name, fields.arguments],
            "additionalProperties": false,
        });
        if let Some((id, pattern)) = fields.id {
            call["properties"][id] = json!({"type": "string", "pattern": pattern});
        }
        calls.push(call);
    }
    json!({"anyOf": calls, "$defs": definitions})
}

/// The schema of a tool's arguments, without further properties unless it speaks of them: a small model that may add some does
/// not come to an end.
pub(super) fn of_arguments(tool: &Tool, is_free: bool) -> Value {
    let Some(schema) = tool.parameters.as_object().filter(|_| !is_free) else {
        return json!({"type": "object"});
    };
    let mut schema = schema.clone();
    if !tool.strict {
        let mut whole = Value::Object(schema);
        without_unique(&mut whole);
        schema = whole.as_object().cloned().unwrap_or_default();
    }
    if !["$ref", "anyOf", "allOf", "oneOf"]
        .iter()
        .any(|key| schema.contains_key(*key))
    {
        schema.entry("type").or_insert("object".into());
    }
    if schema.contains_key("properties") {
        let further = schema.entry("additionalProperties");
        further.or_insert(Value::Bool(false));
    }
    Value::Object(schema)
}

/// Makes references to the schema's own root (`#/$defs/…`) hold where the schema becomes a part of another one.
fn move_references(schema: &mut Value, to: &str) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, to)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(path) if name == "$ref" && path.starts_with('#') => {
                        *path = format!("{to}{}", &path[1..]);
                    }
                    value => move_references(value, to),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The types that a schema allows, as far as it says so by itself.
pub(super) fn types(schema: &Value) -> Option<Vec<&str>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().map(type_of).collect());
    }
    if let Some(value) = schema.get("const") {
        return Some(vec![type_of(value)]);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(ways) = schema.get(key).and_then(Value::as_array) {
            let all: Option<Vec<Vec<&str>>> = ways.iter().map(types).collect();
            return all.map(|all| all.concat());
        }
    }
    match schema.get("type")? {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => kinds.iter().map(Value::as_str).collect(),
        _ => None,
    }
}

/// Whether a value is of a type that a schema allows.
pub(crate) fn allows(schema: Option<&Value>, value: &Value) -> bool {
    let Some(types) = schema.and_then(types) else {
        return true;
    };
    let is_number = value.is_number() && (types.contains(&"number") || types.contains(&"integer"));
    is_number || types.contains(&type_of(value))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Takes `uniqueItems` away, which no grammar can say; whether there was any.
pub(crate) fn without_unique(schema: &mut Value) -> bool {
    let mut had_any = false;
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                if members.get("uniqueItems") == Some(&Value::Bool(true)) {
                    members.remove("uniqueItems");
                    had_any = true;
                }
                open.extend(members.values_mut());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    had_any
}
