//! A recording that is sent, from its form.

use std::sync::Arc;

use akunu::TranscribeOptions;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::body::Body;
use crate::error::ApiError;
use crate::form::Form;
use crate::reply::{Content, MediaType};

/// What is wanted of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Transcribe,
    Translate,
}

impl Task {
    /// As OpenAI calls it.
    pub fn name(self) -> &'static str {
        match self {
            Task::Transcribe => "transcribe",
            Task::Translate => "translate",
        }
    }
}

/// How a transcript is written.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum TranscriptFormat {
    #[default]
    Json,
    Text,
    Srt,
    Vtt,
    VerboseJson,
}

/// What has times of its own.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Granularity {
    Word,
    Segment,
}

/// Words that clients write for a bool.
#[derive(Clone, Copy, Deserialize)]
enum Switch {
    #[serde(rename = "true", alias = "True", alias = "1")]
    On,
    #[serde(rename = "false", alias = "False", alias = "0")]
    Off,
}

/// The fields of a form.
#[derive(JsonSchema)]
pub(crate) struct TranscriptionRequest {
    pub(super) file: File,
    pub(super) model: Option<String>,
    /// Of the recording; by default the model finds out.
    language: Option<String>,
    /// Text that goes before, for names and spelling.
    prompt: Option<String>,
    /// At 0, as where nothing is said, the server chooses.
    #[schemars(range(min = 0, max = 1))]
    temperature: Option<f32>,
    pub(super) response_format: Option<TranscriptFormat>,
    #[schemars(default)]
    pub(super) stream: bool,
    #[schemars(rename = "timestamp_granularities[]", default)]
    granularities: Vec<Granularity>,
}

/// A recording.
#[derive(JsonSchema)]
#[schemars(transparent)]
pub(super) struct File {
    #[schemars(with = "String", extend("format" = "binary"))]
    pub bytes: Bytes,
    #[schemars(skip)]
    pub name: String,
}

impl TranscriptionRequest {
    fn read(mut form: Form) -> Result<TranscriptionRequest, ApiError> {
        let file = form.take("file");
        let file = file.ok_or_else(|| ApiError::bad_field("file", "file: it is missing"))?;
        let formats: Vec<TranscriptFormat> = form.words("response_format")?;
        let streams: Vec<Switch> = form.words("stream")?;
        let mut granularities: Vec<Granularity> = form.words("timestamp_granularities[]")?;
        granularities.extend(form.words::<Granularity>("timestamp_granularities")?);
        let request = TranscriptionRequest {
            file: File {
                name: file.file_name.unwrap_or_else(|| "file".into()),
                bytes: file.bytes,
            },
            model: form.text("model")?.map(str::to_string),
            language: form.text("language")?.map(str::to_lowercase),
            prompt: form.text("prompt")?.map(str::to_string),
            temperature: temperature(&form)?,
            response_format: formats.first().copied(),
            stream: matches!(streams.first(), Some(Switch::On)),
            granularities,
        };
        if request.stream
            && !matches!(
                request.format(),
                TranscriptFormat::Json | TranscriptFormat::Text
            )
        {
            let message = "stream: only the formats json and text can be streamed";
            return Err(ApiError::bad_field("stream", message));
        }
        Ok(request)
    }

    pub(super) fn format(&self) -> TranscriptFormat {
        self.response_format.unwrap_or_default()
    }

    /// Whether words have times.
    pub(super) fn by_word(&self) -> bool {
        self.granularities.contains(&Granularity::Word)
    }

    /// Whether segments are listed: OpenAI leaves them out where only words are wanted.
    pub(super) fn has_segments(&self) -> bool {
        self.granularities.contains(&Granularity::Segment) || !self.by_word()
    }

    pub(super) fn options(&self, task: Task) -> TranscribeOptions {
        TranscribeOptions {
            language: self.language.clone(),
            translate: task == Task::Translate,
            words: self.by_word(),
            prompt: self.prompt.clone(),
            temperature: self.temperature.filter(|warmth| *warmth > 0.0),
            ..TranscribeOptions::default()
        }
    }
}

fn temperature(form: &Form) -> Result<Option<f32>, ApiError> {
    let Some(text) = form.text("temperature")? else {
        return Ok(None);
    };
    match text.parse::<f32>() {
        Ok(warm) if (0.0..=1.0).contains(&warm) => Ok(Some(warm)),
        _ => {
            let message = format!("temperature is {text}, which must be 0 to 1");
            Err(ApiError::bad_field("temperature", message))
        }
    }
}

/// A request, and its recording's place in memory.
pub(crate) struct Upload {
    pub place: OwnedSemaphorePermit,
    pub request: TranscriptionRequest,
}

impl FromRequest<App> for Upload {
    type Rejection = ApiError;

    /// Takes the place before the body is read: as many recordings as there are places can be in memory.
    async fn from_request(request: Request, app: &App) -> Result<Upload, ApiError> {
        let limits = app.options.limits;
        let place = Arc::clone(&app.recordings).try_acquire_owned();
        let place = place.map_err(|_| ApiError::busy(limits.recordings))?;
        let form = Form::read(request, &limits).await?;
        let request = TranscriptionRequest::read(form)?;
        Ok(Upload { place, request })
    }
}

impl Body for Upload {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        let form = MediaType::of::<TranscriptionRequest>(schemas);
        Content::from([("multipart/form-data", form)])
    }
}
