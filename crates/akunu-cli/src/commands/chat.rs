//! `chat`: asks a model, once or line by line.

mod conversation;
mod lines;
mod slash;
mod turns;

use super::Run;
use crate::failure::Failure;
use crate::interrupt;
use crate::running::ModelArgs;
use crate::sampling::SamplingArgs;
use crate::terminal::note;
use akunu_engine::EngineError;
use clap::Parser;
use conversation::Conversation;
use lines::{Line, Lines};
use slash::Slash;
use std::io::Write;

/// Ask a model, once or line by line
///
/// With a PROMPT it answers and exits. Without one it reads a line, answers, and goes on with the next
/// in the same conversation; /help lists what else can be typed. Ctrl-C stops an answer, Ctrl-D leaves.
#[derive(Parser)]
#[command(name = "chat")]
pub struct Chat {
    /// What to ask
    prompt: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    /// What the model is told before the conversation
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// At most this many tokens an answer
    #[arg(short, value_name = "N", default_value_t = 512)]
    n: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
}

impl Run for Chat {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let loaded = self.model.load()?;
        let session = loaded.model.session(self.model.session())?;
        let cancel = interrupt::cancel_flag();
        let sampling = self.sampling.sampling();
        let mut talk = Conversation::new(session, sampling, self.n, cancel);
        talk.begin(self.system);
        if let Some(prompt) = &self.prompt {
            return talk.answer(prompt, out);
        }
        let mut lines = Lines::open()?;
        if lines.is_interactive() {
            let name = loaded.model.path().file_stem().unwrap_or_default();
            let (name, context) = (name.to_string_lossy(), talk.context());
            note(&format!(
                "{name} on {}, {context} tokens of context; /help lists the commands",
                loaded.device
            ));
        }
        loop {
            match lines.next()? {
                Line::End => return Ok(()),
                Line::Text(text) if text.trim().is_empty() => {}
                Line::Text(text) => match Slash::parse(text.trim()) {
                    None => forgive(talk.answer(&text, out))?,
                    Some(Ok(Slash::Quit)) => return Ok(()),
                    Some(Ok(command)) => forgive(command.run(&mut talk))?,
                    Some(Err(wrong)) => note(&wrong),
                },
            }
        }
    }
}

/// A line that cannot be done is told, and the conversation goes on; a broken device or output ends it.
fn forgive(done: Result<(), Failure>) -> Result<(), Failure> {
    match done {
        Err(Failure::Engine(EngineError::ContextFull { needed, context })) => {
            note(&format!(
                "the conversation has {needed} tokens and the context holds {context}: /reset begins \
                 anew, --ctx gives more room"
            ));
            Ok(())
        }
        Err(
            error @ (Failure::Write { .. }
            | Failure::Read { .. }
            | Failure::NotAConversation { .. }
            | Failure::Tokenizer(_)),
        ) => {
            note(&error.to_string());
            Ok(())
        }
        done => done,
    }
}
