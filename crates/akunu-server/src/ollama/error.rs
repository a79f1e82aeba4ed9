//! Errors as Ollama's clients read them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;

/// The body of an answer that is an error, and the last line of a stream that failed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OllamaError {
    error: String,
}

impl From<&ApiError> for OllamaError {
    fn from(error: &ApiError) -> OllamaError {
        OllamaError {
            error: error.message.clone(),
        }
    }
}
