//! `/v1/chat/completions`
//!
//! A stream has, in this order: a delta with the role; deltas with reasoning, text and calls; an empty delta with
//! `finish_reason`; for `include_usage` a chunk without choices; `[DONE]`.

use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::forms::Forms;
use super::logprobs::ChatLogprobs;
use super::making::{Making, StreamOptions};
use super::messages::{Message, normal};
use super::object::{Chunk, Completion, FinishReason, Head};
use super::tools::{Function, ToolChoice, ToolField, tools};
use crate::answers::{Happening, Piece, Scored, Usage, Whole};
use crate::app::App;
use crate::body::All;
use crate::calls;
use crate::error::ApiError;
use crate::question::{Conversation, Ending, Format, FurtherSampling, ask};
use crate::stream::{Framing, Reply, Writer};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ChatRequest {
    model: Option<String>,
    #[schemars(length(min = 1))]
    messages: Vec<Message>,
    tools: Option<Vec<ToolField>>,
    tool_choice: Option<ToolChoice>,
    /// Whether an answer may call several tools; by default it may.
    parallel_tool_calls: Option<bool>,
    /// An older name of `tools`, without an object around each.
    functions: Option<Vec<Function>>,
    /// An older name of `tool_choice`: `none`, `auto` or `{"name": …}`.
    function_call: Option<ToolChoice>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// What the template gets to know besides, as vLLM and llama.cpp call it.
    chat_template_kwargs: Option<Map<String, Value>>,
    /// Go on with the assistant's last message, as vLLM has it.
    continue_final_message: Option<bool>,
    add_generation_prompt: Option<bool>,
}

impl ChatRequest {
    fn ending(&self) -> Result<Ending, ApiError> {
        match (self.continue_final_message, self.add_generation_prompt) {
            (Some(true), Some(true)) => Err(ApiError::bad_field(
                "continue_final_message",
                "continue_final_message and add_generation_prompt exclude each other",
            )),
            (Some(true), _) => Ok(Ending::LastMessage),
            (_, Some(false)) => Ok(Ending::Nothing),
            _ => Ok(Ending::Answer),
        }
    }
}

/// Answers a conversation.
pub(crate) async fn chat(
    State(app): State<App>,
    All((request, making, further, forms)): All<(ChatRequest, Making, FurtherSampling, Forms)>,
) -> Result<Reply<Chat>, ApiError> {
    let limits = app.options.limits;
    let wish = further.over(making.wish(&limits)?, limits.stops)?;
    if wish.max_tokens == Some(0) {
        let message = "max_tokens must be 1 or more";
        return Err(ApiError::bad_field("max_tokens", message));
    }
    let ending = request.ending()?;
    // Who asks in the older way is answered in it, which has one call.
    let is_legacy = request.tools.is_none() && request.functions.is_some();
    let (given, choice) = if is_legacy {
        (request.functions, request.function_call)
    } else {
        (request.tools.map(ToolField::functions), request.tool_choice)
    };
    let (tools, must_call) = tools(given.unwrap_or_default(), choice, &limits)?;
    let format = forms.format()?;
    let conversation = Conversation {
        messages: normal(request.messages)?,
        tools,
        one_call: is_legacy || request.parallel_tool_calls == Some(false),
        format: if must_call { Format::Call } else { format },
        variables: request.chat_template_kwargs.unwrap_or_default(),
        ending,
    };
    let name = app.models.find(request.model.as_deref())?.name.clone();
    let engine = app.models.engine(request.model.as_deref()).await?;
    let n_calls = vec![0; wish.n];
    let answers = ask(&engine, conversation.prompt(&engine).await?, wish)?;
    let with_usage = request.stream_options.unwrap_or_default().include_usage;
    let head = Head::new("chatcmpl-", name, with_usage);
    let is_stream = request.stream.unwrap_or_default();
    let chat = Chat {
        head,
        n_calls,
        is_legacy,
    };
    Reply::new(answers, chat, is_stream, limits.answering).await
}

/// One of the answers.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChatChoice {
    index: usize,
    message: ChatAnswer,
    logprobs: Option<ChatLogprobs>,
    finish_reason: Option<FinishReason>,
}

/// What the assistant says; null where it only calls tools.
#[derive(Serialize, JsonSchema)]
struct ChatAnswer {
    role: &'static str,
    content: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning_content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<CalledFunction>,
}

/// What one of the answers goes on with.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChatDelta {
    index: usize,
    delta: Delta,
    logprobs: Option<ChatLogprobs>,
    finish_reason: Option<FinishReason>,
}

#[derive(Default, Serialize, JsonSchema)]
struct Delta {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<CalledFunction>,
}

/// A call, or a part of one in a streamed answer: first its name, then more and more of its arguments.
#[derive(Serialize, JsonSchema)]
struct ToolCall {
    /// Of the calls of a streamed answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    function: CalledFunction,
}

