//! Tools as OpenAI's requests have them, and which of them may be called.

use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::calls::Tool;
use crate::error::ApiError;
use crate::options::Limits;
use crate::question::tool_name;

/// `{"type": "function", "function": {…}}`
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "Tool")]
pub(crate) struct ToolField {
    #[serde(default, rename = "type", deserialize_with = "function_type")]
    #[schemars(with = "Option<String>")]
    _type: (),
    function: Function,
}

/// A function that a model may call.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Function {
    #[serde(default, rename = "type", deserialize_with = "function_type")]
    #[schemars(with = "Option<String>")]
    _type: (),
    #[serde(deserialize_with = "tool_name")]
    #[schemars(with = "String", length(min = 1))]
    name: String,
    description: Option<String>,
    /// A JSON schema of the arguments.
    #[serde(default)]
    parameters: Value,
    /// Whether arguments must be valid by the schema.
    strict: Option<bool>,
}

/// Refuses tools that only the servers of their makers run.
fn function_type<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    match Option::<String>::deserialize(from)?.as_deref() {
        None | Some("function") => Ok(()),
        Some(built_in) => Err(D::Error::custom(format!(
            "the built-in tool `{built_in}` is not on this server; functions are, which the client runs"
        ))),
    }
}

impl ToolField {
    /// The functions of some tools.
    pub fn functions(given: Vec<ToolField>) -> Vec<Function> {
        given.into_iter().map(|tool| tool.function).collect()
    }
}

/// Which tools may be called.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "none, auto, required or a function is wanted")]
pub(crate) enum ToolChoice {
    Mode(Mode),
    Function(Named),
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ToolChoiceMode")]
pub(crate) enum Mode {
    None,
    Auto,
    Required,
}

/// The function that must be called: in `function` or, in responses, by its name.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ToolChoiceFunction")]
pub(crate) struct Named {
    function: Option<FunctionName>,
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct FunctionName {
    name: String,
}

/// The tools that may be called: all, none, or the one that must be; and whether one must be.
pub(crate) fn tools(
    given: Vec<Function>,
    choice: Option<ToolChoice>,
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
    let wrong = |message: String| Err(ApiError::bad_field("tool_choice", message));
    let must_call = match choice {
        None | Some(ToolChoice::Mode(Mode::Auto)) => false,
        Some(ToolChoice::Mode(Mode::None)) => {
            tools.clear();
            false
        }
        Some(ToolChoice::Mode(Mode::Required)) if tools.is_empty() => {
            return wrong("tool_choice is `required`, and there are no tools".into());
        }
        Some(ToolChoice::Mode(Mode::Required)) => true,
        Some(ToolChoice::Function(Named { function, name })) => {
            let Some(name) = function.map(|function| function.name).or(name) else {
                return Ok((tools, false));
            };
            tools.retain(|tool| tool.name == name);
            if tools.is_empty() {
                return wrong(format!(
                    "tool_choice names `{name}`, which is not among the tools"
                ));
            }
            true
        }
    };
    Ok((tools, must_call))
}
