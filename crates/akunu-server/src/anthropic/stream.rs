//! Messages as they are answered.
//!
//! A stream has `message_start`, then for each block of content `content_block_start`, deltas and `content_block_stop`,
//! then `message_delta` with the reason of the end, and `message_stop`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::MessageError;
use crate::answers::{Finish, Happening, Piece, Usage, Whole};
use crate::calls::ToolCall;
use crate::clock::new_id;
use crate::error::ApiError;
use crate::stream::{Framing, Writer};

/// An answer.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AnsweredMessage {
    r#type: &'static str,
    id: String,
    role: &'static str,
    model: String,
    content: Vec<AnsweredBlock>,
    #[serde(flatten)]
    ended: Ended,
    usage: MessageUsage,
}

/// Why an answer ended; null as long as it has not.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Ended {
    stop_reason: Option<StopReason>,
    stop_sequence: Option<String>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StopReason {
    EndTurn,
    StopSequence,
    MaxTokens,
    ToolUse,
}

/// Tokens that were in the cache are counted apart.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MessageUsage {
    input_tokens: usize,
    cache_read_input_tokens: usize,
    cache_creation_input_tokens: usize,
    output_tokens: usize,
}

/// A part of an answer.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum AnsweredBlock {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
        signature: &'static str,
    },
    ToolUse {
        id: String,
        name: String,
        /// The arguments, as the tool's schema has them.
        input: Map<String, Value>,
    },
}

/// An event of a stream.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum MessageEvent {
    MessageStart {
        message: AnsweredMessage,
    },
    ContentBlockStart {
        index: usize,
        content_block: AnsweredBlock,
    },
    ContentBlockDelta {
        index: usize,
        delta: BlockDelta,
    },
    ContentBlockStop {
        index: usize,
    },
    MessageDelta {
        delta: Ended,
        usage: MessageUsage,
    },
    MessageStop,
    Ping,
    #[serde(untagged)]
    Error(MessageError),
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "type")]
pub(crate) enum BlockDelta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
}

/// What a block of content holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

/// Writes an answer.
pub(crate) struct Blocks {
    id: String,
    model: String,
    /// The one text that ends the answer.
    stop: Option<String>,
    /// The block that is being written.
    open: Option<Kind>,
    /// Its number, or that of the next.
    index: usize,
    finish: Option<Finish>,
}

impl Blocks {
    pub fn new(model: String, stop: Option<String>) -> Blocks {
        Blocks {
            id: new_id("msg_"),
            model,
            stop,
            open: None,
            index: 0,
            finish: None,
        }
    }

    fn message(
        &self,
        content: Vec<AnsweredBlock>,
        finish: Option<Finish>,
        usage: &Usage,
    ) -> AnsweredMessage {
        AnsweredMessage {
            r#type: "message",
            id: self.id.clone(),
            role: "assistant",
            model: self.model.clone(),
            content,
            ended: self.ended(finish),
            usage: usage.into(),
        }
    }

    fn ended(&self, finish: Option<Finish>) -> Ended {
        let is_stop = finish == Some(Finish::StopText);
        Ended {
            stop_reason: finish.map(StopReason::from),
            stop_sequence: self.stop.clone().filter(|_| is_stop),
        }
    }

    /// Makes a block of this kind the one that is being written, and writes more of it.
    fn add(&mut self, kind: Kind, delta: BlockDelta) -> Vec<MessageEvent> {
        let mut out = Vec::new();
        if self.open != Some(kind) {
            out.extend(self.close());
            self.open = Some(kind);
            out.push(self.start(match kind {
                Kind::Text => AnsweredBlock::Text {
                    text: String::new(),
                },
                Kind::Thinking => AnsweredBlock::thought(String::new()),
            }));
        }
        out.push(self.delta(delta));
        out
    }

    fn start(&self, content_block: AnsweredBlock) -> MessageEvent {
        MessageEvent::ContentBlockStart {
            index: self.index,
            content_block,
        }
    }

