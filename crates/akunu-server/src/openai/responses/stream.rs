//! A response as a stream of events, numbered one after the other.

use serde_json::{Value, json};

use super::{Head, function_call, message, output_text, thought};
use crate::answers::{Finish, Happening, Piece, Usage};
use crate::error::ApiError;
use crate::openai::new_id;
use crate::stream::Writer;

/// An item that is being written.
struct Open {
    id: String,
    is_thought: bool,
    text: String,
}

pub(super) struct Items {
    head: Head,
    n_events: usize,
    done: Vec<Value>,
    open: Option<Open>,
    finish: Option<Finish>,
}

impl Items {
    pub fn new(head: Head) -> Items {
        Items {
            head,
            n_events: 0,
            done: Vec::new(),
            open: None,
            finish: None,
        }
    }

    fn event(&mut self, name: &str, mut data: Value) -> String {
        data["type"] = name.into();
        data["sequence_number"] = self.n_events.into();
        self.n_events += 1;
        format!("event: {name}\ndata: {data}\n\n")
    }

    /// An event about the item that is being written.
    fn about(&mut self, name: &str, id: &str, mut data: Value) -> String {
        data["item_id"] = id.into();
        data["output_index"] = self.done.len().into();
        data["content_index"] = 0.into();
        self.event(name, data)
    }

    fn item(&mut self, name: &str, item: &Value) -> String {
        let data = json!({"output_index": self.done.len(), "item": item});
        self.event(name, data)
    }

    fn add(&mut self, text: &str, is_thought: bool) -> String {
        let mut out = String::new();
        if self
            .open
            .as_ref()
            .is_none_or(|open| open.is_thought != is_thought)
        {
            out += &self.close();
            out += &self.begin_item(is_thought);
        }
        let Some(open) = &mut self.open else {
            return out;
        };
        open.text.push_str(text);
        let id = open.id.clone();
        let name = if is_thought {
            "response.reasoning_text.delta"
        } else {
            "response.output_text.delta"
        };
        out + &self.about(name, &id, json!({"delta": text}))
    }

    fn begin_item(&mut self, is_thought: bool) -> String {
        let id = new_id(if is_thought { "rs_" } else { "msg_" });
        let mut item = if is_thought {
            thought(&id, "")
        } else {
            message(&id, "", "in_progress")
        };
        item["content"] = json!([]);
        let mut out = self.item("response.output_item.added", &item);
        if !is_thought {
            let part = json!({"part": output_text("")});
            out += &self.about("response.content_part.added", &id, part);
        }
        self.open = Some(Open {
            id,
            is_thought,
            text: String::new(),
        });
        out
    }

    fn close(&mut self) -> String {
        let Some(open) = self.open.take() else {
            return String::new();
        };
        let Open { id, text, .. } = &open;
        let (mut out, item) = if open.is_thought {
            let out = self.about("response.reasoning_text.done", id, json!({"text": text}));
            (out, thought(id, text))
        } else {
            let mut out = self.about("response.output_text.done", id, json!({"text": text}));
            let part = json!({"part": output_text(text)});
            out += &self.about("response.content_part.done", id, part);
            (out, message(id, text, "completed"))
        };
        out += &self.item("response.output_item.done", &item);
        self.done.push(item);
        out
    }
}

impl Writer for Items {
    fn begin(&mut self, _: &Usage) -> String {
        let response = self.head.response(Vec::new(), None, None);
        self.event("response.created", json!({"response": response}))
            + &self.event("response.in_progress", json!({"response": response}))
    }

    fn write(&mut self, Happening { what, .. }: Happening) -> String {
        match what {
            Piece::Text(text) => self.add(&text, false),
            Piece::Reasoning(text) => self.add(&text, true),
            Piece::Call(call) => {
                let item = function_call(&call);
                let id = item["id"].as_str().unwrap_or_default().to_string();
                let mut begun = item.clone();
                begun["arguments"] = "".into();
                begun["status"] = "in_progress".into();
                let mut out = self.close() + &self.item("response.output_item.added", &begun);
                let name = "response.function_call_arguments";
                let delta = json!({"delta": call.arguments});
                out += &self.about(&format!("{name}.delta"), &id, delta);
                let whole = json!({"arguments": call.arguments, "name": call.name});
                out += &self.about(&format!("{name}.done"), &id, whole);
                out += &self.item("response.output_item.done", &item);
                self.done.push(item);
                out
            }
            Piece::Ended(finish) => {
                self.finish = Some(finish);
                self.close()
            }
        }
    }

    fn end(&mut self, usage: &Usage) -> String {
        let output = std::mem::take(&mut self.done);
        let response = self.head.response(output, self.finish, Some(usage));
        let name = match self.finish {
            Some(Finish::Length) => "response.incomplete",
            _ => "response.completed",
        };
        self.event(name, json!({"response": response}))
    }

    fn fail(&mut self, error: &ApiError) -> String {
        let data = json!({"code": error.code, "message": error.message, "param": error.param});
        self.event("error", data)
    }
}
