//! A response as it is now, and the items that it is made of.

use akunu::Message;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answers::{Finish, Usage, Whole};
use crate::app::App;
use crate::calls::ToolCall;
use crate::clock::{new_id, now};
use crate::openai::messages::parsed;
use crate::openai::object::CachedTokens;
use crate::question::{calling, template_call};

/// Fields of a request that are in the answer too, as they were given.
#[derive(Clone, Deserialize, JsonSchema)]
pub(crate) struct ResponsesEcho {
    #[serde(default)]
    tools: Vec<Value>,
    tool_choice: Option<Value>,
    /// Whether an answer may call several tools; by default it may.
    pub parallel_tool_calls: Option<bool>,
    /// The response that this one goes on with.
    pub previous_response_id: Option<String>,
    /// Whether later responses can go on with this one; by default they can.
    pub store: Option<bool>,
}

/// A response. Without an end it is in progress.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ResponseBody {
    id: String,
    object: &'static str,
    created_at: u64,
    status: ResponseStatus,
    incomplete_details: Option<IncompleteDetails>,
    error: (),
    model: String,
    output: Vec<OutputItem>,
    parallel_tool_calls: bool,
    previous_response_id: Option<String>,
    store: bool,
    /// As the request has it.
    tool_choice: Value,
    /// As the request has them.
    tools: Vec<Value>,
    usage: Option<ResponseUsage>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResponseStatus {
    InProgress,
    Completed,
    Incomplete,
}

#[derive(Serialize, JsonSchema)]
struct IncompleteDetails {
    reason: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct ResponseUsage {
    input_tokens: usize,
    input_tokens_details: CachedTokens,
    output_tokens: usize,
    output_tokens_details: ReasoningTokens,
    total_tokens: usize,
}

#[derive(Serialize, JsonSchema)]
struct ReasoningTokens {
    reasoning_tokens: usize,
}

/// An item of a response.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputItem {
    Message {
        id: String,
        status: ResponseStatus,
        role: &'static str,
        content: Vec<OutputPart>,
    },
    Reasoning {
        id: String,
        summary: [(); 0],
        content: Vec<OutputPart>,
    },
    FunctionCall {
        id: String,
        call_id: String,
        name: String,
        /// A JSON object, as text.
        arguments: String,
        status: ResponseStatus,
    },
}

/// A text of an item.
#[derive(Clone, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputPart {
    OutputText { text: String, annotations: [(); 0] },
    ReasoningText { text: String },
}

/// What all events of an answer have in common.
pub(super) struct Head {
    id: String,
    created: u64,
    model: String,
    told: ResponsesEcho,
    keeping: Option<Keeping>,
}

/// Where the conversation is kept when the answer has ended, and its messages up to the answer.
pub(super) struct Keeping {
    pub app: App,
    pub messages: Vec<Message>,
}

impl Head {
    pub fn new(model: String, told: ResponsesEcho, keeping: Option<Keeping>) -> Head {
        Head {
            id: new_id("resp_"),
            created: now(),
            model,
            told,
            keeping,
        }
    }

    /// The response at its end, which can be gone on with from now on.
    pub fn ended(
        &mut self,
        output: Vec<OutputItem>,
        finish: Option<Finish>,
        usage: &Usage,
    ) -> ResponseBody {
        if let Some(Keeping { app, mut messages }) = self.keeping.take() {
            messages.extend(output.iter().filter_map(OutputItem::message));
            app.kept.put(&self.id, messages);
        }
        self.response(output, finish, Some(usage))
    }

