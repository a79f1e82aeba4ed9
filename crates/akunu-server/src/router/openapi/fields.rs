//! What the fields of requests may be, for those who make requests from the description.

use serde_json::{Value, json};

/// The schema of a field, by its name and the JSON type that the table of paths has for it.
pub(super) fn schema(name: &str, kind: &str, models: &[&str]) -> Value {
    match (name, kind) {
        ("model", _) => json!({"type": "string", "enum": models}),
        ("messages", _) => messages(),
        ("prompt", _) => json!({"type": "string", "minLength": 1}),
        ("input", _) => json!({"anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "maxItems": 256, "items": {"type": "string", "minLength": 1}},
        ]}),
        ("documents", _) => json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
        ("tokens", _) => {
            json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": u32::MAX}})
        }
        ("max_tokens", _) => json!({"type": "integer", "minimum": 1}),
        (_, "") => json!({}),
        (_, "file") => json!({"type": "string", "format": "binary"}),
        (_, kind) => json!({"type": kind}),
    }
}

fn messages() -> Value {
    json!({"type": "array", "minItems": 1, "items": {
        "type": "object",
        "required": ["role", "content"],
        "properties": {
            "role": {"enum": ["user", "assistant"]},
            "content": {"type": "string"},
        },
    }})
}

/// How an answer is made: fields that a request of OpenAI may have besides.
pub(super) fn making() -> Value {
    json!({
        "stream": {"type": "boolean"},
        "n": {"type": "integer", "minimum": 1, "maximum": 128},
        "max_tokens": {"type": "integer", "minimum": 1},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "top_k": {"type": "integer"},
        "min_p": {"type": "number", "minimum": 0, "maximum": 1},
        "seed": {"type": "integer"},
        "frequency_penalty": {"type": "number", "minimum": -2, "maximum": 2},
        "presence_penalty": {"type": "number", "minimum": -2, "maximum": 2},
        "logit_bias": {"type": "object", "additionalProperties": {"type": "number"}},
        "stop": {"type": "array", "items": {"type": "string"}, "maxItems": 256},
    })
}
