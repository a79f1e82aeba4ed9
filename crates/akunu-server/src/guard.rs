//! What every request passes: who may ask, and how refusals look.
//!
//! A web page can make a browser ask any address, also this machine's. Against that:
//!
//! * `Host` must be an IP address, `localhost`, or a name that was allowed. A page that has its own name point at this
//!   machine (DNS rebinding) sends its own name.
//! * `Origin`, where a browser sends one, must be this server itself or one that was allowed, which alone gets the headers
//!   that let it read the answer.

mod keys;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use crate::app::App;
use crate::clock::new_id;
use crate::error::{ApiError, ServerError};
use crate::options::{Security, ServerOptions};

/// What stands for pages from anywhere.
const ANY: &str = "*";

/// Refuses origins that no browser would ever send, and all of them at once where anybody could ask without a key. Programs with a
/// page of their own have schemes of their own: `app://…`, `vscode-webview://…`.
pub(crate) fn check(options: &ServerOptions) -> Result<(), ServerError> {
    let security = &options.security;
    let is_origin = |origin: &&String| {
        let parts = origin.split_once("://");
        parts.is_some_and(|(scheme, host)| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
            let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
            is_scheme && scheme.chars().all(is_part) && !host.is_empty() && !host.contains('/')
        })
    };
    let is_safe = !security.keys.is_empty() || options.address.ip().is_loopback();
    let wrong = |origin: &&String| *origin != ANY && !is_origin(origin);
    if let Some(origin) = security.origins.iter().find(wrong) {
        return Err(ServerError::Origin(origin.clone()));
    }
    if !is_safe && security.origins.iter().any(|origin| origin == ANY) {
        return Err(ServerError::AnyOrigin);
    }
    Ok(())
}

/// Checks a request, has it answered, and logs.
pub(crate) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let since = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_string();
    let endpoint = request.extensions().get::<MatchedPath>().cloned();
    let id = new_id("req_");
    let span = tracing::info_span!("request", id, %method, path);
    let security = &app.options.security;
    let origin = request.headers().get(header::ORIGIN).cloned();
    let asked = header::ACCESS_CONTROL_REQUEST_HEADERS;
    let asked = request.headers().get(asked).cloned();
    let admitted = check_head(&request, app.options.limits.header_bytes)
        .and_then(|()| admit(security, request.headers(), &method, &path));
    let mut response = match admitted {
        Err(refused) => refused.into_response(),
        Ok(()) if method == Method::OPTIONS => preflight(asked),
        Ok(()) => next.run(request).instrument(span.clone()).await,
    };
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert("x-request-id", id);
    }
    if let Some(origin) = origin.filter(|origin| is_named(security, origin)) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    let status = response.status();
    (app.http_requests).count(&method, endpoint.as_ref(), status);
    let status = status.as_u16();
    let milliseconds = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
    // The time is that of the headers: a stream goes on after them.
    let refused = response.extensions().get::<ApiError>();
    span.in_scope(|| match refused {
        Some(why) => {
            let field = why.param.as_deref().unwrap_or_default();
            tracing::info!(status, milliseconds, field, why = why.message, "refused");
        }
        None => tracing::info!(status, milliseconds, "answered"),
    });
    response
}

/// Refuses a line and headers of more bytes than allowed: what reads them looks at its buffer only, which may be larger.
fn check_head(request: &Request, max_bytes: usize) -> Result<(), ApiError> {
    let headers = request.headers().iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let path = request.uri().path_and_query();
    let path = path.map_or(0, |path| path.as_str().len());
    if path + headers.sum::<usize>() > max_bytes {
        return Err(ApiError::new(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "invalid_request_error",
            format!("the path and the headers have more than {max_bytes} bytes"),
        ));
    }
    Ok(())
}

fn admit(
    security: &Security,
    headers: &HeaderMap,
    method: &Method,
    path: &str,
) -> Result<(), ApiError> {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default();
    if !is_our_name(security, host) {
        return Err(ApiError::forbidden(
            "this server does not answer to the name in the Host header; start it with --allow-host NAME to allow the name",
        ));
    }
    if let Some(origin) = headers.get(header::ORIGIN) {
        let is_same = origin.to_str().is_ok_and(|origin| {
            let from = origin.strip_prefix("http://");
            let from = from.or_else(|| origin.strip_prefix("https://"));
            from.is_some_and(|from| from.eq_ignore_ascii_case(host))
        });
        if !is_same && !is_named(security, origin) {
            return Err(ApiError::forbidden(
                "web pages of this origin may not ask this server; start it with --allow-origin ORIGIN to allow the origin",
            ));
        }
    }
    let is_open = method == Method::OPTIONS || is_public(path);
    if !is_open && !keys::are_right(&security.keys, headers) {
        return Err(ApiError {
            code: Some("invalid_api_key"),
            ..ApiError::new(
                StatusCode::UNAUTHORIZED,
                "authentication_error",
                "a key is needed, in `Authorization: Bearer KEY` or in `X-Api-Key: KEY`",
            )
        });
    }
    Ok(())
}

/// What has nothing to hide: whether the server is up, and the files of the page.
fn is_public(path: &str) -> bool {
    path == "/health" || crate::page::has(path)
}

/// Whether a `Host` header may stand for this machine.
fn is_our_name(security: &Security, host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bracketed = without_port.strip_prefix('[');
    let bracketed = bracketed.and_then(|address| address.strip_suffix(']'));
    without_port.eq_ignore_ascii_case("localhost")
        || without_port.parse::<Ipv4Addr>().is_ok()
        || bracketed.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
        || security
            .hosts
            .iter()
            .any(|name| name.eq_ignore_ascii_case(without_port))
}

/// Whether pages of this origin were allowed.
fn is_named(security: &Security, origin: &HeaderValue) -> bool {
    let is_it = |named: &String| named == ANY || named.as_bytes() == origin.as_bytes();
    security.origins.iter().any(is_it)
}

/// The answer to a browser that asks whether it may ask, and send these headers: clients have headers of their own.
fn preflight(asked: Option<HeaderValue>) -> Response {
    let usual = "authorization, content-type, x-api-key, anthropic-version";
    let allowed = asked.unwrap_or(HeaderValue::from_static(usual));
    let fixed = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    let headers = [(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed)];
    (StatusCode::NO_CONTENT, fixed, headers).into_response()
}

#[cfg(test)]
mod tests;
