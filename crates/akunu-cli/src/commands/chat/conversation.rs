//! A conversation under way: its messages, and the session that holds them as tokens.

use super::settings::Settings;
use super::turns::Turns;
use super::window::Window;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::running::{Answer, collect, options, rate, read_prompt, stop_name};
use crate::terminal::note;
use akunu_engine::{Fed, Overflow, Session, StopReason};
use akunu_tokenizer::Message;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// What does not change in a conversation.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Whether the oldest turns give way when the context is full.
    pub slides: bool,
    /// Whether answers are shown as JSON objects.
    pub json: bool,
}

/// A conversation with a model.
pub struct Conversation<'m> {
    session: Session<'m>,
    turns: Turns<'m>,
    messages: Vec<Message>,
    window: Window,
    /// How answers are made.
    pub settings: Settings,
    manner: Manner,
    interrupt: Interrupt,
    last: Option<Stats>,
}

/// What the last answer took.
struct Stats {
    seed: u64,
    fed: Fed,
    prefill: Duration,
    answer: Answer,
}

impl<'m> Conversation<'m> {
    /// Nothing has been said yet.
    pub fn new(session: Session<'m>, settings: Settings, manner: Manner) -> Conversation<'m> {
        Conversation {
            turns: Turns::of(session.model()),
            session,
            messages: Vec::new(),
            window: Window::default(),
            settings,
            manner,
            interrupt: Interrupt::listen(),
            last: None,
        }
    }

    /// Tokens that it can hold.
    pub fn context(&self) -> u32 {
        self.session.context()
    }

    /// Looks at the signals that come while it goes on.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// All that was said, and what the model was told before.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Begins anew, with this told to the model before.
    pub fn begin(&mut self, system: Option<String>) {
        let told = system.map(|text| Message::new("system", text));
        self.go_on_with(told.into_iter().collect());
    }

    /// Goes on as if this had been said.
    pub fn go_on_with(&mut self, messages: Vec<Message>) {
        self.messages = messages;
        self.session.clear();
        self.window = Window::default();
        self.last = None;
    }

    /// Forgets what was said, but not what the model was told before.
    pub fn reset(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        messages.retain(|message| message.role == "system");
        self.go_on_with(messages);
    }

    /// Takes the last question back, with its answer; returns it.
    pub fn undo(&mut self) -> Option<String> {
        let is_question = |message: &Message| message.role == "user";
        let at = self.messages.iter().rposition(is_question)?;
        let question = self.messages[at].content.as_str()?.to_string();
        self.messages.truncate(at);
        self.window.look_again();
        Some(question)
    }

    /// Answers the last question again, with another seed.
    pub fn answer_again(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        let before = self.messages.clone();
        let Some(question) = self.undo() else {
            note("there is no question to answer again");
            return Ok(());
        };
        let sampling = &mut self.settings.sampling;
        sampling.seed = sampling.seed.wrapping_add(1);
        if sampling.temperature == 0.0 {
            note("at temp 0 the answer is always the same; /set temp 0.7 makes it vary");
        }
        let answered = self.answer(&question, out);
        if self.messages.len() < before.len() {
            // The answer that was there is better than none.
            self.messages = before;
        }
        answered
    }

    /// Answers one message. Only what is new goes through the model.
    pub fn answer(&mut self, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
        self.interrupt.forget();
        self.messages.push(Message::new("user", text));
        let before = self.window;
        let answered = self.run(out);
        let stats = answered.inspect_err(|_| {
            // What could not be answered was not said.
            self.messages.pop();
            self.window = before;
        })?;
        if self.manner.json {
            serde_json::to_writer(&mut *out, &stats.json())?;
        }
        writeln!(out)?;
        out.flush()?;
        let stop = stats.answer.stop;
        let said = stats.answer.text.trim().to_string();
        self.messages.push(Message::new("assistant", said));
        self.last = Some(stats);
        match stop {
            StopReason::ContextFull => {
                let context = self.session.context();
                note(&format!(
                    "the context of {context} tokens is full: /reset begins anew, --ctx gives more room"
                ));
                Ok(())
            }
            StopReason::Cancelled => Err(Failure::CutShort),
            _ => Ok(()),
        }
    }

    fn run(&mut self, out: &mut dyn Write) -> Result<Stats, Failure> {
        let ids = self.prompt()?;
        let begin = Instant::now();
        let fed = read_prompt(&mut self.session, &ids, &self.interrupt)?;
        let prefill = begin.elapsed();
        let Settings {
            sampling,
            max_tokens,
        } = self.settings;
        let mut options = options(max_tokens, sampling, &self.interrupt);
        options.stop = self.turns.stops();
        // An answer may be longer than what the question leaves: then its own beginning gives way.
        if self.manner.slides && ids.len() <= self.session.context() as usize / 2 {
            options.overflow = Overflow::Shift { keep: ids.len() };
        }
        let generation = self.session.generate(options)?;
        let answer = match self.manner.json {
            true => collect(generation, &mut io::sink())?,
            false => collect(generation, out)?,
        };
        Ok(Stats {
            seed: sampling.seed,
            fed,
            prefill,
            answer,
        })
    }

    /// The conversation as tokens, without what has to be forgotten.
    fn prompt(&mut self) -> Result<Vec<u32>, Failure> {
        let (turns, model) = (&self.turns, self.session.model());
        let encode = |messages: &[Message]| turns.encode(model, messages);
        if !self.manner.slides {
            return encode(&self.messages);
        }
        let context = self.session.context() as usize;
        let room = context - self.settings.max_tokens.min(context / 2);
        let was_whole = self.window.is_whole();
        let ids = self.window.fit(&self.messages, room, encode)?;
        if was_whole && !self.window.is_whole() && ids.len() <= context {
            note(&format!(
                "the context of {context} tokens is full: from here on the oldest turns are \
                 forgotten, --ctx gives more room"
            ));
        }
        Ok(ids)
    }

    /// How the last answer went, in words.
    pub fn stats(&self) -> String {
        let context = self.session.context();
        // The token that was chosen last is not in the context yet.
        let used = self.session.tokens().len().min(context as usize);
        let room = format!("{used} of {context} tokens of context used");
        let Some(last) = &self.last else {
            return format!("{room}; {}", self.settings);
        };
        format!(
            "{room}; the last question: {} tokens read at {:.1} a second, {} known already; the \
             answer: {} tokens at {:.1} a second, seed {}; {}",
            last.fed.processed,
            rate(last.fed.processed, last.prefill),
            last.fed.reused,
            last.answer.ids.len(),
            last.answer.decode_rate(),
            last.seed,
            self.settings,
        )
    }
}

impl Stats {
    /// What scripts read.
    fn json(&self) -> Value {
        let milliseconds = |took: Duration| took.as_secs_f64() * 1e3;
        let Fed { reused, processed } = self.fed;
        json!({
            "text": self.answer.text.trim(),
            "stop": stop_name(self.answer.stop),
            "tokens": self.answer.ids.len(),
            "prompt_tokens": reused + processed,
            "reused_tokens": reused,
            "seed": self.seed,
            "timings": {
                "prefill_ms": milliseconds(self.prefill),
                "prefill_tok_s": rate(processed, self.prefill),
                "first_token_ms": milliseconds(self.prefill + self.answer.first),
                "decode_ms": milliseconds(self.answer.rest),
                "decode_tok_s": self.answer.decode_rate(),
            },
        })
    }
}
