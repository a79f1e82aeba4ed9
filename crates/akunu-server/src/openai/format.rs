//! What an answer must look like, as OpenAI's requests say it.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::question::{Form, Format};

/// `response_format` of a chat, and `text.format` of a response.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ResponseFormat {
    r#type: ResponseFormatType,
    json_schema: Option<NamedSchema>,
    /// Responses have the schema here.
    schema: Option<Value>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ResponseFormatType {
    Text,
    JsonObject,
    JsonSchema,
}

#[derive(Deserialize, JsonSchema)]
struct NamedSchema {
    schema: Option<Value>,
}

impl ResponseFormat {
    /// The form of the answer; `field` is where it was asked for.
    pub fn format(self, field: &'static str) -> Result<Format, ApiError> {
        let nested = self.json_schema.and_then(|named| named.schema);
        match (self.r#type, nested.or(self.schema)) {
            (ResponseFormatType::Text, _) => Ok(Format::Free),
            (_, Some(schema)) => Ok(Format::Form(field, Form::Schema(schema))),
            (ResponseFormatType::JsonObject, None) => Ok(Format::any_object(field)),
            (ResponseFormatType::JsonSchema, None) => {
                let message = format!("{field}: json_schema needs a schema");
                Err(ApiError::bad_field(field, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Breaks when a format that a client writes is taken for free text.
    #[test]
    fn formats_are_understood() {
        let format = |given: Value| {
            let given: ResponseFormat = serde_json::from_value(given).ok()?;
            given.format("response_format").ok()
        };
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let wanted = Some(Format::Form(
            "response_format",
            Form::Schema(schema.clone()),
        ));
        let nested = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        assert_eq!(format(nested), wanted);
        let flat = json!({"type": "json_schema", "name": "x", "schema": schema});
        assert_eq!(format(flat), wanted);
        assert_eq!(format(json!({"type": "text"})), Some(Format::Free));
        let object = format(json!({"type": "json_object"}));
        assert!(matches!(object, Some(Format::Form(..))));
        for wrong in [
            json!({"type": "json_schema"}),
            json!({"type": "xml"}),
            json!("json"),
        ] {
            assert_eq!(format(wrong), None);
        }
    }
}
