//! What was said, as the body of a response.

use akunu::{Cue, Segment};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::form::{Asked, Format, Task};

/// Frames of a second, in which OpenAI counts where a window begins.
const FRAMES: f64 = 100.0;

/// All that was said.
pub(super) struct Transcript {
    task: Task,
    format: Format,
    by_word: bool,
    has_segments: bool,
    pub segments: Vec<Segment>,
    pub language: String,
    pub seconds: f64,
}

impl Transcript {
    pub fn new(asked: Asked) -> Transcript {
        Transcript {
            task: asked.task,
            format: asked.format,
            by_word: asked.options.words,
            has_segments: asked.has_segments,
            segments: Vec::new(),
            language: String::new(),
            seconds: 0.0,
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

    fn verbose(&self) -> Value {
        let mut body = json!({
            "task": self.task.name(),
            "language": self.language,
            "duration": self.seconds,
            "text": self.text(),
            "usage": usage(self.seconds),
        });
        if self.has_segments {
            let segments = self.segments.iter().enumerate().map(segment);
            body["segments"] = segments.collect();
        }
        if self.by_word {
            let words = self.segments.iter().flat_map(|segment| &segment.words);
            let words = words.map(|word| {
                json!({
                    "word": word.text.trim(),
                    "start": seconds(word.start),
                    "end": seconds(word.end),
                })
            });
            body["words"] = words.collect();
        }
        body
    }
}

impl IntoResponse for Transcript {
    fn into_response(self) -> Response {
        let plain = |kind: &'static str, text: String| {
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        };
        match self.format {
            Format::Json => {
                let body = json!({"text": self.text(), "usage": usage(self.seconds)});
                axum::Json(body).into_response()
            }
            Format::VerboseJson => axum::Json(self.verbose()).into_response(),
            Format::Text => plain("text/plain; charset=utf-8", self.text() + "\n"),
            Format::Srt => {
                let cues = self.cues().zip(1..).map(|(cue, number)| cue.srt(number));
                plain("application/x-subrip; charset=utf-8", cues.collect())
            }
            Format::Vtt => {
                let cues: String = self.cues().map(|cue| cue.vtt()).collect();
                plain("text/vtt; charset=utf-8", Cue::VTT_HEAD.to_string() + &cues)
            }
        }
    }
}

/// What a recording costs at OpenAI, where it is counted in seconds.
pub(super) fn usage(seconds: f64) -> Value {
    json!({"type": "duration", "seconds": seconds.ceil()})
}

fn segment((id, segment): (usize, &Segment)) -> Value {
    json!({
        "id": id,
        "seek": (segment.window * FRAMES).round() as u64,
        "start": seconds(segment.start),
        "end": seconds(segment.end),
        "text": segment.text,
        "tokens": segment.tokens,
        "temperature": segment.temperature,
        "avg_logprob": segment.mean_logprob,
        "compression_ratio": segment.compression,
        "no_speech_prob": segment.no_speech,
    })
}

/// To a thousandth.
fn seconds(time: f64) -> f64 {
    (time * 1000.0).round() / 1000.0
}
