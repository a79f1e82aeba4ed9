//! What an answer must look like, forced by a grammar.

use std::sync::Arc;

use akunu::{Grammar, Model};
use serde_json::{Value, json};

use crate::blocking::elsewhere;
use crate::engine::Engine;
use crate::error::ApiError;

/// What an answer must look like.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Format {
    /// Anything.
    #[default]
    Free,
    /// This form, from this field of the request.
    Form(&'static str, Form),
    /// A call of one of the tools.
    Call,
}

/// A form of text.
#[derive(Debug, PartialEq)]
pub(crate) enum Form {
    /// JSON that is valid by this schema.
    Schema(Value),
    /// What this regular expression matches as a whole.
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// A text of this grammar, in GBNF or Lark.
    Grammar(String),
}

impl Format {
    /// JSON of any kind.
    pub fn any_object(field: &'static str) -> Format {
        Format::Form(field, Form::Schema(json!({"type": "object"})))
    }

    /// The grammar of it, for a text that begins with the answer.
    pub async fn compiled(self, engine: &Arc<Engine>) -> Result<Option<Grammar>, ApiError> {
        let engine = Arc::clone(engine);
        elsewhere(move || self.grammar(&engine.model, None)).await
    }

    /// The grammar of it, for an answer that begins within a thought with this end or not. A call is another matter.
    pub fn grammar(
        &self,
        model: &Model,
        thought: Option<&'static str>,
    ) -> Result<Option<Grammar>, ApiError> {
        let (field, form) = match self {
            Format::Free | Format::Call => return Ok(None),
            Format::Form(field, form) => (*field, form),
        };
        let compiled = match form {
            Form::Schema(schema) => Grammar::json_schema(model, &schema.to_string()),
            Form::Regex(pattern) => Grammar::regex(model, pattern),
            Form::Choice(texts) => Grammar::choice(model, texts),
            Form::Grammar(text) => Grammar::context_free(model, text),
        };
        let wrong = |error| ApiError::bad_field(field, format!("{field}: {error}"));
        let grammar = compiled.map_err(wrong)?;
        Ok(Some(grammar.starting_after(thought.unwrap_or_default())))
    }
}
