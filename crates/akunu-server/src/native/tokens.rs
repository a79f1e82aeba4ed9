//! `/tokenize` and `/detokenize`

use akunu::{EncodeOptions, Tokenizer};
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::blocking::elsewhere;
use crate::body::Json;
use crate::error::ApiError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct TokenizeRequest {
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

/// The tokens of a text.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TokenList {
    tokens: Vec<TokenizedToken>,
}

/// An id, or with what it stands for.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum TokenizedToken {
    Id(u32),
    WithPiece { id: u32, piece: TokenPiece },
}

/// A text, or bytes that are none by themselves.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum TokenPiece {
    Text(String),
    Bytes(Vec<u8>),
}

impl TokenizedToken {
    fn with_piece(id: u32, tokenizer: &Tokenizer) -> TokenizedToken {
        let bytes = tokenizer.token_bytes(id).unwrap_or_default();
        let piece = match String::from_utf8(bytes) {
            Ok(text) => TokenPiece::Text(text),
            Err(raw) => TokenPiece::Bytes(raw.into_bytes()),
        };
        TokenizedToken::WithPiece { id, piece }
    }
}

/// Text to tokens.
pub(crate) async fn tokenize(
    State(app): State<App>,
    Json(request): Json<TokenizeRequest>,
) -> Result<axum::Json<TokenList>, ApiError> {
    let engine = app.models.engine(request.model.as_deref()).await?;
    let options = EncodeOptions {
        add_special: request.add_special,
        parse_special: request.parse_special,
        ..EncodeOptions::default()
    };
    let (model, text) = (engine.model.clone(), request.content);
    let ids = elsewhere(move || Ok(model.tokenizer().encode(&text, options))).await?;
    let tokenizer = engine.model.tokenizer();
    let token = |id| match request.with_pieces {
        true => TokenizedToken::with_piece(id, tokenizer),
        false => TokenizedToken::Id(id),
    };
    let tokens = ids.into_iter().map(token).collect();
    Ok(axum::Json(TokenList { tokens }))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DetokenizeRequest {
    model: Option<String>,
    tokens: Vec<u32>,
}

/// The text of tokens.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Detokenized {
    content: String,
}

/// Tokens to text.
pub(crate) async fn detokenize(
    State(app): State<App>,
    Json(request): Json<DetokenizeRequest>,
) -> Result<axum::Json<Detokenized>, ApiError> {
    let engine = app.models.engine(request.model.as_deref()).await?;
    engine.check_ids("tokens", request.tokens.iter().copied())?;
    let content = engine.model.tokenizer().decode(&request.tokens);
    Ok(axum::Json(Detokenized { content }))
}
