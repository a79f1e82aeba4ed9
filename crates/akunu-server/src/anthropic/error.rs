//! Errors as Anthropic's clients read them.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::ApiError;

/// The body of an answer that is an error, and the last event of a stream that failed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MessageError {
    r#type: &'static str,
    error: MessageErrorDetails,
}

#[derive(Serialize, JsonSchema)]
struct MessageErrorDetails {
    r#type: &'static str,
    message: String,
}

impl From<&ApiError> for MessageError {
    fn from(error: &ApiError) -> MessageError {
        let kind = match error.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "api_error",
        };
        MessageError {
            r#type: "error",
            error: MessageErrorDetails {
                r#type: kind,
                message: error.message.clone(),
            },
        }
    }
}
