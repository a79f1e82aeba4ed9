//! `/v1/audio/transcriptions` and `/v1/audio/translations`

mod form;
mod transcript;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

use self::form::{Asked, Task};
use self::transcript::Transcript;
use crate::engine;
use crate::error::ApiError;
use crate::models::Loaded;
use crate::multipart::Form;
use crate::router::App;
use crate::speech::{Hearing, Recording, Said};
use crate::stream::{self, event};

/// What was said, in the language in which it was said.
pub(crate) async fn transcriptions(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    answer(app, request, Task::Transcribe).await
}

/// What was said, in English.
pub(crate) async fn translations(
    State(app): State<App>,
    request: Request,
) -> Result<Response, ApiError> {
    answer(app, request, Task::Translate).await
}

async fn answer(app: App, request: Request, task: Task) -> Result<Response, ApiError> {
    // Before the body is read: as many recordings as there are places can be in memory.
    let place = Arc::clone(&app.recordings).try_acquire_owned();
    let limits = app.options.limits;
    let place = place.map_err(|_| ApiError::busy(limits.recordings))?;
    let form = Form::from_request(request, &app).await?;
    let mut asked = Asked::read(form, task)?;
    let Loaded::Speech(speech) = app.models.load(asked.model.as_deref()).await? else {
        let message = "this model hears nothing; a Whisper does";
        return Err(ApiError::bad_field("model", message));
    };
    let recording = Recording {
        name: asked.file_name.clone(),
        bytes: std::mem::take(&mut asked.file),
        place,
    };
    let hearing = speech.hear(recording, asked.options.clone());
    if asked.stream {
        return Ok(streamed(hearing));
    }
    let whole = timeout(limits.answering, whole(hearing, asked)).await;
    Ok(whole.map_err(|_| stream::too_slow())??.into_response())
}

/// All that was said, when all was heard.
async fn whole(mut hearing: Hearing, asked: Asked) -> Result<Transcript, ApiError> {
    let mut transcript = Transcript::new(asked);
    while let Some(said) = hearing.recv().await {
        match said? {
            Said::Segment(segment) => transcript.segments.push(segment),
            Said::Ended { language, seconds } => {
                transcript.language = language;
                transcript.seconds = seconds;
                return Ok(transcript);
            }
        }
    }
    Err(engine::stopped())
}

/// What is said as it is found: a delta for each segment, and all of it at the end.
fn streamed(hearing: Hearing) -> Response {
    let mut text = String::new();
    let events = UnboundedReceiverStream::new(hearing).map(move |said| {
        let written = match said {
            Ok(Said::Segment(segment)) => {
                let space = if text.is_empty() { "" } else { " " };
                let delta = format!("{space}{}", segment.text);
                text.push_str(&delta);
                event(&json!({"type": "transcript.text.delta", "delta": delta}))
            }
            Ok(Said::Ended { seconds, .. }) => event(&json!({
                "type": "transcript.text.done",
                "text": text,
                "usage": transcript::usage(seconds),
            })),
            Err(error) => event(&error.openai()),
        };
        Ok::<String, std::convert::Infallible>(written)
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::from_stream(events)).into_response()
}
