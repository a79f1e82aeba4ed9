//! Bodies of `multipart/form-data` (RFC 7578): fields and a file, as browsers and clients send them.
//!
//! ```text
//! --BOUNDARY CRLF
//! Content-Disposition: form-data; name="file"; filename="talk.mp3" CRLF
//! CRLF
//! bytes CRLF
//! --BOUNDARY--
//! ```
//!
//! The whole body is in memory by then, so a part is a run of its bytes.

use axum::extract::{FromRequest, Request};
use axum::http::header;

use crate::body;
use crate::error::ApiError;
use crate::router::App;

/// Parts of a body, and bytes of the headers of one.
const MAX_PARTS: usize = 64;
const MAX_HEADER: usize = 8 << 10;
/// Bytes of a part that is read as text.
const MAX_TEXT: usize = 64 << 10;

/// A form.
#[derive(Debug)]
pub(crate) struct Form {
    parts: Vec<Part>,
}

/// A field of a form.
#[derive(Debug, PartialEq)]
pub(crate) struct Part {
    name: String,
    pub file_name: Option<String>,
    pub bytes: Vec<u8>,
}

impl FromRequest<App> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Form, ApiError> {
        let content_type = request.headers().get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let boundary = content_type.and_then(boundary).ok_or_else(|| {
            ApiError::bad_request(
                "the body must be a form: `Content-Type: multipart/form-data` with a boundary",
            )
        })?;
        let limits = &app.options.limits;
        let bytes = body::read(request, limits.audio_bytes, limits.reading).await?;
        let parts = split(&bytes, &boundary).map_err(|why| {
            ApiError::bad_request(format!("the form is not as it should be: {why}"))
        })?;
        Ok(Form { parts })
    }
}

impl Form {
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
}

/// The boundary that `Content-Type` names.
fn boundary(content_type: &str) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let found = parameter(parameters, "boundary")?;
    (1..=70).contains(&found.len()).then_some(found)
}

/// The value of `name=value` or `name="value"` in a list that semicolons divide.
fn parameter(list: &str, name: &str) -> Option<String> {
    let mut rest = list;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, after) = value(after.trim_start())?;
        if key
            .trim_start_matches(';')
            .trim()
            .eq_ignore_ascii_case(name)
        {
            return Some(value);
        }
        rest = after.trim_start();
    }
}

/// A value, and what follows it. In quotes, `\"` and `\\` stand for themselves, and `%22` for a quote, as browsers write it.
fn value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find(';').unwrap_or(text.len());
        return Some((text[..end].trim().to_string(), &text[end..]));
    };
    let mut found = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((found.replace("%22", "\""), &quoted[at + 1..])),
            '\\' if quoted[at + 1..].starts_with(['"', '\\']) => {
                found.extend(characters.next().map(|(_, escaped)| escaped));
            }
            other => found.push(other),
        }
    }
    None
}

/// The parts of a body.
fn split(body: &[u8], boundary: &str) -> Result<Vec<Part>, &'static str> {
    let delimiter = format!("\r\n--{boundary}");
    let first = delimiter.trim_start().as_bytes();
    let mut rest = if body.starts_with(first) {
        &body[first.len()..]
    } else {
        let begin = find(body, delimiter.as_bytes()).ok_or("the boundary does not occur")?;
        &body[begin + delimiter.len()..]
    };
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        if parts.len() == MAX_PARTS {
            return Err("it has too many parts");
        }
        let line_end = find(&rest[..rest.len().min(MAX_HEADER)], b"\r\n");
        let headed = &rest[line_end.ok_or("a boundary has no end of line")?..];
        let end = find(headed, delimiter.as_bytes()).ok_or("it ends within a part")?;
        parts.push(part(&headed[..end])?);
        rest = &headed[end + delimiter.len()..];
    }
    Ok(parts)
}

/// A part, from the end of the line before its headers on.
fn part(bytes: &[u8]) -> Result<Part, &'static str> {
    let end = find(&bytes[..bytes.len().min(MAX_HEADER)], b"\r\n\r\n");
    let end = end.ok_or("a part has no end of its headers")?;
    let headers = std::str::from_utf8(&bytes[..end]).map_err(|_| "a header is no UTF-8")?;
    let disposition = headers.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let is_it = key.trim().eq_ignore_ascii_case("content-disposition");
        is_it.then(|| value.trim().strip_prefix("form-data"))?
    });
    let disposition = disposition.ok_or("a part has no Content-Disposition of form-data")?;
    Ok(Part {
        name: parameter(disposition, "name").ok_or("a part has no name")?,
        file_name: parameter(disposition, "filename"),
        bytes: bytes[end + 4..].to_vec(),
    })
}

/// Where a text begins, of which the first byte is rare: a carriage return.
fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    let first = *text.first()?;
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        if bytes[from + at..].starts_with(text) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

#[cfg(test)]
mod tests;
