//! Fields that both kinds of completions have.

use std::collections::BTreeMap;

use akunu::{MAX_BIASES, MAX_LOGPROBS};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::ApiError;
use crate::options::Limits;
use crate::question::{Draw, Wish};

/// One text or several.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a text or a list of texts is wanted")]
pub(crate) enum StopTexts {
    One(String),
    Many(#[schemars(length(max = 256))] Vec<String>),
}

impl StopTexts {
    pub fn all(self) -> Vec<String> {
        match self {
            StopTexts::One(text) => vec![text],
            StopTexts::Many(texts) => texts,
        }
    }
}

/// How answers are made, as OpenAI's requests say it, with the further values that local servers have.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Making {
    #[schemars(range(min = 1, max = 128))]
    pub n: Option<usize>,
    /// 1 or more in a chat.
    pub max_tokens: Option<usize>,
    /// 1 or more in a chat.
    pub max_completion_tokens: Option<usize>,
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f32>,
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f32>,
    pub top_k: Option<i64>,
    #[schemars(range(min = 0, max = 1))]
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    /// llama.cpp's name for it.
    pub repeat_penalty: Option<f32>,
    #[schemars(range(min = -2, max = 2))]
    pub frequency_penalty: Option<f32>,
    #[schemars(range(min = -2, max = 2))]
    pub presence_penalty: Option<f32>,
    /// By the ids of tokens, as texts.
    pub logit_bias: Option<BTreeMap<String, f32>>,
    pub logprobs: Option<LogprobsWish>,
    pub top_logprobs: Option<u32>,
    pub seed: Option<i64>,
    pub stop: Option<StopTexts>,
    #[serde(default)]
    pub ignore_eos: bool,
}

/// Whether log probabilities are told, in a chat; of how many of the best, in a completion.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "true, false or a number of 0 or more is wanted")]
pub(crate) enum LogprobsWish {
    Whether(bool),
    Best(u64),
}

impl Making {
    pub fn wish(self, limits: &Limits) -> Result<Wish, ApiError> {
        let logprobs = self.logprobs()?;
        let n = self.n.unwrap_or(1);
        if !(1..=128).contains(&n) {
            return Err(ApiError::bad_field(
                "n",
                format!("n is {n}, which must be 1 to 128"),
            ));
        }
        let max_tokens = self.max_completion_tokens.or(self.max_tokens);
        let stop = self.stop.map(StopTexts::all).unwrap_or_default();
        if stop.len() > limits.stops {
            let message = format!("stop has {} texts; at most {}", stop.len(), limits.stops);
            return Err(ApiError::bad_field("stop", message));
        }
        Ok(Wish {
            n,
            max_tokens,
            logit_bias: biases(self.logit_bias.unwrap_or_default())?,
            logprobs,
            draw: Draw {
                temperature: self.temperature,
                top_p: self.top_p,
                top_k: self.top_k,
                min_p: self.min_p,
                repetition_penalty: self.repetition_penalty.or(self.repeat_penalty),
                frequency_penalty: self.frequency_penalty,
                presence_penalty: self.presence_penalty,
                seed: self.seed,
                further: Vec::new(),
            },
            stop,
            ignore_end: self.ignore_eos,
            ..Wish::default()
        })
    }
}

impl Making {
    /// How many of the best tokens are told, if any are.
    fn logprobs(&self) -> Result<Option<u32>, ApiError> {
        let n = match (self.logprobs, self.top_logprobs) {
            (None | Some(LogprobsWish::Whether(false)), None | Some(0)) => return Ok(None),
            (None | Some(LogprobsWish::Whether(false)), Some(_)) => {
                let message = "top_logprobs needs logprobs to be true";
                return Err(ApiError::bad_field("top_logprobs", message));
            }
            (Some(LogprobsWish::Whether(true)), n) => u64::from(n.unwrap_or(0)),
            (Some(LogprobsWish::Best(n)), _) => n,
        };
        match u32::try_from(n) {
            Ok(n) if n <= MAX_LOGPROBS => Ok(Some(n)),
            _ => {
                let message = format!("{n} log probabilities are wanted; at most {MAX_LOGPROBS}");
                Err(ApiError::bad_field("top_logprobs", message))
            }
        }
    }
}

/// The biases of a request.
fn biases(given: BTreeMap<String, f32>) -> Result<Vec<(u32, f32)>, ApiError> {
    let wrong = |message: String| ApiError::bad_field("logit_bias", message);
    if given.len() > MAX_BIASES {
        let n = given.len();
        return Err(wrong(format!(
            "logit_bias has {n} tokens; at most {MAX_BIASES}"
        )));
    }
    let bias = |(id, value): (String, f32)| match id.parse() {
        Ok(id) if (-100.0..=100.0).contains(&value) => Ok((id, value)),
        Ok(_) => Err(wrong(format!(
            "logit_bias: {value} is not between -100 and 100"
        ))),
        Err(_) => Err(wrong(format!(
            "logit_bias: `{id}` is not the id of a token"
        ))),
    };
    given.into_iter().map(bias).collect()
}

/// What else goes out at the end of a stream.
#[derive(Default, Deserialize, JsonSchema)]
pub(crate) struct StreamOptions {
    #[serde(default)]
    pub include_usage: bool,
}
