//! `/v1/messages` and `/v1/messages/count_tokens`

use akunu::Message;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::input::{self, AskedBlock, AskedMessage};
use super::stream::Blocks;
use crate::app::App;
use crate::body::Json;
use crate::calls::Tool;
use crate::content::Content;
use crate::error::ApiError;
use crate::options::Limits;
use crate::question::{Conversation, Draw, Ending, Form, Format, Wish, ask, tool_name};
use crate::stream::Reply;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MessagesRequest {
    model: Option<String>,
    #[schemars(length(min = 1))]
    messages: Vec<AskedMessage>,
    system: Option<Content<AskedBlock>>,
    #[serde(default)]
    tools: Vec<MessagesTool>,
    tool_choice: Option<MessagesToolChoice>,
    /// Needed, but for counting tokens.
    #[schemars(range(min = 1))]
    max_tokens: Option<usize>,
    #[schemars(range(min = 0, max = 2))]
    temperature: Option<f32>,
    #[schemars(range(min = 0, max = 1))]
    top_p: Option<f32>,
    top_k: Option<i64>,
    #[serde(default)]
    #[schemars(length(max = 256))]
    stop_sequences: Vec<String>,
    #[serde(default)]
    stream: bool,
    output_config: Option<OutputConfig>,
    /// The older name of `output_config.format`.
    output_format: Option<OutputFormat>,
}

/// How the answer is written.
#[derive(Deserialize, JsonSchema)]
struct OutputConfig {
    format: Option<OutputFormat>,
}

/// What the answer must look like.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OutputFormat {
    JsonSchema { schema: Value },
}

/// A tool that the model may call.
#[derive(Deserialize, JsonSchema)]
struct MessagesTool {
    #[serde(deserialize_with = "tool_name")]
    #[schemars(with = "String", length(min = 1))]
    name: String,
    description: Option<String>,
    /// A JSON schema of the arguments.
    #[serde(default)]
    input_schema: Value,
    /// Whether arguments must be valid by the schema.
    strict: Option<bool>,
}

/// Which tools may be called.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
enum MessagesToolChoice {
    Auto {
        /// Whether at most one tool is called.
        disable_parallel_tool_use: Option<bool>,
    },
    None,
    Any {
        disable_parallel_tool_use: Option<bool>,
    },
    Tool {
        name: String,
        disable_parallel_tool_use: Option<bool>,
    },
}

impl MessagesToolChoice {
    fn is_single(&self) -> bool {
        let (MessagesToolChoice::Auto {
            disable_parallel_tool_use,
        }
        | MessagesToolChoice::Any {
            disable_parallel_tool_use,
        }
        | MessagesToolChoice::Tool {
            disable_parallel_tool_use,
            ..
        }) = self
        else {
            return false;
        };
        *disable_parallel_tool_use == Some(true)
    }
}

/// How many tokens a conversation has.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TokenCount {
    input_tokens: usize,
}

/// Answers a conversation.
pub(crate) async fn messages(
    State(app): State<App>,
    Json(request): Json<MessagesRequest>,
) -> Result<Reply<Blocks>, ApiError> {
    let limits = app.options.limits;
    let Some(max_tokens) = request.max_tokens.filter(|n| *n > 0) else {
        return Err(ApiError::bad_field(
            "max_tokens",
            "max_tokens: a number of 1 or more is needed",
        ));
    };
    if request.stop_sequences.len() > limits.stops {
        let message = format!("stop_sequences: at most {}", limits.stops);
        return Err(ApiError::bad_field("stop_sequences", message));
    }
    let wish = Wish {
        max_tokens: Some(max_tokens),
        draw: Draw {
            temperature: request.temperature,
            top_p: request.top_p,
            top_k: request.top_k,
            ..Draw::default()
        },
        stop: request.stop_sequences.clone(),
        ..Wish::default()
    };
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let is_stream = request.stream;
    // The engine does not tell which of several texts ended the answer.
    let stop = match &request.stop_sequences[..] {
        [one] => Some(one.clone()),
        _ => None,
    };
    let prompt = request.conversation(&limits)?.prompt(&engine).await?;
    let answers = ask(&engine, prompt, wish)?;
    Reply::new(
        answers,
        Blocks::new(name, stop),
        is_stream,
        limits.answering,
    )
    .await
}

/// How many tokens a conversation has.
pub(crate) async fn count_tokens(
    State(app): State<App>,
    Json(request): Json<MessagesRequest>,
) -> Result<axum::Json<TokenCount>, ApiError> {
    let engine = app.models.engine(request.model.as_deref()).await?;
    let conversation = request.conversation(&app.options.limits)?;
    let prompt = conversation.prompt(&engine).await?;
    Ok(axum::Json(TokenCount {
        input_tokens: prompt.ids.len(),
    }))
}

impl MessagesRequest {
    fn conversation(self, limits: &Limits) -> Result<Conversation, ApiError> {
        let mut all = Vec::new();
        if let Some(system) = self.system {
            let text = input::text(Some(system), "system")?;
            all.push(Message::new("system", input::without_billing(&text)));
        }
        for (at, message) in self.messages.into_iter().enumerate() {
            all.extend(message.normal(&format!("messages[{at}]"))?);
        }
        let format = self.output_config.and_then(|config| config.format);
        let format = match (format, self.output_format) {
            (Some(OutputFormat::JsonSchema { schema }), _) => {
                Format::Form("output_config.format", Form::Schema(schema))
            }
            (None, Some(OutputFormat::JsonSchema { schema })) => {
                Format::Form("output_format", Form::Schema(schema))
            }
            (None, None) => Format::Free,
        };
        let choice = self.tool_choice.as_ref();
        let one_call = choice.is_some_and(MessagesToolChoice::is_single);
        let (tools, must_call) = tools(self.tools, self.tool_choice, limits)?;
        // As Anthropic has it, an answer goes on with what the assistant has begun to say.
        let is_begun = all.len() > 1
            && all.last().is_some_and(|last| {
                last.role == "assistant" && !last.extra.contains_key("tool_calls")
            });
        Ok(Conversation {
            messages: all,
            tools,
            one_call,
            ending: if is_begun {
                Ending::LastMessage
            } else {
                Ending::Answer
            },
            format: if must_call { Format::Call } else { format },
            ..Conversation::default()
        })
    }
}

/// The tools that may be called, and whether one must be.
fn tools(
    given: Vec<MessagesTool>,
    choice: Option<MessagesToolChoice>,
    limits: &Limits,
) -> Result<(Vec<Tool>, bool), ApiError> {
    if given.len() > limits.tools {
        let (n, max) = (given.len(), limits.tools);
        let message = format!("tools: there are {n}; at most {max}");
        return Err(ApiError::bad_field("tools", message));
    }
    let tools = given.into_iter().map(|tool| Tool {
        name: tool.name,
        description: tool.description,
        parameters: tool.input_schema,
        strict: tool.strict.unwrap_or_default(),
    });
    let is_wanted = |tool: &Tool| match &choice {
        Some(MessagesToolChoice::None) => false,
        Some(MessagesToolChoice::Tool { name, .. }) => tool.name == *name,
        Some(MessagesToolChoice::Auto { .. } | MessagesToolChoice::Any { .. }) | None => true,
    };
    let tools: Vec<Tool> = tools.filter(is_wanted).collect();
    let must_call = matches!(
        choice,
        Some(MessagesToolChoice::Any { .. } | MessagesToolChoice::Tool { .. })
    );
    if must_call && tools.is_empty() {
        let message = "tool_choice: there is no such tool";
        return Err(ApiError::bad_field("tool_choice", message));
    }
    Ok((tools, must_call))
}
