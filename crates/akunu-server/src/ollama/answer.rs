//! What `/api/chat` and `/api/generate` answer: objects that differ in where the text is.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;

use super::OllamaError;
use super::time::time;
use crate::answers::{Finish, Happening, Piece, Usage, Whole};
use crate::clock::now;
use crate::error::ApiError;
use crate::stream::{Framing, Writer};

/// An answer, or a part of one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Ollama{S}Answer")]
pub(crate) struct Answer<S> {
    model: String,
    created_at: String,
    #[serde(flatten)]
    said: S,
    done: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    done_reason: Option<DoneReason>,
    /// Where an answer ends.
    #[serde(flatten)]
    took: Option<Took>,
}

/// A line of a stream.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Ollama{S}Line")]
pub(crate) enum Line<S> {
    Part(Answer<S>),
    Failed(OllamaError),
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum DoneReason {
    Stop,
    Length,
    /// The model was loaded, and nothing was asked.
    Load,
    /// It was unloaded.
    Unload,
}

/// Counts of tokens, and times in nanoseconds.
#[derive(Serialize, JsonSchema)]
struct Took {
    total_duration: u64,
    load_duration: u64,
    prompt_eval_count: usize,
    prompt_eval_duration: u64,
    eval_count: usize,
    eval_duration: u64,
}

impl Took {
    fn now(usage: &Usage) -> Took {
        let now = Instant::now();
        let first = usage.first.unwrap_or(now);
        let nanoseconds = |from: Instant, to: Instant| {
            let took = to.saturating_duration_since(from).as_nanos();
            u64::try_from(took).unwrap_or(u64::MAX)
        };
        Took {
            total_duration: nanoseconds(usage.since, now),
            load_duration: 0,
            prompt_eval_count: usage.prompt,
            prompt_eval_duration: nanoseconds(usage.since, first),
            eval_count: usage.completion,
            eval_duration: nanoseconds(first, now),
        }
    }
}

/// What is said, in the shape of an endpoint.
pub(crate) trait Said:
    From<Whole> + Serialize + JsonSchema + Send + Unpin + 'static
{
}

/// Writes the answers of a model.
pub(crate) struct Lines<S> {
    model: String,
    finish: Finish,
    shape: std::marker::PhantomData<S>,
}

impl<S: Said> Lines<S> {
    pub fn new(model: String) -> Lines<S> {
        Lines {
            model,
            finish: Finish::End,
            shape: std::marker::PhantomData,
        }
    }

    /// The answer to nothing, by which Ollama's clients load a model or unload it.
    pub fn loaded(&self, is_unloaded: bool) -> Answer<S> {
        Answer {
            done: true,
            done_reason: Some(match is_unloaded {
                true => DoneReason::Unload,
                false => DoneReason::Load,
            }),
            ..self.part(Whole::default())
        }
    }

    fn part(&self, whole: Whole) -> Answer<S> {
        Answer {
            model: self.model.clone(),
            created_at: time(now()),
            said: whole.into(),
            done: false,
            done_reason: None,
            took: None,
        }
    }

    fn last(&self, whole: Whole, finish: Finish, usage: &Usage) -> Answer<S> {
        let reason = match finish {
            Finish::Length => DoneReason::Length,
            Finish::End | Finish::StopText | Finish::Calls => DoneReason::Stop,
        };
        Answer {
            done: true,
            done_reason: Some(reason),
            took: Some(Took::now(usage)),
            ..self.part(whole)
        }
    }
}

impl<S: Said> Writer for Lines<S> {
    type Whole = Answer<S>;
    type Event = Line<S>;
    const FRAMING: Framing = Framing::Lines;

    fn whole(self, answers: Vec<Whole>, usage: &Usage) -> Answer<S> {
        let whole = answers.into_iter().next().unwrap_or_default();
        let finish = whole.finish.unwrap_or(Finish::End);
        self.last(whole, finish, usage)
    }

    fn begin(&mut self, _: &Usage) -> Vec<Line<S>> {
        Vec::new()
    }

    fn write(&mut self, Happening { what, .. }: Happening) -> Vec<Line<S>> {
        let mut part = Whole::default();
        match what {
            Piece::Text(text) => part.text = text,
            Piece::Reasoning(text) => part.reasoning = text,
            // A call is an object here, which is written when it is whole.
            Piece::Begun(_) | Piece::Arguments(_) => return Vec::new(),
            Piece::Call(call) => part.calls.push(call),
            Piece::Ended(finish) => {
                self.finish = finish;
                return Vec::new();
            }
        }
        vec![Line::Part(self.part(part))]
    }

    fn end(&mut self, usage: &Usage) -> Vec<Line<S>> {
        vec![Line::Part(self.last(Whole::default(), self.finish, usage))]
    }

    fn fail(&mut self, error: &ApiError) -> Line<S> {
        Line::Failed(error.into())
    }
}
