//! Answers as llama.cpp's server writes them.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;

use crate::answers::{Finish, Happening, Likely, Piece, Scored, Usage, Whole};
use crate::error::ApiError;
use crate::openai::ErrorBody;
use crate::stream::{Framing, Writer};

/// An answer, or a part of one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PlainAnswer")]
pub(crate) struct Answer {
    index: usize,
    content: String,
    /// Whether it ends here.
    stop: bool,
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_probabilities: Option<Vec<PlainScored>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_type: Option<StopType>,
    #[serde(flatten)]
    took: Option<PlainCounts>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StopType {
    Eos,
    Word,
    Limit,
}

/// Counts of all answers to a request together.
#[derive(Clone, Copy, Serialize, JsonSchema)]
struct PlainCounts {
    tokens_evaluated: usize,
    tokens_cached: usize,
    tokens_predicted: usize,
    truncated: bool,
    timings: Timings,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
struct Timings {
    prompt_n: usize,
    prompt_ms: f64,
    prompt_per_second: f64,
    predicted_n: usize,
    predicted_ms: f64,
    predicted_per_second: f64,
}

#[derive(Serialize, JsonSchema)]
struct PlainScored {
    #[serde(flatten)]
    chosen: PlainToken,
    top_logprobs: Vec<PlainToken>,
}

#[derive(Serialize, JsonSchema)]
struct PlainToken {
    id: u32,
    token: String,
    bytes: Vec<u8>,
    logprob: f32,
}

/// One answer or a list of them.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum PlainBody {
    One(Box<Answer>),
    Many(Vec<Answer>),
}

/// An event of a stream.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum PlainEvent {
    Part(Box<Answer>),
    Failed(ErrorBody),
}

/// Writes the answers.
pub(crate) struct Plain {
    model: String,
    /// The ends of answers, which wait for the counts, and the tokens that came with them.
    ends: Vec<(usize, Finish, Vec<Scored>)>,
}

impl Plain {
    pub fn new(model: String) -> Plain {
        Plain {
            model,
            ends: Vec::new(),
        }
    }

    fn part(&self, index: usize, content: String, scored: &[Scored]) -> Answer {
        Answer {
            index,
            content,
            stop: false,
            model: self.model.clone(),
            completion_probabilities: (!scored.is_empty())
                .then(|| scored.iter().map(PlainScored::from).collect()),
            stop_type: None,
            took: None,
        }
    }

    fn ended(&self, part: Answer, finish: Option<Finish>, usage: &Usage) -> Answer {
        Answer {
            stop: true,
            stop_type: finish.map(|finish| match finish {
                Finish::StopText => StopType::Word,
                Finish::Length => StopType::Limit,
                Finish::End | Finish::Calls => StopType::Eos,
            }),
            took: Some(usage.into()),
            ..part
        }
    }
}

impl Writer for Plain {
    type Whole = PlainBody;
    type Event = PlainEvent;
    const FRAMING: Framing = Framing::Bare;

    fn whole(self, answers: Vec<Whole>, usage: &Usage) -> PlainBody {
        let answers = answers.into_iter().enumerate().map(|(index, whole)| {
            let part = self.part(index, whole.text, &whole.scored);
            self.ended(part, whole.finish, usage)
        });
        let mut answers: Vec<Answer> = answers.collect();
        match answers.pop() {
            Some(only) if answers.is_empty() => PlainBody::One(Box::new(only)),
            last => {
                answers.extend(last);
                PlainBody::Many(answers)
            }
        }
    }

    fn begin(&mut self, _: &Usage) -> Vec<PlainEvent> {
        Vec::new()
    }

    fn write(&mut self, happening: Happening) -> Vec<PlainEvent> {
        let text = match happening.what {
            Piece::Text(text) | Piece::Reasoning(text) => text,
            Piece::Ended(finish) => {
                self.ends.push((happening.choice, finish, happening.scored));
                return Vec::new();
            }
            // Plain text is not read as calls.
            Piece::Begun(_) | Piece::Arguments(_) | Piece::Call(_) => return Vec::new(),
        };
        let part = self.part(happening.choice, text, &happening.scored);
        vec![PlainEvent::Part(Box::new(part))]
    }

    fn end(&mut self, usage: &Usage) -> Vec<PlainEvent> {
        let ends = self.ends.iter().map(|(index, finish, scored)| {
            let part = self.part(*index, String::new(), scored);
            PlainEvent::Part(Box::new(self.ended(part, Some(*finish), usage)))
        });
        ends.collect()
    }

    fn fail(&mut self, error: &ApiError) -> PlainEvent {
        PlainEvent::Failed(error.into())
    }
}

impl From<&Scored> for PlainScored {
    fn from(scored: &Scored) -> PlainScored {
        PlainScored {
            chosen: PlainToken::from(&scored.chosen),
            top_logprobs: scored.best.iter().map(PlainToken::from).collect(),
        }
    }
}

impl From<&Likely> for PlainToken {
    fn from(token: &Likely) -> PlainToken {
        PlainToken {
            id: token.id,
            token: String::from_utf8_lossy(&token.bytes).into_owned(),
            bytes: token.bytes.clone(),
            // JSON has no infinity.
            logprob: token.logprob.max(f32::MIN),
        }
    }
}

impl From<&Usage> for PlainCounts {
    fn from(usage: &Usage) -> PlainCounts {
        let now = Instant::now();
        let first = usage.first.unwrap_or(now);
        let (reading, writing) = (first - usage.since, now - first);
        let rate = |n: usize, seconds: f64| {
            if seconds > 0.0 {
                n as f64 / seconds
            } else {
                0.0
            }
        };
        let n_read = usage.prompt.saturating_sub(usage.cached);
        PlainCounts {
            tokens_evaluated: usage.prompt,
            tokens_cached: usage.cached,
            tokens_predicted: usage.completion,
            truncated: false,
            timings: Timings {
                prompt_n: n_read,
                prompt_ms: 1e3 * reading.as_secs_f64(),
                prompt_per_second: rate(n_read, reading.as_secs_f64()),
                predicted_n: usage.completion,
                predicted_ms: 1e3 * writing.as_secs_f64(),
                predicted_per_second: rate(usage.completion, writing.as_secs_f64()),
            },
        }
    }
}
