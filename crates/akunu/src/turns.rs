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

use akunu_engine::Model;
use akunu_tokenizer::{EncodeOptions, Message, RenderOptions, TokenizerError};

/// The whole conversation as tokens, up to where the answer begins.
pub(crate) fn encode(model: &Model, messages: &[Message]) -> Result<Vec<u32>, TokenizerError> {
    let options = RenderOptions {
        add_generation_prompt: true,
        ..RenderOptions::default()
    };
    encode_with(model, messages, &options)
}

/// The same with what a template gets to know besides the messages. Plain turns know nothing of it.
pub(crate) fn encode_with(
    model: &Model,
    messages: &[Message],
    options: &RenderOptions,
) -> Result<Vec<u32>, TokenizerError> {
    let tokenizer = model.tokenizer();
    let Some(template) = model.chat_template() else {
        let options = EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        };
        return Ok(tokenizer.encode(&plain(messages), options));
    };
    let parts = tokenizer.render(template, messages, options)?;
    Ok(tokenizer.encode_parts(&parts))
}

/// Texts that end an answer, besides the model's own end.
pub(crate) fn stops(model: &Model) -> Vec<String> {
    match model.chat_template() {
        Some(_) => Vec::new(),
        None => vec!["\nUser:".to_string()],
    }
}

fn plain(messages: &[Message]) -> String {
    let mut text = String::new();
    for message in messages {
        let said = message.content.as_str().unwrap_or_default();
        text.push_str(&match message.role.as_str() {
            "system" => format!("{said}\n\n"),
            "user" => format!("User: {said}\n"),
            "tool" => format!("Tool: {said}\n"),
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
            Message::new("tool", "12:30"),
            Message::new("user", "Bye"),
        ];
        assert_eq!(
            plain(&messages),
            "Be brief.\n\nUser: Hello\nAssistant: Hi.\nTool: 12:30\nUser: Bye\nAssistant:"
        );
    }
}
