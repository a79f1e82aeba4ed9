//! What Ollama's requests say about how an answer is made.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::options::Limits;
use crate::question::{self, Draw, Form, FurtherSampling, Wish};

/// Ollama's `options`.
#[derive(Default, Deserialize, JsonSchema)]
pub(super) struct OllamaOptions {
    num_predict: Option<i64>,
    #[schemars(range(min = 0, max = 2))]
    temperature: Option<f32>,
    #[schemars(range(min = 0, max = 1))]
    top_p: Option<f32>,
    top_k: Option<i64>,
    #[schemars(range(min = 0, max = 1))]
    min_p: Option<f32>,
    repeat_penalty: Option<f32>,
    #[schemars(range(min = -2, max = 2))]
    frequency_penalty: Option<f32>,
    #[schemars(range(min = -2, max = 2))]
    presence_penalty: Option<f32>,
    seed: Option<i64>,
    #[serde(default)]
    stop: Vec<String>,
    #[schemars(range(min = 0, max = 1))]
    typical_p: Option<f32>,
    repeat_last_n: Option<i64>,
    /// 0 for none, 2 for mirostat 2.
    mirostat: Option<u32>,
    #[schemars(range(min = 0))]
    mirostat_tau: Option<f32>,
    #[schemars(range(min = 0, max = 1))]
    mirostat_eta: Option<f32>,
}

impl OllamaOptions {
    pub fn wish(self, limits: &Limits) -> Result<Wish, ApiError> {
        let further = FurtherSampling {
            typical_p: self.typical_p,
            repeat_last_n: self.repeat_last_n,
            mirostat: self.mirostat,
            mirostat_tau: self.mirostat_tau,
            mirostat_eta: self.mirostat_eta,
            ..FurtherSampling::default()
        };
        let wish = Wish {
            // -1 and -2 are "without end" and "until the context is full".
            max_tokens: self.num_predict.and_then(|n| usize::try_from(n).ok()),
            draw: Draw {
                temperature: self.temperature,
                top_p: self.top_p,
                top_k: self.top_k,
                min_p: self.min_p,
                repetition_penalty: self.repeat_penalty,
                frequency_penalty: self.frequency_penalty,
                presence_penalty: self.presence_penalty,
                seed: self.seed,
                further: Vec::new(),
            },
            stop: self.stop,
            ..Wish::default()
        };
        further.over(wish, limits.stops)
    }
}

/// What an answer must look like: `json`, or a schema.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "json or a schema is wanted")]
pub(super) enum OllamaFormat {
    Named(String),
    Schema(Map<String, Value>),
}

impl OllamaFormat {
    /// The form of the answer; an empty text asks for none.
    pub fn format(given: Option<OllamaFormat>) -> Result<question::Format, ApiError> {
        match given {
            None => Ok(question::Format::Free),
            Some(OllamaFormat::Named(name)) if name.is_empty() => Ok(question::Format::Free),
            Some(OllamaFormat::Named(name)) if name == "json" => {
                Ok(question::Format::any_object("format"))
            }
            Some(OllamaFormat::Schema(schema)) => Ok(question::Format::Form(
                "format",
                Form::Schema(schema.into()),
            )),
            Some(OllamaFormat::Named(_)) => Err(ApiError::bad_field(
                "format",
                "format: json or a schema is wanted",
            )),
        }
    }
}

/// What is `true` unless a request says otherwise.
pub(super) fn yes() -> bool {
    true
}

/// Refuses what would be left out without a word; some clients always send a list, which may be empty.
pub(super) fn refuse_images(field: &str, images: Option<&Value>) -> Result<(), ApiError> {
    match images {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(list)) if list.is_empty() => Ok(()),
        Some(_) => {
            let message = format!("{field}: this model reads text only");
            Err(ApiError::bad_field(field, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Breaks when a format that a client writes is taken for free text.
    #[test]
    fn formats_are_understood() {
        let format = |given: Value| {
            let given = serde_json::from_value(given).ok()?;
            OllamaFormat::format(Some(given)).ok()
        };
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
        let wanted = question::Format::Form("format", Form::Schema(schema.clone()));
        assert_eq!(format(schema), Some(wanted));
        assert!(matches!(
            format(json!("json")),
            Some(question::Format::Form(..))
        ));
        assert_eq!(format(json!("")), Some(question::Format::Free));
        assert_eq!(format(json!("yaml")), None);
        assert_eq!(format(json!(7)), None);
    }
}
