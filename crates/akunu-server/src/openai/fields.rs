//! Fields that several requests have.

use serde::Deserialize;
use serde_json::Value;

use crate::error::ApiError;
use crate::options::Limits;
use crate::question::{Draw, Tool, Wish};

/// One text or several.
#[derive(Deserialize)]
#[serde(untagged)]
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
    pub seed: Option<i64>,
    pub stop: Option<Texts>,
    #[serde(default)]
    pub ignore_eos: bool,
}

impl Making {
    pub fn wish(self, limits: &Limits) -> Result<Wish, ApiError> {
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
            draw: Draw {
                temperature: self.temperature,
                top_p: self.top_p,
                top_k: self.top_k,
                min_p: self.min_p,
                repetition_penalty: self.repetition_penalty.or(self.repeat_penalty),
                seed: self.seed,
            },
            stop,
            ignore_end: self.ignore_eos,
        })
    }
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
    pub name: String,
    pub description: Option<String>,
    #[serde(default)]
    pub parameters: Value,
}

/// The tools that may be called: all, none, or the one that must be; and whether one must be.
pub(crate) fn tools(
    given: Vec<ToolField>,
    choice: Option<&Value>,
    limits: &Limits,
) -> Result<(Vec<Tool>, bool), ApiError> {
    if given.len() > limits.tools {
        let message = format!("there are {} tools; at most {}", given.len(), limits.tools);
        return Err(ApiError::bad_field("tools", message));
    }
    let tools = given.into_iter().map(|tool| Tool {
        name: tool.function.name,
        description: tool.function.description,
        parameters: tool.function.parameters,
    });
    let mut tools: Vec<Tool> = tools.collect();
    let named = choice.and_then(|choice| choice.pointer("/function/name"));
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