/// The arguments are a JSON object, as text; the beginning of one where the answer was cut.
#[derive(Serialize, JsonSchema)]
struct CalledFunction {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    arguments: String,
}

impl ChatChoice {
    fn of((index, whole): (usize, Whole), is_legacy: bool) -> ChatChoice {
        let is_silent = whole.text.is_empty() && !whole.calls.is_empty();
        let finish = whole.finish.map(|why| FinishReason::of(why, is_legacy));
        let mut calls = whole.calls.into_iter();
        let function_call = match is_legacy {
            true => calls.next().map(CalledFunction::from),
            false => None,
        };
        ChatChoice {
            index,
            logprobs: ChatLogprobs::of(&whole.scored),
            finish_reason: finish,
            message: ChatAnswer {
                role: "assistant",
                content: (!is_silent).then_some(whole.text),
                reasoning_content: whole.reasoning,
                tool_calls: calls.map(|call| ToolCall::of(call, None)).collect(),
                function_call,
            },
        }
    }
}

impl ToolCall {
    fn of(call: calls::ToolCall, index: Option<usize>) -> ToolCall {
        ToolCall {
            index,
            id: Some(call.id.clone()),
            r#type: Some("function"),
            function: call.into(),
        }
    }
}

impl From<calls::ToolCall> for CalledFunction {
    fn from(call: calls::ToolCall) -> CalledFunction {
        CalledFunction {
            name: Some(call.name),
            arguments: call.arguments,
        }
    }
}

/// Writes the answers.
pub(crate) struct Chat {
    head: Head,
    /// Calls that each answer has begun.
    n_calls: Vec<usize>,
    /// Whether calls are written in the older way.
    is_legacy: bool,
}

const PART: &str = "chat.completion.chunk";

impl Chat {
    fn part(
        &self,
        index: usize,
        delta: Delta,
        finish_reason: Option<FinishReason>,
        scored: &[Scored],
    ) -> Chunk<ChatDelta> {
        let logprobs = ChatLogprobs::of(scored);
        let choice = ChatDelta {
            index,
            delta,
            logprobs,
            finish_reason,
        };
        self.head.part(PART, choice)
    }

    /// A call that begins, or more of its arguments.
    fn call(&mut self, index: usize, call: ToolCall) -> Delta {
        let mut delta = Delta::default();
        if self.is_legacy {
            delta.function_call = Some(call.function);
            return delta;
        }
        self.n_calls[index] += usize::from(call.id.is_some());
        delta.tool_calls.push(ToolCall {
            index: Some(self.n_calls[index].saturating_sub(1)),
            ..call
        });
        delta
    }
}

impl Writer for Chat {
    type Whole = Completion<ChatChoice>;
    type Event = Chunk<ChatDelta>;
    const FRAMING: Framing = Framing::Data;

    fn whole(self, answers: Vec<Whole>, usage: &Usage) -> Completion<ChatChoice> {
        let is_legacy = self.is_legacy;
        let choices = answers.into_iter().enumerate();
        let choices = choices.map(|one| ChatChoice::of(one, is_legacy));
        self.head.whole("chat.completion", choices.collect(), usage)
    }

    fn begin(&mut self, _: &Usage) -> Vec<Chunk<ChatDelta>> {
        let role = |index| {
            let delta = Delta {
                role: Some("assistant"),
                content: Some(String::new()),
                ..Delta::default()
            };
            self.part(index, delta, None, &[])
        };
        (0..self.n_calls.len()).map(role).collect()
    }

    fn write(&mut self, happening: Happening) -> Vec<Chunk<ChatDelta>> {
        let index = happening.choice;
        let mut delta = Delta::default();
        let mut finish = None;
        match happening.what {
            Piece::Text(text) => delta.content = Some(text),
            Piece::Reasoning(text) => delta.reasoning_content = Some(text),
            Piece::Begun(call) => delta = self.call(index, ToolCall::of(call, None)),
            Piece::Arguments(arguments) => {
                let function = CalledFunction {
                    name: None,
                    arguments,
                };
                let more = ToolCall {
                    index: None,
                    id: None,
                    r#type: None,
                    function,
                };
                delta = self.call(index, more);
            }
            // All of it was written.
            Piece::Call(_) if happening.scored.is_empty() => return Vec::new(),
            Piece::Call(_) => {}
            Piece::Ended(why) => finish = Some(FinishReason::of(why, self.is_legacy)),
        }
        vec![self.part(index, delta, finish, &happening.scored)]
    }

    fn end(&mut self, usage: &Usage) -> Vec<Chunk<ChatDelta>> {
        self.head.last(PART, usage)
    }

    fn fail(&mut self, error: &ApiError) -> Chunk<ChatDelta> {
        Chunk::Failed(error.into())
    }
}
