//! The body of a request as JSON, within the limits. What does not fit names the field.

use std::time::Duration;

use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::app::App;
use crate::blocking::elsewhere;
use crate::error::ApiError;
use crate::reply::{Content, MediaType};

/// The body of a request, which can be described.
pub(crate) trait Body: FromRequest<App> + Send + 'static {
    /// Its media type, with its schema.
    fn content(schemas: &mut SchemaGenerator) -> Content;
}

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

impl<T: DeserializeOwned + JsonSchema + Send + 'static> Body for Json<T> {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        Content::from([("application/json", MediaType::of::<T>(schemas))])
    }
}

/// A body of several shapes at once: fields of its own, and fields that several requests share. (One shape within another, by
/// serde's `flatten`, could not name a field that is wrong.)
pub(crate) struct All<T>(pub T);

/// Shapes that are read from the same bytes.
pub(crate) trait Shapes: Sized + Send + 'static {
    fn read(bytes: &[u8]) -> Result<Self, ApiError>;

    fn schemas(schemas: &mut SchemaGenerator) -> Vec<schemars::Schema>;
}

macro_rules! shapes {
    ($($shape:ident)*) => {
        impl<$($shape: DeserializeOwned + JsonSchema + Send + 'static),*> Shapes for ($($shape,)*) {
            fn read(bytes: &[u8]) -> Result<Self, ApiError> {
                Ok(($(parse::<$shape>(bytes)?,)*))
            }

            fn schemas(schemas: &mut SchemaGenerator) -> Vec<schemars::Schema> {
                vec![$(schemas.subschema_for::<$shape>()),*]
            }
        }
    };
}

shapes!(A B);
shapes!(A B C D);
shapes!(A B C D E);

impl<T: Shapes> FromRequest<App> for All<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<All<T>, ApiError> {
        let limits = &app.options.limits;
        let bytes = read(request, limits.body_bytes, limits.reading).await?;
        elsewhere(move || T::read(&bytes)).await.map(All)
    }
}

impl<T: Shapes> Body for All<T> {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        let all = T::schemas(schemas);
        let schema = json_schema!({"allOf": all});
        Content::from([("application/json", MediaType { schema })])
    }
}

/// Reads a whole body of at most that many bytes, which must arrive in time.
pub(crate) async fn read(
    request: Request,
    max_bytes: usize,
    within: Duration,
) -> Result<Bytes, ApiError> {
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
    bytes.map_err(|_| too_large())
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // A list would be read too, as the fields in the order of our source.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::bad_request("the body must be a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let field = error.path().to_string();
        let why = plain(error.inner());
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

/// What is wrong, in words of JSON: serde names the types of Rust.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // What was found may be any text; what is wanted comes after it, and then the place.
    let Some((found, rest)) = text.rsplit_once(", expected ") else {
        return text;
    };
    let (wanted, place) = match rest.split_once(" at line ") {
        Some((wanted, place)) => (wanted, format!(" at line {place}")),
        None => (rest, String::new()),
    };
    let wanted = match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        wanted if wanted.starts_with("struct ") => "an object",
        wanted => wanted,
    };
    let found = match found {
        "invalid type: sequence" => "invalid type: list",
        "invalid type: map" => "invalid type: object",
        found => found,
    };
    format!("{found}, expected {wanted}{place}")
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

    /// Breaks when a list is read as if it had the names of the fields.
    #[test]
    fn bodies_are_objects() {
        for body in [
            "",
            " ",
            "[]",
            "[null, []]",
            "7",
            "null",
            "\u{0}",
            "\u{feff}{}",
        ] {
            let (param, message) = wrong(body);
            assert_eq!(param, None);
            assert_eq!(message, "the body must be a JSON object", "{body}");
        }
        parse::<Asked>(b" \r\n\t{\"messages\": []}").expect("an object");
    }

    /// Breaks when a client has to know Rust.
    #[test]
    fn types_are_called_as_in_json() {
        #[derive(Debug, Deserialize)]
        struct Typed {
            _n: Option<usize>,
            _seed: Option<i64>,
            _top_p: Option<f32>,
            _stream: Option<bool>,
            _list: Option<Vec<u32>>,
            _object: Option<std::collections::BTreeMap<String, f32>>,
            _typed: Option<Box<Typed>>,
        }
        for (body, wanted) in [
            (
                r#"{"_n": -1}"#,
                "`-1`, expected a whole number, 0 or more at",
            ),
            (
                r#"{"_n": ", expected usize"}"#,
                "usize\", expected a whole number, 0 or more at",
            ),
            (r#"{"_seed": 1.5}"#, "expected a whole number at"),
            (
                r#"{"_top_p": "all"}"#,
                "string \"all\", expected a number at",
            ),
            (r#"{"_stream": 1}"#, "expected true or false at"),
            (
                r#"{"_list": {}}"#,
                "invalid type: object, expected a list at",
            ),
            (
                r#"{"_object": []}"#,
                "invalid type: list, expected an object at",
            ),
            (r#"{"_typed": "x"}"#, "expected an object at"),
            (r#"{"_typed": []}"#, "expected an object at"),
        ] {
            let refused = parse::<Typed>(body.as_bytes()).expect_err("of another type");
            assert!(refused.message.contains(wanted), "{}", refused.message);
        }
    }

    #[test]
    fn broken_json_is_an_error() {
        for body in ["{", r#"{"messages": []} more"#, "{\u{0}"] {
            let (param, message) = wrong(body);
            assert!(
                param.is_none() && message.contains("not as it should"),
                "{message}"
            );
        }
        let deep = format!("{{\"messages\": {}", "[".repeat(100_000));
        wrong(&deep);
    }

    /// Breaks when the limit of nesting is another than the documentation says.
    #[test]
    fn fields_that_are_read_are_nested_less_than_128_deep() {
        let nested = |field: &str, depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(r#"{{"messages": [{{"role": "user", "{field}": {open}{close}}}]}}"#)
        };
        let read = |body: &str| parse::<Asked>(body.as_bytes()).map(|_| ());
        read(&nested("content", 124)).expect("127 deep with what is around");
        read(&nested("content", 125)).expect_err("128 deep");
        let unknown = format!(
            r#"{{"messages": [], "other": {}{}}}"#,
            "[".repeat(1000),
            "]".repeat(1000)
        );
        read(&unknown).expect("skipped");
    }
}
