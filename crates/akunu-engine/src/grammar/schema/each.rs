//! A way through all schemas within one.

use serde_json::{Map, Value};

/// Keywords whose members are named schemas.
const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];
/// Keywords whose values are not schemas.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// Changes a schema that is an object, and all within it.
pub(super) fn each(schema: &mut Value, change: impl Fn(&mut Map<String, Value>)) {
    let mut schemas = vec![schema];
    while let Some(schema) = schemas.pop() {
        let members = match schema {
            Value::Array(items) => {
                schemas.extend(items);
                continue;
            }
            Value::Object(members) => members,
            _ => continue,
        };
        change(members);
        for (keyword, value) in members {
            let keyword = &keyword[..];
            if NAMED.contains(&keyword) && value.is_object() {
                let named = value.as_object_mut().into_iter();
                schemas.extend(named.flat_map(|named| named.values_mut()));
            } else if !DATA.contains(&keyword) {
                schemas.push(value);
            }
        }
    }
}
