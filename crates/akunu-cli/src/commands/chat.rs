//! `chat`: asks a model, once or line by line.

mod conversation;
mod editing;
mod lines;
mod pictures;
mod quoted;
mod saved;
mod settings;
mod slash;

use super::Run;
use crate::adapters::AdapterArgs;
use crate::failure::Failure;
use crate::guided::{GrammarArgs, SpeculationArgs};
use crate::input::{self, read_input};
use crate::kept::{self, KeptArgs};
use crate::limit::{Limit, limit};
use crate::loops::LoopArgs;
use crate::models;
use crate::running::{Loaded, ModelArgs};
use crate::sampling::{ListArgs, SamplingArgs, logprobs};
use crate::terminal::note;
use crate::typed_ahead::TypedAhead;
use akunu::{ChatOptions, EngineError, LOOP_WINDOW, Model};
use clap::{Parser, ValueEnum};
use conversation::{Conversation, Shown};
use lines::{Line, Lines};
use pictures::ImageArgs;
use settings::Settings;
use slash::Slash;
use std::io::{self, IsTerminal, Write};

/// Ask a model, once or line by line
///
/// With a PROMPT it answers once and exits; piped text is added to the prompt, or is the question if there
/// is none. Without either it starts a conversation, in which each line is a question: /help lists the
/// commands, and """ begins and ends a question of several lines. Ctrl-C stops an answer, Ctrl-D leaves.
///
/// Tokens are drawn as the model's own files suggest; --temp 0 gives the same answer every time.
#[derive(Parser)]
#[command(name = "chat")]
pub struct Chat {
    /// What to ask
    #[arg(conflicts_with = "lines")]
    prompt: Option<String>,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    images: ImageArgs,
    #[command(flatten)]
    adapters: AdapterArgs,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Maximum number of tokens of an answer; -1: no limit, and a full context forgets the beginning of the answer [default:
    /// what is left of the context]
    #[arg(short, value_name = "N", allow_negative_numbers = true, value_parser = limit)]
    n: Option<Limit>,
    #[command(flatten)]
    loops: LoopArgs,
    /// Take each line of piped text as a question or a command, in one conversation
    #[arg(long)]
    lines: bool,
    /// What happens when the context is full
    #[arg(long, value_enum, default_value = "slide")]
    overflow: OnOverflow,
    /// Print one JSON object for each answer: text, tokens, seed, timings and why it ended
    #[arg(long)]
    json: bool,
    /// Add the log probabilities of the tokens of an answer, and of the N best ones, to --json
    #[arg(long, value_name = "N", value_parser = logprobs, requires = "json")]
    logprobs: Option<u32>,
    #[command(flatten)]
    kept: KeptArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    grammar: GrammarArgs,
    #[command(flatten)]
    speculation: SpeculationArgs,
    #[command(flatten)]
    lists: ListArgs,
}

/// What happens when the context is full.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnOverflow {
    /// Forget the oldest turns and continue; the system prompt stays
    Slide,
    /// End the answer; /reset starts again
    Stop,
}

impl Run for Chat {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let question = self.question()?;
        let is_person = question.is_none() && lines::is_person();
        // What is typed while the model loads is the first question.
        let _typed_ahead = is_person.then(TypedAhead::keep);
        let loaded = self.model.open(self.speculation.uses_mtp())?;
        self.kept.keep(&loaded.model);
        let shown = Shown {
            json: self.json,
            is_conversation: question.is_none(),
        };
        let mut talk = self.conversation(&loaded, shown)?;
        let done = match question {
            Some(question) => talk.answer(&question, out),
            None => {
                if is_person {
                    self.welcome(&loaded, &talk);
                }
                converse(&mut talk, &loaded.model, out)
            }
        };
        kept::finish(&loaded.model);
        done
    }
}

impl Chat {
    /// The only question, if this is no conversation.
    fn question(&self) -> Result<Option<String>, Failure> {
        let is_piped = !self.lines && !io::stdin().is_terminal();
        let piped = match is_piped {
            true => read_input(input::PROMPT)?,
            false => String::new(),
        };
        let question = match (&self.prompt, piped.trim_end()) {
            (None, _) if !is_piped => return Ok(None),
            (None, piped) => piped.to_string(),
            (Some(prompt), "") => prompt.clone(),
            (Some(prompt), piped) => format!("{prompt}\n\n{piped}"),
        };
        match question.trim().is_empty() {
            true => Err(Failure::NothingAsked),
            false => Ok(Some(question)),
        }
    }

