//! Errors as OpenAI's clients read them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;

/// The body of an answer that is an error, and the last event of a stream that failed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetails,
}

#[derive(Serialize, JsonSchema)]
struct ErrorDetails {
    message: String,
    r#type: &'static str,
    /// The field that is wrong.
    param: Option<String>,
    code: Option<&'static str>,
}

impl From<&ApiError> for ErrorBody {
    fn from(error: &ApiError) -> ErrorBody {
        ErrorBody {
            error: ErrorDetails {
                message: error.message.clone(),
                r#type: error.kind,
                param: error.param.clone(),
                code: error.code,
            },
        }
    }
}
