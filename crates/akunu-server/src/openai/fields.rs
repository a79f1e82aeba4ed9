//! Fields that several requests have.

use std::collections::BTreeMap;

use akunu::{MAX_BIASES, MAX_LOGPROBS};
use serde::Deserialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::options::Limits;
use crate::question::{Draw, Tool, Wish, tool_name};

/// One text or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts is wanted")]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub fn all(self) -> Vec<String> {
        match self {
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts,
        }
    }
}

/// How answers are made, as OpenAI's requests say it, with the further values that local servers have.
#[derive(Deserialize)]
pub(crate) struct Making {
    pub n: Option<usize>,
    pub max_tokens: Option<usize>,
    pub max_completion_tokens: Option<usize>,
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub top_k: Option<i64>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    /// llama.cpp's name for it.
    pub repeat_penalty: Option<f32>,
    pub frequency_penalty: Option<f32>,
    pub presence_penalty: Option<f32>,
    /// By the ids of tokens, as texts.
    pub logit_bias: Option<BTreeMap<String, f32>>,
    /// Whether, in a chat; how many of the best, in a completion.
    pub logprobs: Option<Value>,
    pub top_logprobs: Option<u32>,
    pub seed: Option<i64>,
    pub stop: Option<Texts>,
    #[serde(default)]
    pub ignore_eos: bool,
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
        if max_tokens == Some(0) {
            return Err(ApiError::bad_field(
                "max_tokens",
                "max_tokens must be 1 or more",
            ));
        }
        let stop = self.stop.map(Texts::all).unwrap_or_default();
        if stop.len() > limits.texts {
            let message = format!("stop has {} texts; at most {}", stop.len(), limits.texts);
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
            },
            stop,
            ignore_end: self.ignore_eos,
        })
    }
}

impl Making {
    /// How many of the best tokens are told, if any are.
    fn logprobs(&self) -> Result<Option<u32>, ApiError> {
        let n = match (&self.logprobs, self.top_logprobs) {
            (None | Some(Value::Null | Value::Bool(false)), None | Some(0)) => return Ok(None),
            (None | Some(Value::Null | Value::Bool(false)), Some(_)) => {
                let message = "top_logprobs needs logprobs to be true";
                return Err(ApiError::bad_field("top_logprobs", message));
            }
            (Some(Value::Bool(true)), n) => u64::from(n.unwrap_or(0)),
            (Some(wanted), _) => wanted.as_u64().ok_or_else(|| {
                ApiError::bad_field("logprobs", "logprobs must be true, false or a number")
            })?,
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
#[derive(Default, Deserialize)]
pub(crate) struct StreamOptions {
    #[serde(default)]
    pub include_usage: bool,
}

/// `{"type": "function", "function": {…}}`
#[derive(Deserialize)]
pub(crate) struct ToolField {
    pub function: Function,
}

#[derive(Deserialize)]
pub(crate) struct Function {
    #[serde(deserialize_with = "tool_name")]
    pub name: String,
    pub description: Option<String>,
    #[serde(default)]
    pub parameters: Value,
    pub strict: Option<bool>,
}

impl ToolField {
    /// The functions of some tools.
    pub fn functions(given: Vec<ToolField>) -> Vec<Function> {
        given.into_iter().map(|tool| tool.function).collect()
    }
}

/// The tools that may be called: all, none, or the one that must be, which `tool_choice` names as `{"function": {"name": …}}` or, in
/// responses, as `{"name": …}`; and whether one must be.
pub(crate) fn tools(
    given: Vec<Function>,
    choice: Option<&Value>,
    limits: &Limits,
) -> Result<(Vec<Tool>, bool), ApiError> {
    if given.len() > limits.tools {
        let message = format!("there are {} tools; at most {}", given.len(), limits.tools);
        return Err(ApiError::bad_field("tools", message));
    }
    let tools = given.into_iter().map(|tool| Tool {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
        strict: tool.strict.unwrap_or_default(),
    });
    let mut tools: Vec<Tool> = tools.collect();
    let named = choice.and_then(|choice| choice.pointer("/function/name").or(choice.get("name")));
    match (
        choice.and_then(Value::as_str),
        named.and_then(Value::as_str),
    ) {
        (Some("none"), _) => tools.clear(),
        (Some("required"), _) if tools.is_empty() => {
            let message = "tool_choice is `required`, and there are no tools";
            return Err(ApiError::bad_field("tool_choice", message));
        }
        (Some("auto" | "required"), _) => {}
        (Some(other), _) => {
            let message =
                format!("tool_choice is `{other}`; it must be none, auto, required or a function");
            return Err(ApiError::bad_field("tool_choice", message));
        }
        (None, Some(name)) => {
            tools.retain(|tool| tool.name == name);
            if tools.is_empty() {
                let message = format!("tool_choice names `{name}`, which is not among the tools");
                return Err(ApiError::bad_field("tool_choice", message));
            }
        }
        (None, None) => {}
    }
    let must_call = named.is_some() || choice.and_then(Value::as_str) == Some("required");
    Ok((tools, must_call))
}
