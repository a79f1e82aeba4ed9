//! `chat`: asks a model, once or line by line.

use super::Run;
use crate::failure::Failure;
use crate::interrupt;
use crate::running::{ModelArgs, SamplingArgs, collect, options};
use akunu_engine::{CancelFlag, Model, Session};
use akunu_tokenizer::{EncodeOptions, Message, RenderOptions};
use clap::Parser;
use std::io::{self, BufRead, Write};

/// Ask a model, once or line by line
///
/// With a PROMPT it answers and exits. Without one it reads a line from standard input, answers, and
/// goes on with the next in the same conversation.
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
    #[arg(short, long, value_name = "N", default_value_t = 256)]
    n: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
}

impl Run for Chat {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let model = self.model.load()?;
        if model.chat_template().is_none() {
            return Err(Failure::NoTemplate(model.path().to_path_buf()));
        }
        let mut talk = Conversation {
            session: model.session(self.model.session())?,
            messages: self
                .system
                .iter()
                .map(|text| Message::new("system", text))
                .collect(),
            cancel: interrupt::cancel_flag(),
            options: &self,
        };
        match &self.prompt {
            Some(prompt) => talk.answer(&model, prompt, out),
            None => {
                for line in io::stdin().lock().lines() {
                    let line = line?;
                    if !line.trim().is_empty() {
                        talk.answer(&model, &line, out)?;
                    }
                }
                Ok(())
            }
        }
    }
}

/// A conversation under way.
struct Conversation<'a> {
    session: Session<'a>,
    messages: Vec<Message>,
    cancel: CancelFlag,
    options: &'a Chat,
}

impl Conversation<'_> {
    /// Answers one message. Only what is new goes through the model.
    fn answer(&mut self, model: &Model, text: &str, out: &mut dyn Write) -> Result<(), Failure> {
        self.messages.push(Message::new("user", text));
        let ids = self.render(model)?;
        self.session.feed(&ids)?;
        let options = options(
            self.options.n,
            self.options.sampling.sampling(),
            &self.cancel,
        );
        let answer = collect(self.session.generate(options)?, out)?;
        writeln!(out)?;
        out.flush()?;
        self.messages.push(Message::new("assistant", answer.text));
        Ok(())
    }

    /// The whole conversation as the model wants it.
    fn render(&self, model: &Model) -> Result<Vec<u32>, Failure> {
        let Some(template) = model.chat_template() else {
            return Ok(Vec::new());
        };
        let tokenizer = model.tokenizer();
        let special = tokenizer.special_ids();
        let text = |id: Option<u32>| {
            let bytes = tokenizer.token_bytes(id?)?;
            Some(String::from_utf8_lossy(bytes).into_owned())
        };
        let render = RenderOptions {
            add_generation_prompt: true,
            bos_token: text(special.bos),
            eos_token: text(special.eos),
            ..RenderOptions::default()
        };
        let prompt = template.render(&self.messages, &render);
        let prompt = prompt.map_err(akunu_tokenizer::TokenizerError::from)?;
        let encode = EncodeOptions {
            add_special: false,
            parse_special: true,
        };
        Ok(tokenizer.encode(&prompt, encode)?)
    }
}
