//! Chat templates: a conversation as the text that a model was trained on.
//!
//! Templates are Jinja as `transformers` runs it, rendered by `minijinja` with Python's way of writing
//! values. They come out of model files and are not trusted. Every instruction costs fuel, and
//! everything that makes or compares values pays for its size (see [`budget`]), so a hostile template
//! gives an error within a fraction of a second and some tens of megabytes.

mod budget;
mod clock;
mod compile;
mod environment;
mod filters;
mod json;
mod operators;
mod python;

use crate::error::printable;
use budget::Budget;
use minijinja::machinery::{eval, make_string_output};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Value};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use std::sync::Arc;

/// The most bytes that a template may have. The largest in use have about 20,000.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// Why a template cannot be used.
///
/// ```
/// use akunu_tokenizer::{ChatTemplate, TemplateError};
///
/// let broken = ChatTemplate::new("{% if %}");
/// assert!(matches!(broken, Err(TemplateError::Syntax(_))));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The source is longer than any real template.
    #[error("the chat template has {found} bytes; at most {limit} are accepted")]
    TooLong {
        /// Its bytes.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The source is not a template.
    #[error("the chat template cannot be read: {0}")]
    Syntax(String),
    /// Rendering failed; a template may also refuse a conversation in its own words.
    #[error("the chat template failed: {0}")]
    Render(String),
}

/// One message of a conversation.
///
/// Later versions may have further fields: end a value with `..Message::new(role, text)`.
///
/// ```
/// use akunu_tokenizer::Message;
///
/// let mut question = Message::new("user", "What is the capital of France?");
/// question.extra.insert("name".into(), "Ada".into());
/// assert_eq!(question.content.as_str(), Some("What is the capital of France?"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// Text, or a list of parts for templates that take them.
    #[serde(default)]
    pub content: serde_json::Value,
    /// Whatever else the template understands: `tool_calls`, `name`, `reasoning_content`.
    #[serde(flatten)]
    pub extra: Map<String, serde_json::Value>,
    /// Makes room for further fields.
    #[doc(hidden)]
    #[serde(skip)]
    pub _more: (),
}

impl Message {
    /// A message of plain text.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Message {
        Message {
            role: role.into(),
            content: serde_json::Value::String(text.into()),
            extra: Map::new(),
            _more: (),
        }
    }
}

/// What a template gets to know besides the messages.
///
/// Later versions may have further fields: end a value with `..RenderOptions::default()`.
///
/// ```
/// use akunu_tokenizer::{ChatTemplate, Message, RenderOptions};
///
/// let template = ChatTemplate::new("{{ messages[0]['content'] }}{% if shout %}!{% endif %}")?;
/// let mut options = RenderOptions::default();
/// options.variables.insert("shout".into(), true.into());
/// assert_eq!(template.render(&[Message::new("user", "Hello")], &options)?, "Hello!");
/// # Ok::<(), akunu_tokenizer::TemplateError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RenderOptions {
    /// End with the beginning of the assistant's answer.
    pub add_generation_prompt: bool,
    /// Text of the BOS token.
    pub bos_token: Option<String>,
    /// Text of the EOS token.
    pub eos_token: Option<String>,
    /// Further variables: `tools`, `enable_thinking`.
    pub variables: Map<String, serde_json::Value>,
    /// Local time in seconds since 1970, for `strftime_now`. Without it that function is not defined.
    pub now: Option<i64>,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

/// A checked template.
///
/// ```
/// use akunu_tokenizer::{ChatTemplate, Message, RenderOptions};
///
/// let template = ChatTemplate::new(
///     "{% for m in messages %}<|{{ m.role }}|>{{ m['content'].strip() }}\n{% endfor %}",
/// )?;
/// let text = template.render(&[Message::new("user", " Hello ")], &RenderOptions::default())?;
/// assert_eq!(text, "<|user|>Hello\n");
/// # Ok::<(), akunu_tokenizer::TemplateError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChatTemplate {
    /// The source, as tags only.
    rewritten: String,
}

impl ChatTemplate {
    /// Reads the source of a template, and refuses one that has a mistake or is too long to be real.
    pub fn new(source: &str) -> Result<ChatTemplate, TemplateError> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(TemplateError::TooLong {
                found: source.len(),
                limit: MAX_SOURCE_BYTES,
            });
        }
        let malformed = |error: minijinja::Error| TemplateError::Syntax(in_words(&error));
        let rewritten = compile::rewrite(source).map_err(malformed)?;
        compile::compile(&rewritten).map_err(malformed)?;
        Ok(ChatTemplate { rewritten })
    }

    /// The template of a GGUF file, where it has one.
    pub fn from_gguf(
        metadata: &akunu_gguf::Metadata,
    ) -> Result<Option<ChatTemplate>, crate::TokenizerError> {
        let source = metadata.string("tokenizer.chat_template")?;
        Ok(source.map(ChatTemplate::new).transpose()?)
    }

    /// The text of a conversation.
    pub fn render(
        &self,
        messages: &[Message],
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        let failed = |error: minijinja::Error| TemplateError::Render(in_words(&error));
        let budget = Arc::new(Budget::default());
        let environment = environment::new(&budget, options.now);
        let compiled = compile::compile(&self.rewritten).map_err(failed)?;
        let mut text = String::new();
        let mut output = make_string_output(&mut text);
        let evaluated = eval(
            &environment,
            &compiled.instructions,
            context(messages, options),
            &compiled.blocks,
            &mut output,
            AutoEscape::None,
        );
        evaluated.map_err(failed)?;
        drop(output);
        Ok(text)
    }
}

fn context(messages: &[Message], options: &RenderOptions) -> Value {
    let mut variables = options.variables.clone();
    let mut set = |name: &str, value: serde_json::Value| variables.insert(name.to_string(), value);
    set(
        "add_generation_prompt",
        options.add_generation_prompt.into(),
    );
    for (name, token) in [
        ("bos_token", &options.bos_token),
        ("eos_token", &options.eos_token),
    ] {
        if let Some(token) = token {
            set(name, token.as_str().into());
        }
    }
    let messages = Value::from(Serde(messages));
    let variables = variables
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(Serde(value))));
    Value::from_pairs(variables.chain([("messages".to_string(), messages)]))
}

/// The error and its causes, in one line. A template may have written some of it.
fn in_words(error: &minijinja::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        words.push_str(": ");
        words.push_str(&inner.to_string());
        cause = inner.source();
    }
    printable(&words)
}
