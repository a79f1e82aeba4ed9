//! What was said, as the body of a response.

use akunu::{Cue, Segment};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;

use super::request::{Task, TranscriptFormat, TranscriptionRequest};
use crate::reply::{Answer, Content, MediaType};

/// Frames of a second, in which OpenAI counts where a window begins.
const FRAMES: f64 = 100.0;

/// All that was said.
pub(super) struct Transcript {
    task: Task,
    format: TranscriptFormat,
    by_word: bool,
    has_segments: bool,
    pub segments: Vec<Segment>,
    pub language: String,
    pub seconds: f64,
}

/// A transcript in the form that was asked for.
pub(crate) enum Written {
    Json(JsonTranscript),
    /// With its `Content-Type`.
    Text(&'static str, String),
}

/// A transcript as JSON; `verbose_json` has all of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct JsonTranscript {
    text: String,
    usage: TranscriptUsage,
    #[serde(flatten)]
    verbose: Option<VerboseTranscript>,
}

#[derive(Serialize, JsonSchema)]
struct VerboseTranscript {
    task: &'static str,
    language: String,
    duration: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Vec<TranscriptSegment>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<TranscriptWord>>,
}

#[derive(Serialize, JsonSchema)]
struct TranscriptSegment {
    id: usize,
    seek: u64,
    start: f64,
    end: f64,
    text: String,
    tokens: Vec<u32>,
    temperature: f32,
    avg_logprob: f32,
    compression_ratio: f64,
    no_speech_prob: f32,
}

#[derive(Serialize, JsonSchema)]
struct TranscriptWord {
    word: String,
    start: f64,
    end: f64,
}

/// What a recording costs at OpenAI, where it is counted in seconds.
#[derive(Serialize, JsonSchema)]
pub(super) struct TranscriptUsage {
    r#type: &'static str,
    seconds: f64,
}

impl TranscriptUsage {
    pub fn new(seconds: f64) -> TranscriptUsage {
        TranscriptUsage {
            r#type: "duration",
            seconds: seconds.ceil(),
        }
    }
}

impl Transcript {
    /// Nothing yet.
    pub fn new(request: &TranscriptionRequest, task: Task) -> Transcript {
        Transcript {
            task,
            format: request.format(),
            by_word: request.by_word(),
            has_segments: request.has_segments(),
            segments: Vec::new(),
            language: String::new(),
            seconds: 0.0,
        }
    }

    /// The transcript in the form that was asked for.
    pub fn write(self) -> Written {
        let plain = Written::Text;
        match self.format {
            TranscriptFormat::Json => Written::Json(self.json(None)),
            TranscriptFormat::VerboseJson => Written::Json(self.json(Some(self.verbose()))),
            TranscriptFormat::Text => plain("text/plain; charset=utf-8", self.text() + "\n"),
            TranscriptFormat::Srt => {
                let cues = self.cues().zip(1..).map(|(cue, number)| cue.srt(number));
                plain("application/x-subrip; charset=utf-8", cues.collect())
            }
            TranscriptFormat::Vtt => {
                let cues: String = self.cues().map(|cue| cue.vtt()).collect();
                plain("text/vtt; charset=utf-8", Cue::VTT_HEAD.to_string() + &cues)
            }
        }
    }

    fn text(&self) -> String {
        let texts: Vec<&str> = self.segments.iter().map(|one| &*one.text).collect();
        texts.join(" ")
    }

    fn cues(&self) -> impl Iterator<Item = Cue<'_>> {
        let segments = self.segments.iter();
        segments.flat_map(|segment| segment.cues(self.by_word))
    }

    fn json(&self, verbose: Option<VerboseTranscript>) -> JsonTranscript {
        JsonTranscript {
            text: self.text(),
            usage: TranscriptUsage::new(self.seconds),
            verbose,
        }
    }

    fn verbose(&self) -> VerboseTranscript {
        let segments = self.segments.iter().enumerate().map(TranscriptSegment::of);
        let words = self.segments.iter().flat_map(|segment| &segment.words);
        let words = words.map(|word| TranscriptWord {
            word: word.text.trim().to_string(),
            start: seconds(word.start),
            end: seconds(word.end),
        });
        VerboseTranscript {
            task: self.task.name(),
            language: self.language.clone(),
            duration: self.seconds,
            segments: self.has_segments.then(|| segments.collect()),
            words: self.by_word.then(|| words.collect()),
        }
    }
}

impl IntoResponse for Written {
    fn into_response(self) -> Response {
        match self {
            Written::Json(body) => axum::Json(body).into_response(),
            Written::Text(kind, text) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        }
    }
}

impl Answer for Written {
    fn content(schemas: &mut SchemaGenerator) -> Content {
        let texts = ["text/plain", "application/x-subrip", "text/vtt"];
        let texts = texts.map(|kind| (kind, MediaType::of::<str>(schemas)));
        let json = MediaType::of::<JsonTranscript>(schemas);
        texts
            .into_iter()
            .chain([("application/json", json)])
            .collect()
    }
}

impl TranscriptSegment {
    fn of((id, segment): (usize, &Segment)) -> TranscriptSegment {
        TranscriptSegment {
            id,
            seek: (segment.window * FRAMES).round() as u64,
            start: seconds(segment.start),
            end: seconds(segment.end),
            text: segment.text.clone(),
            tokens: segment.tokens.clone(),
            temperature: segment.temperature,
            avg_logprob: segment.mean_logprob,
            compression_ratio: segment.compression,
            no_speech_prob: segment.no_speech,
        }
    }
}

/// To a thousandth.
fn seconds(time: f64) -> f64 {
    (time * 1000.0).round() / 1000.0
}
