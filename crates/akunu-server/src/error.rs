//! Why a request cannot be answered.
//!
//! What a client is told never has a path of this machine: errors of the engine that are not the client's fault become one
//! sentence, and the log has the details.

use akunu::{EngineError, TemplateError, TokenizerError};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Why a model cannot be opened.
pub type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// Why a server cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is taken, or not one of this machine.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: std::net::SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system gives no threads or sockets.
    #[error("the server cannot be started: {0}")]
    System(#[from] std::io::Error),
    /// Two models would have the same name.
    #[error("two models are called `{0}`; give one of them another name")]
    SameName(String),
    /// The model that is asked by default is not served.
    #[error("no model that is served is called `{0}`")]
    DefaultModel(String),
    /// There is nothing to serve.
    #[error("there is no model to serve")]
    NoModel,
    /// A model cannot be opened.
    #[error("{0}")]
    Open(#[source] OpenError),
    /// A model cannot be run as it was asked for.
    #[error(transparent)]
    Model(#[from] akunu::Error),
    /// What a web page's address cannot be.
    #[error(
        "`{0}` is not an origin; it must look like https://example.org, http://localhost:3000 or app://name, or be `*` for all"
    )]
    Origin(String),
    /// All origins, where everybody who reaches the address could ask without a key.
    #[error("the origin `*` needs a key, or an address of this machine only")]
    AnyOrigin,
}

/// Why a request cannot be answered.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub status: StatusCode,
    /// OpenAI's `type`.
    pub kind: &'static str,
    /// OpenAI's `code`.
    pub code: Option<&'static str>,
    /// The field that is wrong.
    pub param: Option<String>,
    pub message: String,
    /// Seconds after which it may work.
    pub retry_after: Option<u32>,
}

impl ApiError {
    pub fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> ApiError {
        ApiError {
            status,
            kind,
            code: None,
            param: None,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The client asks for what cannot be.
    pub fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// The same about one field.
    pub fn bad_field(param: impl Into<String>, message: impl Into<String>) -> ApiError {
        ApiError {
            param: Some(param.into()),
            ..ApiError::bad_request(message)
        }
    }

    pub fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "not_found_error", message)
    }

    /// Something of ours failed. The details are for the log.
    pub fn internal(details: &dyn std::fmt::Display) -> ApiError {
        tracing::error!(%details, "a request failed");
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "server_error",
            "the server failed to answer; its log says why",
        )
    }

    /// There are as many requests as can wait.
    pub fn busy(places: usize) -> ApiError {
        ApiError {
            code: Some("rate_limit_exceeded"),
            retry_after: Some(1),
            ..ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "rate_limit_error",
                format!("all {places} places of this model are taken; try again later"),
            )
        }
    }

    /// A prompt that leaves no room for an answer.
    pub fn too_long(needed: usize, context: u32) -> ApiError {
        ApiError {
            code: Some("context_length_exceeded"),
            param: Some("messages".into()),
            ..ApiError::bad_request(format!(
                "the prompt has {needed} tokens, and the context holds {context}, of which the answer needs one"
            ))
        }
    }

    pub fn with_code(self, code: &'static str) -> ApiError {
        ApiError {
            code: Some(code),
            ..self
        }
    }
}

/// The body depends on the dialect, which only the [router](crate::router) knows: it finds the error in the extensions.
impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(seconds) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> ApiError {
        match error {
            EngineError::ContextFull { needed, context } => ApiError::too_long(needed, context),
            EngineError::Sampling { option, .. } => {
                ApiError::bad_field(option.replace([' ', '-'], "_"), error.to_string())
            }
            EngineError::UnknownToken { .. } | EngineError::NothingToContinue => {
                ApiError::bad_field("prompt", error.to_string())
            }
            EngineError::Tokenizer(
                TokenizerError::Template(TemplateError::Render(_)) | TokenizerError::NoMarker,
            ) => ApiError::bad_field("messages", error.to_string()),
            other => ApiError::internal(&other),
        }
    }
}

impl From<akunu::Error> for ApiError {
    fn from(error: akunu::Error) -> ApiError {
        match error {
            akunu::Error::Engine(error) => error.into(),
            other => ApiError::internal(&other),
        }
    }
}

impl From<TokenizerError> for ApiError {
    fn from(error: TokenizerError) -> ApiError {
        EngineError::from(error).into()
    }
}
