//! A response as a stream of events, numbered one after the other.

use schemars::JsonSchema;
use serde::Serialize;

use super::answer::{Head, OutputItem, OutputPart, ResponseBody, call_item, items};
use crate::answers::{Finish, Happening, Piece, Usage, Whole};
use crate::calls::ToolCall;
use crate::clock::new_id;
use crate::error::ApiError;
use crate::stream::{Framing, Writer};

/// An event with its number.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ResponseEvent {
    sequence_number: usize,
    #[serde(flatten)]
    event: ResponseEventKind,
}

#[derive(Serialize, JsonSchema)]
#[serde(tag = "type")]
enum ResponseEventKind {
    #[serde(rename = "response.created")]
    Created { response: ResponseBody },
    #[serde(rename = "response.in_progress")]
    InProgress { response: ResponseBody },
    #[serde(rename = "response.completed")]
    Completed { response: ResponseBody },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: ResponseBody },
    #[serde(rename = "response.output_item.added")]
    ItemAdded {
        output_index: usize,
        item: OutputItem,
    },
    #[serde(rename = "response.output_item.done")]
    ItemDone {
        output_index: usize,
        item: OutputItem,
    },
    #[serde(rename = "response.content_part.added")]
    PartAdded {
        #[serde(flatten)]
        place: ResponsePlace,
        part: OutputPart,
    },
    #[serde(rename = "response.content_part.done")]
    PartDone {
        #[serde(flatten)]
        place: ResponsePlace,
        part: OutputPart,
    },
    #[serde(rename = "response.output_text.delta")]
    TextDelta {
        #[serde(flatten)]
        place: ResponsePlace,
        delta: String,
    },
    #[serde(rename = "response.output_text.done")]
    TextDone {
        #[serde(flatten)]
        place: ResponsePlace,
        text: String,
    },
    #[serde(rename = "response.reasoning_text.delta")]
    ReasoningDelta {
        #[serde(flatten)]
        place: ResponsePlace,
        delta: String,
    },
    #[serde(rename = "response.reasoning_text.done")]
    ReasoningDone {
        #[serde(flatten)]
        place: ResponsePlace,
        text: String,
    },
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta {
        #[serde(flatten)]
        place: ResponsePlace,
        delta: String,
    },
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone {
        #[serde(flatten)]
        place: ResponsePlace,
        arguments: String,
        name: String,
    },
    #[serde(rename = "error")]
    Error {
        code: Option<&'static str>,
        message: String,
        param: Option<String>,
    },
}

/// Which text an event is about.
#[derive(Clone, Serialize, JsonSchema)]
struct ResponsePlace {
    item_id: String,
    output_index: usize,
    content_index: usize,
}

/// An item that is being written.
struct Open {
    place: ResponsePlace,
    is_thought: bool,
    text: String,
}

/// Writes the answer.
pub(crate) struct Items {
    head: Head,
    n_events: usize,
    done: Vec<OutputItem>,
    open: Option<Open>,
    /// The call that is being written.
    call: Option<ResponsePlace>,
    finish: Option<Finish>,
}

impl Items {
    pub(super) fn new(head: Head) -> Items {
        Items {
            head,
            n_events: 0,
            done: Vec::new(),
            open: None,
            call: None,
            finish: None,
        }
    }

    fn number(&mut self, events: Vec<ResponseEventKind>) -> Vec<ResponseEvent> {
        let number = |event| {
            self.n_events += 1;
            ResponseEvent {
                sequence_number: self.n_events - 1,
                event,
            }
        };
        events.into_iter().map(number).collect()
    }

    /// The place of the item that comes next.
    fn place(&self, item_id: String) -> ResponsePlace {
        ResponsePlace {
            item_id,
            output_index: self.done.len(),
            content_index: 0,
        }
    }

    fn add(&mut self, text: String, is_thought: bool, out: &mut Vec<ResponseEventKind>) {
        if !matches!(&self.open, Some(open) if open.is_thought == is_thought) {
            self.close(out);
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin_item(is_thought, out),
        };
        open.text.push_str(&text);
        let (place, delta) = (open.place.clone(), text);
        out.push(if is_thought {
            ResponseEventKind::ReasoningDelta { place, delta }
        } else {
            ResponseEventKind::TextDelta { place, delta }
        });
        self.open = Some(open);
    }

