//! What an answer must look like, forced by a grammar.

use std::sync::Arc;

use akunu::{Grammar, Model};
use serde_json::{Value, json};

use super::prompt::Prompt;
use super::unique::Unique;
use crate::blocking::elsewhere;
use crate::engine::Engine;
use crate::error::ApiError;

/// What an answer must look like.
#[derive(Clone, Debug, Default, PartialEq)]
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
#[derive(Clone, Debug, PartialEq)]
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

    /// A prompt whose answer, a text from its beginning on, has this form.
    pub async fn of_answer(self, prompt: Prompt, engine: &Arc<Engine>) -> Result<Prompt, ApiError> {
        let engine = Arc::clone(engine);
        elsewhere(move || {
            Ok(Prompt {
                grammar: self.grammar(&engine.model, None)?,
                unique: self.unique(),
                ..prompt
            })
        })
        .await
    }

    /// The check of a whole answer.
    pub fn unique(&self) -> Option<Unique> {
        match self {
            Format::Form(_, Form::Schema(schema)) => Unique::split(schema).1,
            _ => None,
        }
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
            Form::Schema(schema) => {
                let (schema, _) = Unique::split(schema);
                Grammar::json_schema(model, &schema.to_string())
            }
            Form::Regex(pattern) => Grammar::regex(model, pattern),
            Form::Choice(texts) => Grammar::choice(model, texts),
            Form::Grammar(text) => Grammar::context_free(model, text),
        };
        let wrong = |error| ApiError::bad_field(field, format!("{field}: {error}"));
        let grammar = compiled.map_err(wrong)?;
        Ok(Some(grammar.starting_after(thought.unwrap_or_default())))
    }
}
