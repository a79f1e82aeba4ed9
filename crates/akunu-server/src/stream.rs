//! Answers as a body that is written while they come.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_stream::Stream;

use crate::answers::{Answers, Happening, Usage, Whole};
use crate::error::ApiError;
use crate::reply::{Answer, Content, MediaType};

/// A comment goes out when nothing else has for this long, so that nobody on the way closes the connection.
const PING_AFTER: Duration = Duration::from_secs(10);

/// How a dialect writes answers: as a whole, or as events while they come.
pub(crate) trait Writer: Send + Unpin + 'static {
    /// The body of an answer that is not streamed.
    type Whole: Serialize + JsonSchema;
    /// What a stream is made of.
    type Event: Serialize + JsonSchema;
    /// How events are divided.
    const FRAMING: Framing;

    /// All answers, when they have ended.
    fn whole(self, answers: Vec<Whole>, usage: &Usage) -> Self::Whole;

    /// What goes before the answers.
    fn begin(&mut self, usage: &Usage) -> Vec<Self::Event>;

    /// What is written about something that happened; often nothing.
    fn write(&mut self, happening: Happening) -> Vec<Self::Event>;

    /// What goes after the answers.
    fn end(&mut self, usage: &Usage) -> Vec<Self::Event>;

    /// What is written when the answers fail.
    fn fail(&mut self, error: &ApiError) -> Self::Event;

    /// What is written when nothing happens, unless the framing has something that means nothing.
    fn ping() -> Option<Self::Event> {
        None
    }
}

/// How the events of a stream are divided.
#[derive(Clone, Copy)]
pub(crate) enum Framing {
    /// `text/event-stream`, which ends with `[DONE]`.
    Data,
    /// The same without its own end.
    Bare,
    /// `text/event-stream`, in which the `type` of an event is also its name.
    Named,
    /// One JSON object a line.
    Lines,
}

impl Framing {
    fn media_type(self) -> &'static str {
        match self {
            Framing::Data | Framing::Bare | Framing::Named => EVENTS,
            Framing::Lines => "application/x-ndjson",
        }
    }

    fn write(self, event: &impl Serialize) -> String {
        // Strings, numbers and lists of them can always be written.
        let json = serde_json::to_string(event).unwrap_or_default();
        match self {
            Framing::Data | Framing::Bare => format!("data: {json}\n\n"),
            Framing::Named => format!("event: {}\ndata: {json}\n\n", type_of(&json)),
            Framing::Lines => json + "\n",
        }
    }

    /// What goes after the last event of an answer that did not fail.
    fn end(self) -> &'static str {
        match self {
            Framing::Data => "data: [DONE]\n\n",
            Framing::Bare | Framing::Named | Framing::Lines => "",
        }
    }

    /// What means nothing: a comment, or an empty line.
    fn ping(self) -> &'static str {
        match self {
            Framing::Data | Framing::Bare | Framing::Named => ": ping\n\n",
            Framing::Lines => "\n",
        }
    }
}

/// The `type` of an event.
fn type_of(json: &str) -> String {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    serde_json::from_str(json).map_or_else(|_| String::new(), |typed: Typed| typed.r#type)
}

/// The `Content-Type` of events.
pub(crate) const EVENTS: &str = "text/event-stream";

/// One event of `text/event-stream`.
pub(crate) fn event(event: &impl Serialize) -> String {
    Framing::Data.write(event)
}

/// The response whose body is written while it goes out.
pub(crate) fn flowing(content_type: &'static str, body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-cache"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

/// Answers as a dialect writes them.
pub(crate) enum Reply<W: Writer> {
    /// When they have ended.
    Whole(axum::Json<W::Whole>),
    /// As they come.
    Stream(Body, PhantomData<W>),
}

impl<W: Writer> Reply<W> {
    /// Writes answers as they come, or waits for all of them; for at most `limit`.
    pub async fn new(
        mut answers: Answers,
        writer: W,
        is_stream: bool,
        limit: Duration,
    ) -> Result<Reply<W>, ApiError> {
        if is_stream {
            let now = Instant::now();
            let body = Body::from_stream(Streamed {
                answers,
                writer,
                state: State::New,
                ping: Box::pin(sleep_until(now + PING_AFTER)),
                deadline: Box::pin(sleep_until(now + limit)),
            });
            return Ok(Reply::Stream(body, PhantomData));
        }
        let whole = timeout(limit, answers.whole()).await;
        let whole = whole.map_err(|_| too_slow())??;
        Ok(Reply::Whole(axum::Json(
            writer.whole(whole, &answers.usage),
        )))
    }
}

impl<W: Writer> IntoResponse for Reply<W> {
    fn into_response(self) -> Response {
        match self {
            Reply::Whole(body) => body.into_response(),
            Reply::Stream(body, _) => flowing(W::FRAMING.media_type(), body),
        }
    }
}

impl<W: Writer> Answer for Reply<W> {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        Content::from([
            ("application/json", MediaType::of::<W::Whole>(schemas)),
            (W::FRAMING.media_type(), MediaType::of::<W::Event>(schemas)),
        ])
    }
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
                    frame::<W>(&self.writer.begin(&self.answers.usage))
                }
                State::Done => return Poll::Ready(None),
                State::Open => match self.poll_happening(cx) {
                    Poll::Ready(Some(Ok(happening))) => frame::<W>(&self.writer.write(happening)),
                    Poll::Ready(Some(Err(error))) => {
                        self.state = State::Done;
                        W::FRAMING.write(&self.writer.fail(&error))
                    }
                    Poll::Ready(None) => {
                        self.state = State::Done;
                        frame::<W>(&self.writer.end(&self.answers.usage)) + W::FRAMING.end()
                    }
                    Poll::Pending if self.ping.as_mut().poll(cx).is_ready() => {
                        self.ping.as_mut().reset(Instant::now() + PING_AFTER);
                        match W::ping() {
                            Some(event) => W::FRAMING.write(&event),
                            None => W::FRAMING.ping().to_string(),
                        }
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

/// Events as text.
fn frame<W: Writer>(events: &[W::Event]) -> String {
    let texts = events.iter().map(|event| W::FRAMING.write(event));
    texts.collect()
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
