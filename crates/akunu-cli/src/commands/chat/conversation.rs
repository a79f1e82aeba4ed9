//! A conversation under way: its messages, and the session that holds them as tokens.

use super::turns::Turns;
use crate::failure::Failure;
use crate::running::{Answer, collect, options, rate, read_text};
use crate::terminal::note;
use akunu_engine::{CancelFlag, Fed, Sampling, Session, StopReason};
use akunu_tokenizer::Message;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A conversation with a model.
pub struct Conversation<'m> {
    session: Session<'m>,
    turns: Turns<'m>,
    messages: Vec<Message>,
    sampling: Sampling,
    max_tokens: usize,
    cancel: CancelFlag,
    last: Option<Stats>,
}

/// What the last answer took.
struct Stats {
    fed: Fed,
    prefill: Duration,
    n_answer: usize,
    decode_rate: f64,
}

impl<'m> Conversation<'m> {
    /// Nothing has been said yet.
    pub fn new(
        session: Session<'m>,
        sampling: Sampling,
        max_tokens: usize,
        cancel: CancelFlag,
    ) -> Conversation<'m> {
        Conversation {
            turns: Turns::of(session.model()),
            session,
            messages: Vec::new(),
            sampling,
            max_tokens,
            cancel,
            last: None,
        }
    }

    /// Tokens that it can hold.
    pub fn context(&self) -> u32 {
        self.session.context()
    }

    /// Begins anew, with this told to the model before.
    pub fn begin(&mut self, system: Option<String>) {
        self.session.clear();
        self.last = None;
        self.messages = system
            .into_iter()
            .map(|text| Message::new("system", text))
            .collect();
    }

    /// Forgets what was said, but not what the model was told before.
    pub fn reset(&mut self) {
        let is_system = |message: &Message| message.role == "system";
        self.messages.retain(is_system);
        self.session.clear();
        self.last = None;
    }

    /// Answers one message. Only what is new goes through the model.
    pub fn answer(&mut self, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
        self.cancel.reset();
        self.messages.push(Message::new("user", text));
        let answer = self.run(out).inspect_err(|_| {
            // What could not be answered was not said.
            self.messages.pop();
        })?;
        writeln!(out)?;
        out.flush()?;
        if answer.stop == StopReason::ContextFull {
            let context = self.session.context();
            note(&format!(
                "the context of {context} tokens is full: /reset begins anew, --ctx gives more room"
            ));
        }
        let said = answer.text.trim().to_string();
        self.messages.push(Message::new("assistant", said));
        Ok(())
    }

    fn run(&mut self, out: &mut dyn Write) -> Result<Answer, Failure> {
        let ids = self.turns.encode(self.session.model(), &self.messages)?;
        let begin = Instant::now();
        let fed = self.session.feed(&ids)?;
        let prefill = begin.elapsed();
        let mut options = options(self.max_tokens, self.sampling, &self.cancel);
        options.stop = self.turns.stops();
        let answer = collect(self.session.generate(options)?, out)?;
        self.last = Some(Stats {
            fed,
            prefill,
            n_answer: answer.ids.len(),
            decode_rate: answer.decode_rate(),
        });
        Ok(answer)
    }

    /// How the last answer went, in words.
    pub fn stats(&self) -> String {
        let (used, context) = (self.session.tokens().len(), self.session.context());
        let room = format!("{used} of {context} tokens of context used");
        let Some(last) = &self.last else {
            return room;
        };
        format!(
            "{room}; the last question: {} tokens read at {:.1} a second, {} known already; the \
             answer: {} tokens at {:.1} a second",
            last.fed.processed,
            rate(last.fed.processed, last.prefill),
            last.fed.reused,
            last.n_answer,
            last.decode_rate,
        )
    }

    /// Writes the messages to a file, as JSON.
    pub fn save(&self, path: &Path) -> Result<(), Failure> {
        let failed = |source| Failure::Write {
            path: path.to_path_buf(),
            source,
        };
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let mut file =
            tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        serde_json::to_writer_pretty(&mut file, &self.messages)
            .map_err(|error| failed(error.into()))?;
        writeln!(file).map_err(failed)?;
        let kept = file.persist(path).map_err(|error| failed(error.error))?;
        drop(kept);
        note(&format!(
            "{} messages saved to {}",
            self.messages.len(),
            path.display()
        ));
        Ok(())
    }

    /// Goes on with the messages of a file.
    pub fn load(&mut self, path: &Path) -> Result<(), Failure> {
        let wrong = |why: String| Failure::NotAConversation {
            path: path.to_path_buf(),
            why,
        };
        let text = read_text(path)?;
        let messages: Vec<Message> =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if let Some(odd) = messages.iter().find(|m| m.content.as_str().is_none()) {
            return Err(wrong(format!("a message of `{}` has no text", odd.role)));
        }
        self.begin(None);
        self.messages = messages;
        let n = self.messages.len();
        note(&format!("{n} messages loaded from {}", path.display()));
        Ok(())
    }
}
