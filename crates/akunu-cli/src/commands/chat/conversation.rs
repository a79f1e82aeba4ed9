//! A conversation at the command line: what is asked, shown, and told about it.

use super::pictures::Pictures;
use super::settings::{self, Settings};
use crate::failure::Failure;
use crate::guided::speculated_json;
use crate::interrupt::Interrupt;
use crate::logprobs;
use crate::running::{rate, watched};
use crate::terminal::{note, shown};
use akunu::{
    Chat, ChatOptions, EngineError, Error, Fed, Message, Model, Reply, ReplyStats, StopReason,
};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// How answers are shown.
#[derive(Clone, Copy)]
pub struct Shown {
    /// Whether they are JSON objects.
    pub json: bool,
    /// Whether commands can follow an answer, such as /continue.
    pub is_conversation: bool,
}

/// A conversation with a model.
pub struct Conversation {
    model: Model,
    chat: Chat,
    settings: Settings,
    shown: Shown,
    interrupt: Interrupt,
    pictures: Option<Pictures>,
}

impl Conversation {
    /// Nothing has been said yet. That a model does not say how it wants to be asked is told.
    pub fn new(
        model: &Model,
        options: ChatOptions,
        settings: Settings,
        shown: Shown,
    ) -> Result<Conversation, Failure> {
        if model.chat_template().is_none() {
            note(&format!(
                "{} has no chat template: it is asked in plain turns of User: and Assistant:",
                model.path().display()
            ));
        }
        let interrupt = Interrupt::listen();
        let cancel = interrupt.flag().clone();
        Ok(Conversation {
            model: model.clone(),
            chat: model.chat_with(ChatOptions { cancel, ..options })?,
            settings,
            shown,
            interrupt,
            pictures: None,
        })
    }

    /// The same with images for its questions.
    pub fn with_pictures(self, pictures: Pictures) -> Conversation {
        Conversation {
            pictures: Some(pictures),
            ..self
        }
    }

    /// Adds an image to the next question; returns how many tokens it takes.
    pub fn show(&mut self, file: &Path) -> Result<usize, Failure> {
        match &mut self.pictures {
            Some(pictures) => pictures.show(file),
            None => Ok(0),
        }
    }

    /// Tokens that it can hold.
    pub fn context(&self) -> u32 {
        self.chat.session().context()
    }

    /// Looks at the signals that come while it goes on.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// All that was said, and what the model was told before.
    pub fn messages(&self) -> &[Message] {
        self.chat.messages()
    }

    /// What was said, to be changed.
    pub fn chat(&mut self) -> &mut Chat {
        &mut self.chat
    }

    /// Sets a value of /set. Returns the values as text, or what is wrong.
    pub fn set(&mut self, text: &str) -> Result<String, String> {
        settings::set(&mut self.settings, self.chat.options_mut(), text)
    }

    /// Goes on with the last answer.
    pub fn resume(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        self.interrupt.forget();
        let told = Told::before(self);
        let resumed = watched(&self.interrupt, |watch| self.chat.resume_watched(watch));
        let reply = match resumed {
            Err(error @ Error::NothingToResume) => {
                note(&error.to_string());
                return Ok(());
            }
            resumed => read(resumed)?,
        };
        told.show(reply, out)
    }

    /// Answers the last question again, with another seed.
    pub fn answer_again(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        self.interrupt.forget();
        let is_greedy = self.chat.options().sampling.temperature == 0.0;
        let told = Told::before(self);
        let again = watched(&self.interrupt, |watch| self.chat.regenerate_watched(watch));
        let reply = match again {
            Err(Error::NothingAsked) => {
                note("there is no question to answer again");
                return Ok(());
            }
            again => read(again)?,
        };
        if is_greedy {
            note("at temp 0 the answer is always the same; /set temp 0.7 makes it vary");
        }
        told.show(reply, out)
    }

    /// Answers one message.
    pub fn answer(&mut self, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
        self.interrupt.forget();
        let told = Told::before(self);
        let images = self.pictures.as_ref().map_or(&[][..], Pictures::waiting);
        let reply = watched(&self.interrupt, |watch| match images {
            [] => self.chat.ask_watched(text, watch),
            images => self.chat.ask_with_watched(text, images, watch),
        });
        let answered = told.show(read(reply)?, out);
        self.pictures.iter_mut().for_each(Pictures::clear);
        answered
    }