    fn begin_item(&self, is_thought: bool, out: &mut Vec<ResponseEventKind>) -> Open {
        let id = new_id(if is_thought { "rs_" } else { "msg_" });
        let place = self.place(id.clone());
        out.push(ResponseEventKind::ItemAdded {
            output_index: place.output_index,
            item: if is_thought {
                OutputItem::thought(id, None)
            } else {
                OutputItem::said(id, None)
            },
        });
        if !is_thought {
            out.push(ResponseEventKind::PartAdded {
                place: place.clone(),
                part: OutputPart::said(String::new()),
            });
        }
        Open {
            place,
            is_thought,
            text: String::new(),
        }
    }

    fn close(&mut self, out: &mut Vec<ResponseEventKind>) {
        let Some(open) = self.open.take() else {
            return;
        };
        let (place, text, id) = (open.place.clone(), open.text.clone(), open.place.item_id);
        let item = if open.is_thought {
            out.push(ResponseEventKind::ReasoningDone { place, text });
            OutputItem::thought(id, Some(open.text))
        } else {
            out.push(ResponseEventKind::TextDone {
                place: place.clone(),
                text: text.clone(),
            });
            let part = OutputPart::said(text);
            out.push(ResponseEventKind::PartDone { place, part });
            OutputItem::said(id, Some(open.text))
        };
        self.finish_item(item, out);
    }

    fn finish_item(&mut self, item: OutputItem, out: &mut Vec<ResponseEventKind>) {
        out.push(ResponseEventKind::ItemDone {
            output_index: self.done.len(),
            item: item.clone(),
        });
        self.done.push(item);
    }

    fn begin_call(&mut self, call: &ToolCall, out: &mut Vec<ResponseEventKind>) {
        self.close(out);
        let place = self.place(call_item(call));
        out.push(ResponseEventKind::ItemAdded {
            output_index: place.output_index,
            item: OutputItem::begun_call(call),
        });
        self.call = Some(place);
    }

    fn end_call(&mut self, call: &ToolCall, out: &mut Vec<ResponseEventKind>) {
        if let Some(place) = self.call.take() {
            out.push(ResponseEventKind::ArgumentsDone {
                place,
                arguments: call.arguments.clone(),
                name: call.name.clone(),
            });
        }
        self.finish_item(OutputItem::call(call), out);
    }
}

impl Writer for Items {
    type Whole = ResponseBody;
    type Event = ResponseEvent;
    const FRAMING: Framing = Framing::Named;

    fn whole(mut self, answers: Vec<Whole>, usage: &Usage) -> ResponseBody {
        let whole = answers.into_iter().next().unwrap_or_default();
        let finish = whole.finish;
        self.head.ended(items(whole), finish, usage)
    }

    fn begin(&mut self, _: &Usage) -> Vec<ResponseEvent> {
        let response = || self.head.response(Vec::new(), None, None);
        let (created, begun) = (response(), response());
        self.number(vec![
            ResponseEventKind::Created { response: created },
            ResponseEventKind::InProgress { response: begun },
        ])
    }

    fn write(&mut self, Happening { what, .. }: Happening) -> Vec<ResponseEvent> {
        let mut out = Vec::new();
        match what {
            Piece::Text(text) => self.add(text, false, &mut out),
            Piece::Reasoning(text) => self.add(text, true, &mut out),
            Piece::Begun(call) => self.begin_call(&call, &mut out),
            Piece::Arguments(delta) => out.extend(
                self.call
                    .clone()
                    .map(|place| ResponseEventKind::ArgumentsDelta { place, delta }),
            ),
            Piece::Call(call) => self.end_call(&call, &mut out),
            Piece::Ended(finish) => {
                self.finish = Some(finish);
                self.close(&mut out);
            }
        }
        self.number(out)
    }

    fn end(&mut self, usage: &Usage) -> Vec<ResponseEvent> {
        let output = std::mem::take(&mut self.done);
        let response = self.head.ended(output, self.finish, usage);
        self.number(vec![match self.finish {
            Some(Finish::Length) => ResponseEventKind::Incomplete { response },
            _ => ResponseEventKind::Completed { response },
        }])
    }

    fn fail(&mut self, error: &ApiError) -> ResponseEvent {
        self.n_events += 1;
        ResponseEvent {
            sequence_number: self.n_events - 1,
            event: ResponseEventKind::Error {
                code: error.code,
                message: error.message.clone(),
                param: error.param.clone(),
            },
        }
    }
}
