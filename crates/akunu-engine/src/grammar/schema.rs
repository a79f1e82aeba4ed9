//! A JSON schema as the compiler gets it: with white space that ends, without formats that mean nothing to it, and with
//! the keywords that it does not know rewritten where they are simple.

mod each;
mod names;

use serde_json::{Value, json};

use self::each::each;
use super::Grammar;

/// White space between the parts of JSON: enough to be read by people, and an end to it. A small model would otherwise
/// begin line after line until nothing is left of its context.
const JSON_SPACE: &str = r"[ \t]{1,8}|\r?\n[ \t]{0,24}";

/// The values of `format` that JSON Schema defines. All others are annotations by its rules: they say nothing about what is
/// valid. One of these that the compiler does not know is an error, because an answer could violate it.
const FORMATS: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];

impl Grammar {
    /// A JSON schema as a part of a Lark grammar, after `%json`, treated as [`Grammar::json_schema`] treats it. A text that
    /// is not JSON stays as it is: compiling the grammar says so.
    pub fn lark_schema(schema: &str) -> String {
        match serde_json::from_str(schema) {
            Ok(schema) => prepared(schema).to_string(),
            Err(_) => schema.to_string(),
        }
    }
}

/// The schema as it is compiled. White space that it chooses itself stays.
pub(super) fn prepared(mut schema: Value) -> Value {
    if schema == true {
        schema = json!({});
    }
    drop_custom_formats(&mut schema);
    names::rewrite(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        let space = json!({ "whitespace_pattern": JSON_SPACE });
        object.entry("x-guidance").or_insert(space);
    }
    schema
}

/// Takes away values of `format` that JSON Schema does not define, in all schemas within.
fn drop_custom_formats(schema: &mut Value) {
    each(schema, |members| {
        let format = members.get("format").and_then(Value::as_str);
        if format.is_some_and(|format| !FORMATS.contains(&format)) {
            members.remove("format");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a format that says nothing is an error, when one that does is forgotten, or when a property or a value
    /// that is called `format` is taken for one.
    #[test]
    fn formats_that_nobody_defines_are_annotations() {
        let mut schema = json!({
            "format": "int64",
            "properties": {"format": {"format": "password", "type": "string"}, "day": {"format": "date"}},
            "items": [{"anyOf": [{"format": "byte"}, {"format": "regex"}]}],
            "$defs": {"format": {"format": "Name"}},
            "const": {"format": "int64"},
            "enum": [{"format": "int32"}],
        });
        drop_custom_formats(&mut schema);
        let wanted = json!({
            "properties": {"format": {"type": "string"}, "day": {"format": "date"}},
            "items": [{"anyOf": [{}, {"format": "regex"}]}],
            "$defs": {"format": {}},
            "const": {"format": "int64"},
            "enum": [{"format": "int32"}],
        });
        assert_eq!(schema, wanted);
    }

    /// Fails when a schema within a Lark grammar is treated otherwise than one by itself.
    #[test]
    fn a_schema_in_a_grammar_is_prepared_too() {
        let text = Grammar::lark_schema(r#"{"type": "integer", "format": "int64"}"#);
        let found: Value = serde_json::from_str(&text).expect("JSON");
        let space = json!({ "whitespace_pattern": JSON_SPACE });
        assert_eq!(found, json!({"type": "integer", "x-guidance": space}));
        assert_eq!(Grammar::lark_schema("{,}"), "{,}");
    }
}
