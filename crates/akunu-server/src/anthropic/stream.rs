//! A stream of events with names.

use serde_json::{Value, json};

use super::{Head, reason, tool_use, used};
use crate::answers::{Finish, Happening, Piece, Usage};
use crate::error::{self, ApiError};
use crate::stream::Writer;

/// What a block of content holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
}

pub(super) struct Blocks {
    head: Head,
    /// The block that is being written.
    open: Option<Kind>,
    /// Its number, or that of the next.
    index: usize,
    finish: Option<Finish>,
}

impl Blocks {
    pub fn new(head: Head) -> Blocks {
        Blocks {
            head,
            open: None,
            index: 0,
            finish: None,
        }
    }

    /// Makes a block of this kind the one that is being written.
    fn switch(&mut self, kind: Kind) -> String {
        if self.open == Some(kind) {
            return String::new();
        }
        let before = self.close();
        self.open = Some(kind);
        let block = match kind {
            Kind::Text => json!({"type": "text", "text": ""}),
            Kind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        };
        before + &self.start(&block)
    }

    fn start(&self, block: &Value) -> String {
        event(
            "content_block_start",
            json!({"index": self.index, "content_block": block}),
        )
    }

    fn delta(&self, delta: &Value) -> String {
        event(
            "content_block_delta",
            json!({"index": self.index, "delta": delta}),
        )
    }

    fn close(&mut self) -> String {
        match self.open.take() {
            Some(_) => self.stop(),
            None => String::new(),
        }
    }

    fn stop(&mut self) -> String {
        self.index += 1;
        event("content_block_stop", json!({"index": self.index - 1}))
    }
}

impl Writer for Blocks {
    fn begin(&mut self, usage: &Usage) -> String {
        let message = self.head.message(Vec::new(), None, usage);
        event("message_start", json!({"message": message}))
    }

    fn write(&mut self, Happening { what, .. }: Happening) -> String {
        match what {
            Piece::Text(text) => {
                self.switch(Kind::Text) + &self.delta(&json!({"type": "text_delta", "text": text}))
            }
            Piece::Reasoning(text) => {
                let delta = json!({"type": "thinking_delta", "thinking": text});
                self.switch(Kind::Thinking) + &self.delta(&delta)
            }
            Piece::Call(call) => {
                let mut block = tool_use(&call);
                block["input"] = json!({});
                let delta = json!({"type": "input_json_delta", "partial_json": call.arguments});
                self.close() + &self.start(&block) + &self.delta(&delta) + &self.stop()
            }
            Piece::Ended(finish) => {
                self.finish = Some(finish);
                self.close()
            }
        }
    }

    fn end(&mut self, usage: &Usage) -> String {
        let delta = json!({
            "stop_reason": self.finish.map(reason),
            "stop_sequence": self.head.stopped_by(self.finish),
        });
        event(
            "message_delta",
            json!({"delta": delta, "usage": used(usage)}),
        ) + &event("message_stop", json!({}))
    }

    fn fail(&mut self, error: &ApiError) -> String {
        event("error", error::anthropic(error))
    }

    fn ping(&self) -> &'static str {
        "event: ping\ndata: {\"type\": \"ping\"}\n\n"
    }
}

/// An event, with its name in its data too.
fn event(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n")
}
