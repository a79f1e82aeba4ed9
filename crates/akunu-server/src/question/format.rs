//! What an answer must look like, forced by a grammar.

use akunu::{Grammar, Model};
use serde_json::{Value, json};

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

    /// The grammar of it, for an answer that begins within a thought with this end or not. A call is another matter.
    pub fn grammar(
        &self,
        model: &Model,
        thought: Option<&'static str>,
    ) -> Result<Option<Grammar>, ApiError> {
        let (field, schema) = match self {
            Format::Free | Format::Call => return Ok(None),
            Format::Schema(field, schema) => (*field, schema),
        };
        let compiled = Grammar::json_schema(model, &schema.to_string());
        let wrong = |error| ApiError::bad_field(field, format!("{field}: {error}"));
        let grammar = compiled.map_err(wrong)?;
        Ok(Some(grammar.starting_after(thought.unwrap_or_default())))
    }
}
