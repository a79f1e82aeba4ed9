//! `/v1/embeddings`

use akunu::EmbedOptions;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PromptUsage;
use crate::app::App;
use crate::body::Json;
use crate::embedding::{self, Texts};
use crate::error::ApiError;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EmbeddingsRequest {
    model: Option<String>,
    input: Texts,
    #[serde(default)]
    encoding_format: EncodingFormat,
    dimensions: Option<usize>,
    /// Whether a text that is too long is cut; by default as the server was started.
    truncate: Option<bool>,
    /// The same by vLLM's name: -1, or as many tokens as the model reads.
    truncate_prompt_tokens: Option<i64>,
}

impl EmbeddingsRequest {
    /// Whether texts are cut that are longer than `max` tokens.
    fn is_cut(&self, max: usize, usual: bool) -> Result<bool, ApiError> {
        match self.truncate_prompt_tokens {
            None => Ok(self.truncate.unwrap_or(usual)),
            Some(n) if n == -1 || usize::try_from(n).is_ok_and(|n| n >= max) => Ok(true),
            Some(_) => {
                let message = format!(
                    "truncate_prompt_tokens must be -1, or at least the {max} tokens that this model reads"
                );
                Err(ApiError::bad_field("truncate_prompt_tokens", message))
            }
        }
    }
}

/// How vectors are written. OpenAI's own client asks for base64.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum EncodingFormat {
    #[default]
    Float,
    Base64,
}

/// Vectors, in the order of the texts.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EmbeddingList {
    object: &'static str,
    data: Vec<Embedding>,
    model: String,
    usage: PromptUsage,
}

#[derive(Serialize, JsonSchema)]
struct Embedding {
    object: &'static str,
    index: usize,
    embedding: Vector,
}

/// A vector as numbers, or the bytes of its numbers as base64.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Vector {
    Numbers(Vec<f32>),
    Base64(String),
}

/// Texts as vectors.
pub(crate) async fn embeddings(
    State(app): State<App>,
    Json(request): Json<EmbeddingsRequest>,
) -> Result<axum::Json<EmbeddingList>, ApiError> {
    let model = request.model.as_deref();
    let name = app.models.find(model)?.name.clone();
    let max = app.models.load(model).await?.max_tokens();
    let is_cut = request.is_cut(max, app.options.truncate)?;
    let options = EmbedOptions {
        dimensions: request.dimensions,
        strict: !is_cut,
        ..EmbedOptions::default()
    };
    let made = embedding::of(&app, model, request.input, options).await?;
    let vectors = made.vectors.into_iter().enumerate();
    let data = vectors.map(|(index, vector)| Embedding {
        object: "embedding",
        index,
        embedding: match request.encoding_format {
            EncodingFormat::Float => Vector::Numbers(vector),
            EncodingFormat::Base64 => Vector::Base64(base64(&vector)),
        },
    });
    Ok(axum::Json(EmbeddingList {
        object: "list",
        data: data.collect(),
        model: name,
        usage: PromptUsage::new(made.n_tokens),
    }))
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
