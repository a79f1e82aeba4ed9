//! How a conversation is written for a model: by its chat template, or as plain turns without one.
//!
//! ```text
//! You are helpful.
//!
//! User: What is the capital of France?
//! Assistant: Paris.
//! User: And of Italy?
//! Assistant:
//! ```

use crate::failure::Failure;
use crate::terminal::note;
use akunu_engine::Model;
use akunu_tokenizer::{ChatTemplate, EncodeOptions, Message, RenderOptions, TokenizerError};

/// The way of one model.
pub enum Turns<'m> {
    /// As its file says.
    Template(&'m ChatTemplate),
    /// Its file does not say.
    Plain,
}

impl<'m> Turns<'m> {
    /// How this model wants it. That it does not say so is told once.
    pub fn of(model: &'m Model) -> Turns<'m> {
        match model.chat_template() {
            Some(template) => Turns::Template(template),
            None => {
                note(&format!(
                    "{} has no chat template: it is asked in plain turns of User: and Assistant:",
                    model.path().display()
                ));
                Turns::Plain
            }
        }
    }

    /// The whole conversation as tokens, up to where the answer begins.
    pub fn encode(&self, model: &Model, messages: &[Message]) -> Result<Vec<u32>, Failure> {
        let (text, add_special) = match self {
            Turns::Template(template) => (render(template, model, messages)?, false),
            Turns::Plain => (plain(messages), true),
        };
        let options = EncodeOptions {
            add_special,
            parse_special: true,
        };
        Ok(model.tokenizer().encode(&text, options)?)
    }

    /// Texts that end an answer, besides the model's own end.
    pub fn stops(&self) -> Vec<String> {
        match self {
            Turns::Template(_) => Vec::new(),
            Turns::Plain => vec!["\nUser:".to_string()],
        }
    }
}

fn render(template: &ChatTemplate, model: &Model, messages: &[Message]) -> Result<String, Failure> {
    let tokenizer = model.tokenizer();
    let special = tokenizer.special_ids();
    let options = RenderOptions {
        add_generation_prompt: true,
        bos_token: tokenizer.special_text(special.bos),
        eos_token: tokenizer.special_text(special.eos),
        ..RenderOptions::default()
    };
    let rendered = template.render(messages, &options);
    Ok(rendered.map_err(TokenizerError::from)?)
}

fn plain(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let said = message.content.as_str().unwrap_or_default();
        text.push_str(&match message.role.as_str() {
            "system" => format!("{said}\n\n"),
            "user" => format!("User: {said}\n"),
            _ => format!("Assistant: {said}\n"),
        });
    }
    text.push_str("Assistant:");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_turns_end_where_the_answer_begins() {
        let messages = [
            Message::new("system", "Be brief."),
            Message::new("user", "Hello"),
            Message::new("assistant", "Hi."),
            Message::new("user", "Bye"),
        ];
        assert_eq!(
            plain(&messages),
            "Be brief.\n\nUser: Hello\nAssistant: Hi.\nUser: Bye\nAssistant:"
        );
    }
}
