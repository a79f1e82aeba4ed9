//! Bodies of `multipart/form-data`, within the limits.

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, multipart};
use axum::http::header;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use crate::body;
use crate::error::ApiError;
use crate::options::Limits;

/// Parts of a body.
const MAX_PARTS: usize = 64;
/// Bytes of a part that is read as text.
const MAX_TEXT: usize = 64 << 10;

/// A form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    parts: Vec<Part>,
}

/// A field of a form.
#[derive(Debug, PartialEq)]
pub(crate) struct Part {
    name: String,
    pub file_name: Option<String>,
    pub bytes: Bytes,
}

impl Form {
    /// Reads a form of at most as many bytes as a recording may have. The body is read before it is divided: a boundary that
    /// does not come would be looked for again with each piece.
    pub async fn read(request: Request, limits: &Limits) -> Result<Form, ApiError> {
        let content_type = request.headers().get(header::CONTENT_TYPE).cloned();
        let bytes = body::read(request, limits.audio_bytes, limits.reading).await?;
        let mut whole = Request::new(Body::from(bytes));
        let headers = whole.headers_mut();
        headers.extend(content_type.map(|value| (header::CONTENT_TYPE, value)));
        DefaultBodyLimit::disable().apply(&mut whole);
        let divided = Multipart::from_request(whole, &()).await;
        let mut divided = divided.map_err(|_| {
            ApiError::bad_request(
                "the body must be a form: `Content-Type: multipart/form-data` with a boundary",
            )
        })?;
        let mut form = Form::default();
        while let Some(field) = divided.next_field().await.map_err(broken)? {
            if form.parts.len() == MAX_PARTS {
                return Err(wrong(format!("it has more than {MAX_PARTS} parts")));
            }
            let name = field.name().map(str::to_string);
            form.parts.push(Part {
                name: name.ok_or_else(|| wrong("a part has no name"))?,
                file_name: field.file_name().map(str::to_string),
                bytes: field.bytes().await.map_err(broken)?,
            });
        }
        Ok(form)
    }

    /// Takes the part of this name out.
    pub fn take(&mut self, name: &str) -> Option<Part> {
        let at = self.parts.iter().position(|part| part.name == name)?;
        Some(self.parts.swap_remove(at))
    }

    /// The field of this name as text; `None` where it is not there or empty.
    pub fn text(&self, name: &str) -> Result<Option<&str>, ApiError> {
        Ok(self.texts(name)?.into_iter().next())
    }

    /// All fields of this name as text, but for empty ones.
    pub fn texts(&self, name: &str) -> Result<Vec<&str>, ApiError> {
        let parts = self.parts.iter().filter(|part| part.name == name);
        let texts = parts.map(|part| match std::str::from_utf8(&part.bytes) {
            Ok(text) if text.len() <= MAX_TEXT => Ok(text),
            _ => Err(ApiError::bad_field(
                name,
                format!("{name}: it must be text of at most {MAX_TEXT} bytes"),
            )),
        });
        let texts = texts.collect::<Result<Vec<&str>, _>>()?;
        Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
    }

    /// All fields of this name, each of which must be one of the words that `T` has.
    pub fn words<'f, T: Deserialize<'f>>(&'f self, name: &str) -> Result<Vec<T>, ApiError> {
        let words = self.texts(name)?.into_iter().map(|text| {
            let word: StrDeserializer<Error> = text.into_deserializer();
            let found = T::deserialize(word);
            found.map_err(|error| ApiError::bad_field(name, format!("{name}: {error}")))
        });
        words.collect()
    }
}

fn wrong(why: impl std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!("the form is not as it should be: {why}"))
}

fn broken(error: multipart::MultipartError) -> ApiError {
    wrong(error.body_text())
}

#[cfg(test)]
mod tests;
