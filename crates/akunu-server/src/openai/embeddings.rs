//! `/v1/embeddings`

use akunu::EmbedOptions;
use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body::Json;
use crate::embedding::{self, Texts};
use crate::error::ApiError;
use crate::router::App;

#[derive(Deserialize)]
pub(crate) struct Request {
    model: Option<String>,
    input: Texts,
    #[serde(default)]
    encoding_format: Format,
    dimensions: Option<usize>,
}

/// How vectors are written. OpenAI's own client asks for base64.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Float,
    Base64,
}

/// Texts as vectors.
pub(crate) async fn embeddings(
    State(app): State<App>,
    Json(request): Json<Request>,
) -> Result<axum::Json<Value>, ApiError> {
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let model = app.models.load(request.model.as_deref()).await?;
    // A text that is too long is an error in this protocol.
    let options = EmbedOptions {
        dimensions: request.dimensions,
        strict: true,
        ..EmbedOptions::default()
    };
    let made = embedding::of(&model, request.input, options, &app.options.limits).await?;
    let vectors = made.vectors.iter().enumerate();
    let data: Vec<Value> = vectors
        .map(|(index, vector)| {
            let embedding = match request.encoding_format {
                Format::Float => json!(vector),
                Format::Base64 => base64(vector).into(),
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        })
        .collect();
    Ok(axum::Json(json!({
        "object": "list",
        "data": data,
        "model": name,
        "usage": {"prompt_tokens": made.n_tokens, "total_tokens": made.n_tokens},
    })))
}

/// The bytes of the numbers, little-endian: three bytes are four characters.
fn base64(vector: &[f32]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = bits >> (18 - 6 * digit) & 63;
            let is_there = digit <= group.len();
            text.push(if is_there {
                DIGITS[value as usize].into()
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    /// The texts are what Python's `base64.b64encode(struct.pack("<…f", …))` gives.
    #[test]
    fn numbers_as_base64() {
        assert_eq!(base64(&[1.0]), "AACAPw==");
        assert_eq!(base64(&[1.0, -2.5]), "AACAPwAAIMA=");
        assert_eq!(base64(&[1.0, -2.5, 0.1]), "AACAPwAAIMDNzMw9");
    }
}
