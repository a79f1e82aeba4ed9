//! The fields of a request, from its form.

use akunu::TranscribeOptions;

use crate::error::ApiError;
use crate::multipart::Form;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Text,
    Srt,
    Vtt,
    VerboseJson,
}

const FORMATS: [(&str, Format); 5] = [
    ("json", Format::Json),
    ("text", Format::Text),
    ("srt", Format::Srt),
    ("vtt", Format::Vtt),
    ("verbose_json", Format::VerboseJson),
];

/// A request.
pub(super) struct Asked {
    pub task: Task,
    pub model: Option<String>,
    pub file_name: String,
    pub file: Vec<u8>,
    pub format: Format,
    pub stream: bool,
    pub options: TranscribeOptions,
    /// Whether segments are listed: OpenAI leaves them out where only words are wanted.
    pub has_segments: bool,
}

impl Asked {
    pub fn read(mut form: Form, task: Task) -> Result<Asked, ApiError> {
        let file = form.take("file");
        let file = file.ok_or_else(|| ApiError::bad_field("file", "file: it is missing"))?;
        let format = format(&form)?;
        let stream = stream(&form)?;
        if stream && !matches!(format, Format::Json | Format::Text) {
            let message = "stream: only the formats json and text can be streamed";
            return Err(ApiError::bad_field("stream", message));
        }
        let (words, segments) = granularities(&form)?;
        Ok(Asked {
            task,
            model: form.text("model")?.map(str::to_string),
            file_name: file.file_name.unwrap_or_else(|| "file".into()),
            file: file.bytes,
            format,
            stream,
            options: TranscribeOptions {
                language: form.text("language")?.map(str::to_lowercase),
                translate: task == Task::Translate,
                words,
                prompt: form.text("prompt")?.map(str::to_string),
                temperature: temperature(&form)?,
                ..TranscribeOptions::default()
            },
            has_segments: segments || !words,
        })
    }
}

fn format(form: &Form) -> Result<Format, ApiError> {
    let name = form.text("response_format")?.unwrap_or("json");
    let found = FORMATS.iter().find(|(known, _)| *known == name);
    found.map(|(_, format)| *format).ok_or_else(|| {
        let known = FORMATS.map(|(known, _)| known).join(", ");
        let message = format!("response_format is `{name}`, which must be one of {known}");
        ApiError::bad_field("response_format", message)
    })
}

fn stream(form: &Form) -> Result<bool, ApiError> {
    match form.text("stream")?.unwrap_or("false") {
        "true" | "True" | "1" => Ok(true),
        "false" | "False" | "0" => Ok(false),
        _ => Err(ApiError::bad_field(
            "stream",
            "stream must be true or false",
        )),
    }
}

/// Whether words, and whether segments are named.
fn granularities(form: &Form) -> Result<(bool, bool), ApiError> {
    let (mut words, mut segments) = (false, false);
    for name in ["timestamp_granularities[]", "timestamp_granularities"] {
        for wanted in form.texts(name)? {
            match wanted {
                "word" => words = true,
                "segment" => segments = true,
                _ => {
                    let message = format!("{name} is `{wanted}`, which must be word or segment");
                    return Err(ApiError::bad_field(name, message));
                }
            }
        }
    }
    Ok((words, segments))
}

/// At 0, as at OpenAI, the server chooses, and so it does where nothing is said.
fn temperature(form: &Form) -> Result<Option<f32>, ApiError> {
    let Some(text) = form.text("temperature")? else {
        return Ok(None);
    };
    match text.parse::<f32>() {
        Ok(0.0) => Ok(None),
        Ok(warm) if (0.0..=1.0).contains(&warm) => Ok(Some(warm)),
        _ => {
            let message = format!("temperature is {text}, which must be 0 to 1");
            Err(ApiError::bad_field("temperature", message))
        }
    }
}