    /// The response as it is now.
    pub fn response(
        &self,
        output: Vec<OutputItem>,
        finish: Option<Finish>,
        usage: Option<&Usage>,
    ) -> ResponseBody {
        let told = self.told.clone();
        ResponseBody {
            id: self.id.clone(),
            object: "response",
            created_at: self.created,
            status: match finish {
                None => ResponseStatus::InProgress,
                Some(Finish::Length) => ResponseStatus::Incomplete,
                Some(_) => ResponseStatus::Completed,
            },
            incomplete_details: (finish == Some(Finish::Length)).then_some(IncompleteDetails {
                reason: "max_output_tokens",
            }),
            error: (),
            model: self.model.clone(),
            output,
            parallel_tool_calls: told.parallel_tool_calls.unwrap_or(true),
            previous_response_id: told.previous_response_id,
            store: told.store.unwrap_or(true),
            tool_choice: told.tool_choice.unwrap_or_else(|| "auto".into()),
            tools: told.tools,
            usage: usage.map(ResponseUsage::from),
        }
    }
}

impl From<&Usage> for ResponseUsage {
    fn from(usage: &Usage) -> ResponseUsage {
        ResponseUsage {
            input_tokens: usage.prompt,
            input_tokens_details: CachedTokens {
                cached_tokens: usage.cached,
            },
            output_tokens: usage.completion,
            output_tokens_details: ReasoningTokens {
                reasoning_tokens: 0,
            },
            total_tokens: usage.prompt + usage.completion,
        }
    }
}

/// The items of a whole answer.
pub(super) fn items(whole: Whole) -> Vec<OutputItem> {
    let mut items = Vec::new();
    if !whole.reasoning.is_empty() {
        items.push(OutputItem::thought(new_id("rs_"), Some(whole.reasoning)));
    }
    if !whole.text.is_empty() || whole.calls.is_empty() {
        items.push(OutputItem::said(new_id("msg_"), Some(whole.text)));
    }
    items.extend(whole.calls.iter().map(OutputItem::call));
    items
}

impl OutputItem {
    /// What was thought; nothing yet without a text.
    pub fn thought(id: String, text: Option<String>) -> OutputItem {
        let text = text.map(|text| OutputPart::ReasoningText { text });
        OutputItem::Reasoning {
            id,
            summary: [],
            content: text.into_iter().collect(),
        }
    }

    /// What was said; nothing yet without a text.
    pub fn said(id: String, text: Option<String>) -> OutputItem {
        let status = match text {
            Some(_) => ResponseStatus::Completed,
            None => ResponseStatus::InProgress,
        };
        OutputItem::Message {
            id,
            status,
            role: "assistant",
            content: text.map(OutputPart::said).into_iter().collect(),
        }
    }

    /// The message that it is for the next answer; thoughts are none.
    fn message(&self) -> Option<Message> {
        match self {
            OutputItem::Message { content, .. } => {
                let texts = content.iter().map(|part| match part {
                    OutputPart::OutputText { text, .. } | OutputPart::ReasoningText { text } => {
                        text.as_str()
                    }
                });
                Some(Message::new("assistant", texts.collect::<String>()))
            }
            OutputItem::FunctionCall {
                call_id,
                name,
                arguments,
                ..
            } => {
                let arguments = parsed(Value::String(arguments.clone()));
                Some(calling(vec![template_call(Some(call_id), name, arguments)]))
            }
            OutputItem::Reasoning { .. } => None,
        }
    }

    pub fn call(call: &ToolCall) -> OutputItem {
        OutputItem::FunctionCall {
            id: call_item(call),
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            status: if call.is_whole {
                ResponseStatus::Completed
            } else {
                ResponseStatus::Incomplete
            },
        }
    }

    /// A call whose arguments have not been told.
    pub fn begun_call(call: &ToolCall) -> OutputItem {
        OutputItem::FunctionCall {
            id: call_item(call),
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: String::new(),
            status: ResponseStatus::InProgress,
        }
    }
}

impl OutputPart {
    pub fn said(text: String) -> OutputPart {
        OutputPart::OutputText {
            text,
            annotations: [],
        }
    }
}

/// The id of the item that a call is.
pub(super) fn call_item(call: &ToolCall) -> String {
    format!("fc_{}", call.id)
}