    fn conversation(&self, loaded: &Loaded, shown: Shown) -> Result<Conversation, Failure> {
        let suggested = loaded.model.suggested_sampling();
        let options = ChatOptions {
            system: self.system.clone(),
            context: self.model.ctx,
            max_tokens: self.n.map(|limit| limit.0),
            loop_window: self.loops.window(Some(LOOP_WINDOW)),
            sampling: self.sampling.for_chat(suggested),
            logit_bias: self.lists.logit_bias(),
            dry_breakers: self.lists.dry_breakers(),
            logprobs: self.logprobs,
            slides: self.overflow == OnOverflow::Slide,
            adapters: self.adapters.adapters(&loaded.model)?,
            grammar: self.grammar.grammar(&loaded.model)?,
            speculation: self.speculation.speculation(&self.model, &loaded.model)?,
            ..ChatOptions::default()
        };
        let settings = Settings::new(suggested, self.sampling.options());
        let (device, threads) = (&self.model.device, self.model.threads);
        let pictures = self.images.open(loaded, device, threads)?;
        let talk = Conversation::new(&loaded.model, options, settings, shown)?;
        Ok(talk.with_pictures(pictures))
    }

    /// Says whom one talks to.
    fn welcome(&self, loaded: &Loaded, talk: &Conversation) {
        let name = loaded.model.path().file_stem().unwrap_or_default();
        let (name, context) = (name.to_string_lossy(), talk.context());
        note(&format!(
            "{name} on {}, {context} tokens of context; /help lists the commands",
            loaded.device
        ));
        if self.model.model == models::DEFAULT {
            note(models::LARGER);
        }
    }
}

/// Answers line by line, until there are no more.
fn converse(talk: &mut Conversation, model: &Model, out: &mut dyn Write) -> Result<(), Failure> {
    let mut lines = Lines::open()?;
    let mut was_answered = false;
    loop {
        let next = || lines.next(was_answered);
        let line = talk.interrupt().while_waiting(next)?;
        let done = match line {
            Line::End => return Ok(()),
            Line::Quoted(text) => talk.answer(&text, out),
            Line::Typed(text) if text.trim().is_empty() => continue,
            Line::Typed(text) => match Slash::parse(text.trim()) {
                None => talk.answer(&text, out),
                Some(Ok(Slash::Quit)) => return Ok(()),
                Some(Ok(command)) => command.run(talk, &mut lines, out),
                Some(Err(wrong)) => {
                    note(&wrong);
                    Ok(())
                }
            },
        };
        was_answered = done.is_ok();
        kept::save(model);
        forgive(done, talk)?;
    }
}

/// A line that cannot be done is told, and the conversation goes on; a broken device or output ends it.
fn forgive(done: Result<(), Failure>, talk: &Conversation) -> Result<(), Failure> {
    match done {
        Err(Failure::CutShort | Failure::Interrupted) if talk.interrupt().ends_program() => done,
        Err(Failure::CutShort) => Ok(()),
        Err(Failure::Interrupted) => {
            note("stopped: the question was not answered");
            Ok(())
        }
        Err(Failure::Engine(EngineError::ContextFull { needed, context })) => {
            note(&format!(
                "the question needs {needed} tokens and the context holds {context}: shorten it, \
                 /reset begins anew, --ctx gives more room"
            ));
            Ok(())
        }
        Err(
            error @ (Failure::Write { .. }
            | Failure::Read { .. }
            | Failure::NotUtf8 { .. }
            | Failure::TooLong { .. }
            | Failure::NotAConversation { .. }
            | Failure::NoTower { .. }
            | Failure::Akunu(_)
            | Failure::Engine(EngineError::Image(_) | EngineError::TowerImage { .. })
            | Failure::Tokenizer(_)),
        ) => {
            note(&error.to_string());
            Ok(())
        }
        done => done,
    }
}