    /// Tokens, speed and seed of the last answer, as text.
    pub fn stats(&self) -> String {
        let context = self.context();
        // The token that was chosen last is not in the context yet.
        let used = self.chat.session().tokens().len().min(context as usize);
        let room = format!("{used} of {context} tokens of context used");
        let settings = settings::in_words(self.chat.options());
        let Some(last) = self.chat.last() else {
            return format!("{room}; {settings}");
        };
        format!(
            "{room}; the last question: {} tokens read at {:.1} a second, {} known already; the \
             answer: {} tokens at {:.1} a second, seed {}; {settings}",
            last.prompt.processed,
            rate(last.prompt.processed, last.reading),
            last.prompt.reused,
            last.tokens,
            decode_rate(last),
            last.seed,
        )
    }
}

/// A reply whose question was read.
fn read(reply: Result<Reply<'_>, Error>) -> Result<Reply<'_>, Failure> {
    reply.map_err(|error| match error {
        Error::Engine(EngineError::Cancelled { .. }) => Failure::Interrupted,
        error => error.into(),
    })
}

/// How an answer is told.
struct Told {
    shown: Shown,
    context: u32,
    /// Whether the model saw all that was said before.
    was_whole: bool,
    model: Model,
}

impl Told {
    fn before(talk: &Conversation) -> Told {
        Told {
            shown: talk.shown,
            context: talk.context(),
            was_whole: talk.chat.n_forgotten() == 0,
            model: talk.model.clone(),
        }
    }

    /// Shows a reply as it comes, and what is to be said about it.
    fn show(&self, mut reply: Reply<'_>, out: &mut dyn Write) -> Result<(), Failure> {
        let context = self.context;
        if self.was_whole && reply.n_forgotten() > 0 {
            note(&format!(
                "the context of {context} tokens is full: from here on the oldest turns are \
                 forgotten, --ctx gives more room"
            ));
        }
        for piece in reply.by_ref() {
            let piece = piece?;
            if !self.shown.json {
                write!(out, "{}", shown(&piece))?;
                out.flush()?;
            }
        }
        let text = reply.text().trim().to_string();
        let thought = reply.thought().trim().to_string();
        let logprobs = (!reply.tokens().is_empty())
            .then(|| logprobs::list(reply.tokens(), self.model.tokenizer()));
        let stats = reply.finish();
        if self.shown.json {
            let mut object = as_json(&text, &stats);
            if !thought.is_empty() {
                object["reasoning"] = thought.into();
            }
            if let Some(logprobs) = logprobs {
                object["logprobs"] = logprobs;
            }
            serde_json::to_writer(&mut *out, &object)?;
        }
        writeln!(out)?;
        out.flush()?;
        if let Some(why) = self.why_cut(&stats) {
            note(&why);
        }
        match stats.stop {
            Some(StopReason::Cancelled) => Err(Failure::CutShort),
            _ => Ok(()),
        }
    }

    /// One line about an answer that the model did not end itself, with what helps.
    fn why_cut(&self, stats: &ReplyStats) -> Option<String> {
        let (context, n) = (self.context, stats.tokens);
        let command = |text: &'static str| match self.shown.is_conversation {
            true => text,
            false => "",
        };
        Some(match stats.stop? {
            StopReason::MaxTokens => format!(
                "the answer was cut after {n} tokens: {}a larger -n allows more",
                command("/continue goes on, ")
            ),
            StopReason::ContextFull => format!(
                "the answer was cut, because the context of {context} tokens is full: {}a larger --ctx gives more room",
                command("/continue makes room and goes on, ")
            ),
            StopReason::Loop => format!(
                "the answer was stopped, because it only repeats itself: {}--no-loop-stop lets it go on",
                command("/regen tries again, ")
            ),
            _ => return None,
        })
    }
}

/// Tokens a second, the first one apart: that is chosen from what the question gave.
fn decode_rate(stats: &ReplyStats) -> f64 {
    rate(stats.tokens.saturating_sub(1), stats.rest)
}

/// What scripts read.
fn as_json(text: &str, stats: &ReplyStats) -> Value {
    let milliseconds = |took: Duration| took.as_secs_f64() * 1e3;
    let Fed {
        reused, processed, ..
    } = stats.prompt;
    json!({
        "text": text,
        "stop": stats.stop.map(StopReason::name),
        "tokens": stats.tokens,
        "prompt_tokens": reused + processed,
        "reused_tokens": reused,
        "seed": stats.seed,
        "speculation": speculated_json(&stats.speculated),
        "timings": {
            "prefill_ms": milliseconds(stats.reading),
            "prefill_tok_s": rate(processed, stats.reading),
            "first_token_ms": milliseconds(stats.reading + stats.first),
            "decode_ms": milliseconds(stats.rest),
            "decode_tok_s": decode_rate(stats),
        },
    })
}
