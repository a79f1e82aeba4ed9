//! Answers as a body that is written while they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_stream::Stream;

use crate::answers::{Answers, Happening, Usage};
use crate::error::ApiError;

/// A comment goes out when nothing else has for this long, so that nobody on the way closes the connection.
const PING_AFTER: Duration = Duration::from_secs(10);

/// How a dialect writes answers.
pub(crate) trait Writer: Send + Unpin + 'static {
    /// `Content-Type`
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// What goes before the answers.
    fn begin(&mut self, usage: &Usage) -> String;

    /// What is written about something that happened; often nothing.
    fn write(&mut self, happening: Happening) -> String;

    /// What goes after the answers.
    fn end(&mut self, usage: &Usage) -> String;

    /// What is written when the answers fail.
    fn fail(&mut self, error: &ApiError) -> String;

    /// What is written when nothing happens.
    fn ping(&self) -> &'static str {
        ": ping\n\n"
    }
}

/// One event of `text/event-stream`.
pub(crate) fn event(data: &impl serde::Serialize) -> String {
    // Strings, numbers and lists of them can always be written.
    format!(
        "data: {}\n\n",
        serde_json::to_string(data).unwrap_or_default()
    )
}

/// The response that writes answers as they come, for at most `limit`.
pub(crate) fn respond(answers: Answers, writer: impl Writer, limit: Duration) -> Response {
    let content_type = writer.content_type();
    let now = Instant::now();
    let body = Body::from_stream(Streamed {
        answers,
        writer,
        state: State::New,
        ping: Box::pin(sleep_until(now + PING_AFTER)),
        deadline: Box::pin(sleep_until(now + limit)),
    });
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-cache"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

/// Where a body is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

struct Streamed<W> {
    answers: Answers,
    writer: W,
    state: State,
    ping: Pin<Box<Sleep>>,
    deadline: Pin<Box<Sleep>>,
}

impl<W: Writer> Stream for Streamed<W> {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<Option<Self::Item>> {
        let written = std::task::ready!(self.poll_write(cx));
        self.ping.as_mut().reset(Instant::now() + PING_AFTER);
        Poll::Ready(written.map(|text| Ok(Bytes::from(text))))
    }
}

impl<W: Writer> Streamed<W> {
    /// The next text that is not empty; `None` at the end.
    fn poll_write(&mut self, cx: &mut Context) -> Poll<Option<String>> {
        loop {
            let text = match self.state {
                State::New => {
                    self.state = State::Open;
                    self.writer.begin(&self.answers.usage)
                }
                State::Done => return Poll::Ready(None),
                State::Open => match self.poll_happening(cx) {
                    Poll::Ready(Some(Ok(happening))) => self.writer.write(happening),
                    Poll::Ready(Some(Err(error))) => {
                        self.state = State::Done;
                        self.writer.fail(&error)
                    }
                    Poll::Ready(None) => {
                        self.state = State::Done;
                        self.writer.end(&self.answers.usage)
                    }
                    Poll::Pending if self.ping.as_mut().poll(cx).is_ready() => {
                        self.ping.as_mut().reset(Instant::now() + PING_AFTER);
                        self.writer.ping().to_string()
                    }
                    Poll::Pending => return Poll::Pending,
                },
            };
            if !text.is_empty() {
                return Poll::Ready(Some(text));
            }
        }
    }

    fn poll_happening(&mut self, cx: &mut Context) -> Poll<Option<Result<Happening, ApiError>>> {
        if self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(too_slow())));
        }
        self.answers.poll_next(cx)
    }
}

/// An answer that takes longer than this server allows.
pub(crate) fn too_slow() -> ApiError {
    ApiError::new(
        axum::http::StatusCode::GATEWAY_TIMEOUT,
        "server_error",
        "the answer takes longer than this server allows",
    )
    .with_code("timeout")
}
