//! The body of a request as JSON, within the limits. What does not fit names the field.

use std::time::Duration;

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::blocking::elsewhere;
use crate::error::ApiError;
use crate::router::App;

/// A body of this shape. Fields that it does not have are ignored, as OpenAI does.
pub(crate) struct Json<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Json<T>, ApiError> {
        let limits = &app.options.limits;
        let bytes = read(request, limits.body_bytes, limits.reading).await?;
        elsewhere(move || parse(&bytes)).await.map(Json)
    }
}

/// A body of two shapes at once: fields of its own, and fields that several requests share. (One shape within another, by
/// serde's `flatten`, could not name a field that is wrong.)
pub(crate) struct Both<A, B>(pub A, pub B);

impl<A, B> FromRequest<App> for Both<A, B>
where
    A: DeserializeOwned + Send + 'static,
    B: DeserializeOwned + Send + 'static,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Both<A, B>, ApiError> {
        let limits = &app.options.limits;
        let bytes = read(request, limits.body_bytes, limits.reading).await?;
        elsewhere(move || Ok(Both(parse(&bytes)?, parse(&bytes)?))).await
    }
}

/// Reads a whole body of at most that many bytes, which must arrive in time.
pub(crate) async fn read(
    request: Request,
    max_bytes: usize,
    within: Duration,
) -> Result<Vec<u8>, ApiError> {
    let too_large = || {
        ApiError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "invalid_request_error",
            format!("the body is larger than {} bytes", max_bytes),
        )
    };
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > max_bytes) {
        return Err(too_large());
    }
    let reading = to_bytes(request.into_body(), max_bytes);
    let slow = |_| {
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "invalid_request_error",
            "the body of the request did not come in time",
        )
    };
    let bytes = timeout(within, reading).await.map_err(slow)?;
    Ok(bytes.map_err(|_| too_large())?.to_vec())
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let why = error.inner();
        match field.as_str() {
            "." | "" | "?" => {
                ApiError::bad_request(format!("the body is not as it should be: {why}"))
            }
            _ => ApiError::bad_field(&field, format!("{field}: {why}")),
        }
    })?;
    let rest = json.end();
    rest.map_err(|why| ApiError::bad_request(format!("the body is not as it should be: {why}")))?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    struct Asked {
        #[serde(rename = "temperature")]
        _temperature: Option<f32>,
        #[serde(rename = "messages")]
        _messages: Vec<akunu::Message>,
    }

    fn wrong(body: &str) -> (Option<String>, String) {
        let refused = parse::<Asked>(body.as_bytes()).expect_err("not as it should be");
        (refused.param, refused.message)
    }

    /// Breaks when a client cannot see which field is wrong.
    #[test]
    fn wrong_types_name_the_field() {
        let (param, message) = wrong(r#"{"messages": [], "temperature": "hot"}"#);
        assert_eq!(param.as_deref(), Some("temperature"));
        assert!(message.contains("hot"), "{message}");
        let (param, _) = wrong(r#"{"messages": [{"role": "user"}, {"role": 7}]}"#);
        assert_eq!(param.as_deref(), Some("messages[1].role"));
    }

    #[test]
    fn broken_json_is_an_error() {
        for body in ["", "{", r#"{"messages": []} more"#, "\u{0}"] {
            let (param, message) = wrong(body);
            assert!(
                param.is_none() && message.contains("not as it should"),
                "{message}"
            );
        }
        let deep = format!("{{\"messages\": {}", "[".repeat(100_000));
        wrong(&deep);
    }
}
