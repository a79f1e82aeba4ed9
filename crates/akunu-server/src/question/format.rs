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
    /// JSON of any kind.
    pub fn any_object(field: &'static str) -> Format {
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
