//! `/v1/audio/transcriptions` and `/v1/audio/translations`

mod request;
mod transcript;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

use self::request::{Task, TranscriptionRequest, Upload};
use self::transcript::{Transcript, TranscriptUsage, Written};
use super::ErrorBody;
use crate::app::App;
use crate::engine;
use crate::error::ApiError;
use crate::loaded::Loaded;
use crate::reply::{Answer, Content, MediaType};
use crate::speech::{Hearing, Recording, Said};
use crate::stream::{self, EVENTS, event, flowing};

/// What was said, in the language in which it was said.
pub(crate) async fn transcriptions(
    State(app): State<App>,
    upload: Upload,
) -> Result<Transcription, ApiError> {
    answer(app, upload, Task::Transcribe).await
}

/// What was said, in English.
pub(crate) async fn translations(
    State(app): State<App>,
    upload: Upload,
) -> Result<Transcription, ApiError> {
    answer(app, upload, Task::Translate).await
}

async fn answer(app: App, upload: Upload, task: Task) -> Result<Transcription, ApiError> {
    let Upload { place, request } = upload;
    let limits = app.options.limits;
    let Loaded::Speech(speech) = app.models.load(request.model.as_deref()).await? else {
        let message = "this model hears nothing; a Whisper does";
        return Err(ApiError::bad_field("model", message));
    };
    let options = request.options(task);
    let transcript = Transcript::new(&request, task);
    let TranscriptionRequest { file, stream, .. } = request;
    let recording = Recording {
        name: file.name,
        bytes: file.bytes.into(),
        place,
    };
    let hearing = speech.hear(recording, options);
    if stream {
        return Ok(Transcription::Stream(streamed(hearing)));
    }
    let whole = timeout(limits.answering, whole(hearing, transcript)).await;
    let whole = whole.map_err(|_| stream::too_slow())??;
    Ok(Transcription::Whole(whole.write()))
}

/// All that was said, when all was heard.
async fn whole(mut hearing: Hearing, mut transcript: Transcript) -> Result<Transcript, ApiError> {
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
fn streamed(hearing: Hearing) -> Body {
    let mut text = String::new();
    let events = UnboundedReceiverStream::new(hearing).map(move |said| {
        let told = match said {
            Ok(Said::Segment(segment)) => {
                let space = if text.is_empty() { "" } else { " " };
                let delta = format!("{space}{}", segment.text);
                text.push_str(&delta);
                TranscriptEvent::Told(TranscriptPart::Delta { delta })
            }
            Ok(Said::Ended { seconds, .. }) => TranscriptEvent::Told(TranscriptPart::Done {
                text: std::mem::take(&mut text),
                usage: TranscriptUsage::new(seconds),
            }),
            Err(error) => TranscriptEvent::Failed(ErrorBody::from(&error)),
        };
        Ok::<String, std::convert::Infallible>(event(&told))
    });
    Body::from_stream(events)
}

/// What was said.
pub(crate) enum Transcription {
    Whole(Written),
    Stream(Body),
}

/// An event of a stream.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum TranscriptEvent {
    Told(TranscriptPart),
    Failed(ErrorBody),
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "type")]
enum TranscriptPart {
    #[serde(rename = "transcript.text.delta")]
    Delta { delta: String },
    #[serde(rename = "transcript.text.done")]
    Done {
        text: String,
        usage: TranscriptUsage,
    },
}

impl IntoResponse for Transcription {
    fn into_response(self) -> Response {
        match self {
            Transcription::Whole(written) => written.into_response(),
            Transcription::Stream(body) => flowing(EVENTS, body),
        }
    }
}

impl Answer for Transcription {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        let mut content = Written::content(schemas);
        content.insert(EVENTS, MediaType::of::<TranscriptEvent>(schemas));
        content
    }
}
