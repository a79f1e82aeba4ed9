//! Conversations with images as prompts.
//!
//! ```text
//! message      [{"type": "image", "image": ID}, {"type": "text", "text": "What is this?"}]
//! template     <|im_start|>User:<image>What is this?…
//! wording      <image>  ─▶  <fake_token_around_image><global-img> 64 x <image> <fake_token_around_image>
//! prompt       tokens, and a span of features for each run of <image>
//! ```
//!
//! Only the template writes placeholders: one that a user types is text.

use akunu_engine::{EngineError, ImageSpan, Model, Prompt};
use akunu_image::Piece;
use akunu_tokenizer::{EncodeOptions, Message, PromptPart, RenderOptions, Tokenizer};
use serde_json::{Value, json};

use super::vision::Image;
use crate::error::Error;
use crate::turns;

/// A question after its images.
pub(crate) fn message(question: String, images: &[Image]) -> Message {
    let image = |image: &Image| json!({"type": "image", "image": image.id()});
    let mut parts: Vec<Value> = images.iter().map(image).collect();
    parts.push(json!({"type": "text", "text": question}));
    Message {
        content: Value::Array(parts),
        ..Message::new("user", "")
    }
}

/// The images of these messages, in their order.
pub(crate) fn shown<'i>(
    messages: &[Message],
    images: &'i [Image],
) -> Result<Vec<&'i Image>, Error> {
    let parts = messages
        .iter()
        .filter_map(|message| message.content.as_array());
    parts
        .flatten()
        .filter(|part| part["type"] == "image")
        .map(|part| {
            let found = images.iter().find(|image| part["image"] == image.id());
            found.ok_or(Error::ImageGone)
        })
        .collect()
}

/// A conversation up to where the answer begins.
pub(crate) fn prompt(
    model: &Model,
    messages: &[Message],
    images: &[Image],
) -> Result<Prompt, Error> {
    let shown = shown(messages, images)?;
    let Some(first) = shown.first() else {
        return Ok(turns::encode(model, messages)?.into());
    };
    let template = model.chat_template().ok_or(Error::NoPlaceForImages)?;
    let names = Names {
        tokenizer: model.tokenizer(),
    };
    let placeholder = names.id(first.wording().placeholder())?;
    let row = names.id(first.wording().row_token())?;
    let options = RenderOptions {
        add_generation_prompt: true,
        ..RenderOptions::default()
    };
    let messages: Vec<Message> = messages.iter().map(in_parts).collect();
    let parts = names.tokenizer.render(template, &messages, &options);
    let parts = parts.map_err(EngineError::from)?;
    let is_placeholder = |part: &&PromptPart| **part == PromptPart::Control(placeholder);
    if parts.iter().filter(is_placeholder).count() != shown.len() {
        return Err(Error::NoPlaceForImages);
    }
    let parts = names.splice(parts, placeholder, row, &shown)?;
    let tokens = names.tokenizer.encode_parts(&parts);
    let images = spans(&tokens, row, &shown);
    Ok(Prompt { tokens, images })
}

/// A message whose text is a part, as the templates of models with images want it.
fn in_parts(message: &Message) -> Message {
    let mut message = message.clone();
    if let Value::String(text) = message.content {
        message.content = json!([{"type": "text", "text": text}]);
    }
    message
}

/// Tokens by their names.
struct Names<'m> {
    tokenizer: &'m Tokenizer,
}

impl Names<'_> {
    fn id(&self, name: &str) -> Result<u32, Error> {
        let options = EncodeOptions {
            parse_special: true,
            ..EncodeOptions::default()
        };
        match self.tokenizer.encode(name, options)[..] {
            [id] => Ok(id),
            _ => Err(Error::NoImageToken {
                name: name.to_string(),
            }),
        }
    }

    /// The parts with the pieces of an image in the place of each placeholder.
    fn splice(
        &self,
        parts: Vec<PromptPart>,
        placeholder: u32,
        row: u32,
        images: &[&Image],
    ) -> Result<Vec<PromptPart>, Error> {
        let mut spliced = Vec::new();
        let mut images = images.iter();
        for part in parts {
            if part != PromptPart::Control(placeholder) {
                push(&mut spliced, part);
                continue;
            }
            for piece in images.next().into_iter().flat_map(|image| image.pieces()) {
                match piece {
                    Piece::Control(name) => spliced.push(PromptPart::Control(self.id(name)?)),
                    Piece::Text(text) => push(&mut spliced, PromptPart::Text(text.to_string())),
                    Piece::Rows { n, .. } => {
                        spliced.extend((0..*n).map(|_| PromptPart::Control(row)));
                    }
                }
            }
        }
        Ok(spliced)
    }
}

/// Adds a part. Text goes on with the text before it, so that both are encoded together.
fn push(parts: &mut Vec<PromptPart>, part: PromptPart) {
    match (parts.last_mut(), part) {
        (Some(PromptPart::Text(before)), PromptPart::Text(text)) => before.push_str(&text),
        (_, part) => parts.push(part),
    }
}

/// The features of images at the runs of row tokens.
fn spans(tokens: &[u32], row: u32, images: &[&Image]) -> Vec<ImageSpan> {
    let mut rows = tokens
        .iter()
        .enumerate()
        .filter(|(_, id)| **id == row)
        .map(|(at, _)| at);
    let features = images.iter().flat_map(|image| image.features());
    features
        .filter_map(|features| {
            let start = rows.next()?;
            let more = features.n_rows() - 1;
            if more > 0 {
                rows.nth(more - 1)?;
            }
            Some(ImageSpan {
                start,
                features: features.clone(),
            })
        })
        .collect()
}
