//! Samplers beyond those that all protocols have, by the names that llama.cpp, vLLM and Ollama give them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Draw, Wish};
use crate::error::ApiError;

/// Fields of a request about choosing tokens.
#[derive(Default, Deserialize, JsonSchema)]
pub(crate) struct FurtherSampling {
    #[schemars(range(min = 0, max = 1))]
    pub typical_p: Option<f32>,
    #[schemars(range(min = 0, max = 1))]
    pub xtc_probability: Option<f32>,
    #[schemars(range(min = 0, max = 1))]
    pub xtc_threshold: Option<f32>,
    pub top_n_sigma: Option<f32>,
    #[schemars(range(min = 0))]
    pub dynatemp_range: Option<f32>,
    pub dynatemp_exponent: Option<f32>,
    #[schemars(range(min = 0))]
    pub dry_multiplier: Option<f32>,
    #[schemars(range(min = 1))]
    pub dry_base: Option<f32>,
    #[schemars(range(min = 1))]
    pub dry_allowed_length: Option<u32>,
    /// -1 for all tokens, 0 for none.
    pub dry_penalty_last_n: Option<i64>,
    #[schemars(length(max = 64))]
    pub dry_sequence_breakers: Option<Vec<String>>,
    /// 0 for none, 2 for mirostat 2.
    pub mirostat: Option<u32>,
    #[schemars(range(min = 0))]
    pub mirostat_tau: Option<f32>,
    #[schemars(range(min = 0, max = 1))]
    pub mirostat_eta: Option<f32>,
    /// -1 for all tokens, 0 for none.
    pub repeat_last_n: Option<i64>,
    /// Tokens that end the answer, and are not part of it.
    #[schemars(length(max = 256))]
    pub stop_token_ids: Option<Vec<u32>>,
    /// Only as many as are answered.
    pub best_of: Option<usize>,
    pub use_beam_search: Option<bool>,
    pub min_tokens: Option<u64>,
    pub bad_words: Option<Vec<Value>>,
    pub prompt_logprobs: Option<Value>,
    pub logits_processors: Option<Value>,
}

/// Words at which a repetition may end, at most.
const MAX_BREAKERS: usize = 64;

impl FurtherSampling {
    /// The wish with these values.
    pub fn over(self, wish: Wish, max_texts: usize) -> Result<Wish, ApiError> {
        self.refuse(wish.n)?;
        let values = self.values()?;
        let stop_ids = self.stop_token_ids.unwrap_or_default();
        if stop_ids.len() > max_texts {
            let n = stop_ids.len();
            let message = format!("stop_token_ids has {n} tokens; at most {max_texts}");
            return Err(ApiError::bad_field("stop_token_ids", message));
        }
        let breakers = self.dry_sequence_breakers;
        if breakers
            .as_ref()
            .is_some_and(|all| all.len() > MAX_BREAKERS)
        {
            let message = format!("dry_sequence_breakers: at most {MAX_BREAKERS}");
            return Err(ApiError::bad_field("dry_sequence_breakers", message));
        }
        Ok(Wish {
            draw: Draw {
                further: values,
                ..wish.draw
            },
            stop_ids,
            dry_breakers: breakers,
            ..wish
        })
    }

    /// Refuses what would change the answer and cannot be had.
    fn refuse(&self, n: usize) -> Result<(), ApiError> {
        let is_asked =
            |value: &Option<Value>| !matches!(value, None | Some(Value::Null | Value::Bool(false)));
        let refused = [
            ("best_of", self.best_of.is_some_and(|best| best != n)),
            ("use_beam_search", self.use_beam_search == Some(true)),
            ("min_tokens", self.min_tokens.is_some_and(|n| n > 0)),
            (
                "bad_words",
                self.bad_words.as_ref().is_some_and(|all| !all.is_empty()),
            ),
            ("prompt_logprobs", is_asked(&self.prompt_logprobs)),
            ("logits_processors", is_asked(&self.logits_processors)),
        ];
        let mut asked = refused.into_iter().filter(|(_, is_asked)| *is_asked);
        let Some((field, _)) = asked.next() else {
            return Ok(());
        };
        let message = match field {
            "best_of" => {
                format!("best_of must be n, which is {n}: every answer that is made is returned")
            }
            _ => format!("{field} is not supported by this server; leave it out"),
        };
        Err(ApiError::bad_field(field, message))
    }

    /// Values of the engine: the field of the request, the engine's name, the value.
    fn values(&self) -> Result<Vec<(&'static str, &'static str, f64)>, ApiError> {
        let mut values = Vec::new();
        let mut set = |field, name, value: Option<f32>| {
            values.extend(value.map(|value| (field, name, f64::from(value))));
        };
        set("typical_p", "typical_p", self.typical_p);
        set("xtc_probability", "xtc_probability", self.xtc_probability);
        set("xtc_threshold", "xtc_threshold", self.xtc_threshold);
        // Less than nothing switches it off in llama.cpp.
        set(
            "top_n_sigma",
            "top_n_sigma",
            self.top_n_sigma.map(|n| n.max(0.0)),
        );
        set("dynatemp_range", "dynamic_range", self.dynatemp_range);
        set(
            "dynatemp_exponent",
            "dynamic_exponent",
            self.dynatemp_exponent,
        );
        set("dry_multiplier", "dry_multiplier", self.dry_multiplier);
        set("dry_base", "dry_base", self.dry_base);
        let length = self.dry_allowed_length.map(|n| n as f32);
        set("dry_allowed_length", "dry_allowed_length", length);
        match self.mirostat {
            None | Some(0) => {}
            Some(2) => {
                set(
                    "mirostat_tau",
                    "mirostat_tau",
                    Some(self.mirostat_tau.unwrap_or(5.0)),
                );
                set(
                    "mirostat_eta",
                    "mirostat_eta",
                    Some(self.mirostat_eta.unwrap_or(0.1)),
                );
            }
            Some(other) => {
                let message = format!("mirostat is {other}, which must be 0 or 2");
                return Err(ApiError::bad_field("mirostat", message));
            }
        }
        let off = [
            ("repetition_penalty", 1.0),
            ("frequency_penalty", 0.0),
            ("presence_penalty", 0.0),
        ];
        window(
            "repeat_last_n",
            "penalty_window",
            self.repeat_last_n,
            &off,
            &mut values,
        )?;
        let off = [("dry_multiplier", 0.0)];
        window(
            "dry_penalty_last_n",
            "dry_window",
            self.dry_penalty_last_n,
            &off,
            &mut values,
        )?;
        Ok(values)
    }
}

/// How many tokens count: all for -1, and for 0 nothing does.
fn window(
    field: &'static str,
    name: &'static str,
    given: Option<i64>,
    off: &[(&'static str, f64)],
    values: &mut Vec<(&'static str, &'static str, f64)>,
) -> Result<(), ApiError> {
    match given {
        None => {}
        Some(0) => values.extend(off.iter().map(|(name, value)| (field, *name, *value))),
        Some(-1) => values.push((field, name, 0.0)),
        Some(n) if n > 0 => values.push((field, name, n as f64)),
        Some(n) => {
            let message = format!("{field} is {n}, which must be -1 or more");
            return Err(ApiError::bad_field(field, message));
        }
    }
    Ok(())
}