    fn delta(&self, delta: BlockDelta) -> MessageEvent {
        MessageEvent::ContentBlockDelta {
            index: self.index,
            delta,
        }
    }

    fn close(&mut self) -> Option<MessageEvent> {
        self.open.take().map(|_| self.stop())
    }

    fn stop(&mut self) -> MessageEvent {
        self.index += 1;
        MessageEvent::ContentBlockStop {
            index: self.index - 1,
        }
    }
}

impl Writer for Blocks {
    type Whole = AnsweredMessage;
    type Event = MessageEvent;
    const FRAMING: Framing = Framing::Named;

    fn whole(self, answers: Vec<Whole>, usage: &Usage) -> AnsweredMessage {
        let whole = answers.into_iter().next().unwrap_or_default();
        let finish = whole.finish;
        self.message(content(whole), finish, usage)
    }

    fn begin(&mut self, usage: &Usage) -> Vec<MessageEvent> {
        let message = self.message(Vec::new(), None, usage);
        vec![MessageEvent::MessageStart { message }]
    }

    fn write(&mut self, Happening { what, .. }: Happening) -> Vec<MessageEvent> {
        match what {
            Piece::Text(text) => self.add(Kind::Text, BlockDelta::Text { text }),
            Piece::Reasoning(thinking) => {
                self.add(Kind::Thinking, BlockDelta::Thinking { thinking })
            }
            Piece::Begun(call) => {
                let mut out: Vec<MessageEvent> = self.close().into_iter().collect();
                out.push(self.start(AnsweredBlock::call(&call, Map::new())));
                out
            }
            Piece::Arguments(partial_json) => {
                vec![self.delta(BlockDelta::InputJson { partial_json })]
            }
            Piece::Call(_) => vec![self.stop()],
            Piece::Ended(finish) => {
                self.finish = Some(finish);
                self.close().into_iter().collect()
            }
        }
    }

    fn end(&mut self, usage: &Usage) -> Vec<MessageEvent> {
        let delta = MessageEvent::MessageDelta {
            delta: self.ended(self.finish),
            usage: usage.into(),
        };
        vec![delta, MessageEvent::MessageStop]
    }

    fn fail(&mut self, error: &ApiError) -> MessageEvent {
        MessageEvent::Error(error.into())
    }

    fn ping() -> Option<MessageEvent> {
        Some(MessageEvent::Ping)
    }
}

impl From<Finish> for StopReason {
    fn from(finish: Finish) -> StopReason {
        match finish {
            Finish::End => StopReason::EndTurn,
            Finish::StopText => StopReason::StopSequence,
            Finish::Length => StopReason::MaxTokens,
            Finish::Calls => StopReason::ToolUse,
        }
    }
}

impl From<&Usage> for MessageUsage {
    fn from(usage: &Usage) -> MessageUsage {
        MessageUsage {
            input_tokens: usage.prompt - usage.cached,
            cache_read_input_tokens: usage.cached,
            cache_creation_input_tokens: 0,
            output_tokens: usage.completion,
        }
    }
}

impl AnsweredBlock {
    fn thought(thinking: String) -> AnsweredBlock {
        AnsweredBlock::Thinking {
            thinking,
            signature: "",
        }
    }

    fn call(call: &ToolCall, input: Map<String, Value>) -> AnsweredBlock {
        AnsweredBlock::ToolUse {
            id: call.id.clone(),
            name: call.name.clone(),
            input,
        }
    }
}

fn content(whole: Whole) -> Vec<AnsweredBlock> {
    let mut blocks = Vec::new();
    if !whole.reasoning.is_empty() {
        blocks.push(AnsweredBlock::thought(whole.reasoning));
    }
    if !whole.text.is_empty() {
        blocks.push(AnsweredBlock::Text { text: whole.text });
    }
    let calls = whole.calls.iter();
    blocks.extend(calls.map(|call| AnsweredBlock::call(call, call.object())));
    blocks
}
