//! Endpoints of local servers that no other protocol has: health, tokens, and prompts.

use akunu::{EncodeOptions, Message};
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::blocking::elsewhere;
use crate::body::Json;
use crate::error::ApiError;
use crate::openai::{ToolField, tools};
use crate::question::{Conversation, Ending, normal_messages};
use crate::router::App;

/// Whether requests can be answered.
pub(crate) async fn health() -> axum::Json<Value> {
    axum::Json(json!({"status": "ok"}))
}

#[derive(Deserialize)]
pub(crate) struct Tokenize {
    model: Option<String>,
    content: String,
    #[serde(default)]
    add_special: bool,
    /// Control tokens in the text become such.
    #[serde(default = "yes")]
    parse_special: bool,
    #[serde(default)]
    with_pieces: bool,
}

fn yes() -> bool {
    true
}

/// Text to tokens.
pub(crate) async fn tokenize(
    State(app): State<App>,
    Json(asked): Json<Tokenize>,
) -> Result<axum::Json<Value>, ApiError> {
    let engine = app.models.engine(asked.model.as_deref()).await?;
    let options = EncodeOptions {
        add_special: asked.add_special,
        parse_special: asked.parse_special,
    };
    let (model, text) = (engine.model.clone(), asked.content);
    let ids = elsewhere(move || Ok(model.tokenizer().encode(&text, options))).await?;
    let tokenizer = engine.model.tokenizer();
    let piece = |id: u32| {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        let text = String::from_utf8(bytes);
        let piece = text.map_or_else(|raw| json!(raw.into_bytes()), |text| json!(text));
        json!({"id": id, "piece": piece})
    };
    let tokens: Vec<Value> = if asked.with_pieces {
        ids.into_iter().map(piece).collect()
    } else {
        ids.into_iter().map(Value::from).collect()
    };
    Ok(axum::Json(json!({"tokens": tokens})))
}

#[derive(Deserialize)]
pub(crate) struct Detokenize {
    model: Option<String>,
    tokens: Vec<u32>,
}

/// Tokens to text.
pub(crate) async fn detokenize(
    State(app): State<App>,
    Json(asked): Json<Detokenize>,
) -> Result<axum::Json<Value>, ApiError> {
    let engine = app.models.engine(asked.model.as_deref()).await?;
    engine.check_ids("tokens", asked.tokens.iter().copied())?;
    let text = engine.model.tokenizer().decode(&asked.tokens);
    Ok(axum::Json(json!({"content": text})))
}

#[derive(Deserialize)]
pub(crate) struct ApplyTemplate {
    model: Option<String>,
    messages: Vec<Message>,
    tools: Option<Vec<ToolField>>,
    chat_template_kwargs: Option<Map<String, Value>>,
    add_generation_prompt: Option<bool>,
}

/// A conversation as the model reads it.
pub(crate) async fn apply_template(
    State(app): State<App>,
    Json(asked): Json<ApplyTemplate>,
) -> Result<axum::Json<Value>, ApiError> {
    let engine = app.models.engine(asked.model.as_deref()).await?;
    let tools_given = ToolField::functions(asked.tools.unwrap_or_default());
    let (tools, _) = tools(tools_given, None, &app.options.limits)?;
    let conversation = Conversation {
        messages: normal_messages(asked.messages)?,
        tools,
        variables: asked.chat_template_kwargs.unwrap_or_default(),
        ending: if asked.add_generation_prompt == Some(false) {
            Ending::Nothing
        } else {
            Ending::Answer
        },
        ..Conversation::default()
    };
    let prompt = conversation.prompt(&engine).await?;
    Ok(axum::Json(json!({
        "prompt": engine.text_of(&prompt.ids),
        "tokens": prompt.ids.len(),
    })))
}
