//! What an answer must look like, forced by a grammar.

use akunu::{Grammar, Model};
use serde_json::{Value, json};

use super::Tool;
use super::calls::any_call;
use crate::error::ApiError;

/// What an answer must look like.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Format {
    /// Anything.
    #[default]
    Free,
    /// JSON that is valid by this schema, from this field of the request.
    Schema(&'static str, Value),
    /// A call of one of the tools.
    Call,
}

impl Format {
    /// OpenAI's `response_format`, and `text.format` of its responses.
    pub fn of_openai(field: &'static str, given: Option<Value>) -> Result<Format, ApiError> {
        let Some(given) = given.filter(|given| !given.is_null()) else {
            return Ok(Format::Free);
        };
        let schema = given.pointer("/json_schema/schema").or(given.get("schema"));
        match (given["type"].as_str(), schema) {
            (Some("text"), _) => Ok(Format::Free),
            (Some("json_object" | "json_schema"), Some(schema)) => {
                Ok(Format::Schema(field, schema.clone()))
            }
            (Some("json_object"), None) => Ok(Format::any_object(field)),
            (Some("json_schema"), None) => {
                let message = format!("{field}: json_schema needs a schema");
                Err(ApiError::bad_field(field, message))
            }
            _ => {
                let message = format!("{field}: type must be text, json_object or json_schema");
                Err(ApiError::bad_field(field, message))
            }
        }
    }

    /// Ollama's `format`: `json`, or a schema.
    pub fn of_ollama(given: Option<Value>) -> Result<Format, ApiError> {
        match given {
            None | Some(Value::Null) => Ok(Format::Free),
            Some(Value::String(text)) if text.is_empty() => Ok(Format::Free),
            Some(Value::String(text)) if text == "json" => Ok(Format::any_object("format")),
            Some(schema @ Value::Object(_)) => Ok(Format::Schema("format", schema)),
            Some(_) => Err(ApiError::bad_field(
                "format",
                "format: json or a schema is wanted",
            )),
        }
    }

    fn any_object(field: &'static str) -> Format {
        Format::Schema(field, json!({"type": "object"}))
    }

    /// The grammar of it, for an answer that begins within a thought or not.
    pub fn grammar(
        &self,
        model: &Model,
        tools: &[Tool],
        thinks: bool,
    ) -> Result<Option<Grammar>, ApiError> {
        let (field, schema) = match self {
            Format::Free => return Ok(None),
            Format::Schema(field, schema) => (*field, schema.clone()),
            Format::Call => ("tools", any_call(tools, "arguments", |_| true)),
        };
        let compiled = Grammar::json_schema(model, &schema.to_string());
        let wrong = |error| ApiError::bad_field(field, format!("{field}: {error}"));
        let grammar = compiled.map_err(wrong)?;
        Ok(Some(if thinks {
            grammar.starting_after("</think>")
        } else {
            grammar
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a format that a client writes is taken for free text.
    #[test]
    fn formats_are_understood() {
        let openai = |given: Value| Format::of_openai("response_format", Some(given));
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let wanted = Format::Schema("response_format", schema.clone());
        let nested = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        assert_eq!(openai(nested).expect("a schema"), wanted);
        let flat = json!({"type": "json_schema", "name": "x", "schema": schema});
        assert_eq!(openai(flat).expect("a schema"), wanted);
        assert_eq!(openai(json!({"type": "text"})).expect("free"), Format::Free);
        assert!(matches!(
            openai(json!({"type": "json_object"})),
            Ok(Format::Schema(..))
        ));
        for wrong in [
            json!({"type": "json_schema"}),
            json!({"type": "xml"}),
            json!("json"),
        ] {
            assert!(openai(wrong).is_err());
        }
        let ollama = |given: Value| Format::of_ollama(Some(given));
        assert_eq!(
            ollama(schema.clone()).expect("a schema"),
            Format::Schema("format", schema)
        );
        assert!(matches!(ollama(json!("json")), Ok(Format::Schema(..))));
        assert!(ollama(json!("yaml")).is_err());
    }
}
