//! Calls that are JSON objects: `{"name": …, "arguments": {…}}`, with the names of fields that models use.

use serde_json::Value;

use super::cursor::{Cursor, Read, Stop};
use super::style::Notation;
use super::tool::{Tool, ToolCall};
use super::value::{any_value, arguments};
use super::written::Written;

/// What has been read of an object.
#[derive(Default)]
struct Fields {
    name: Option<String>,
    /// Arguments that came before the name, or as a text.
    arguments: Option<Written>,
}

/// Reads an object that calls a tool. The call is told as soon as its name is known.
pub(super) fn object(from: &mut Cursor, tools: &[Tool], calls: &mut Vec<ToolCall>) -> Read<()> {
    let at = calls.len();
    let mut fields = Fields::default();
    fields.read(from, tools, calls, at)?;
    let Some(call) = calls.get_mut(at) else {
        return Err(Stop::Mismatch);
    };
    if !call.is_whole {
        let early = fields.arguments.take().unwrap_or_else(|| Written {
            json: "{}".into(),
            complete: 1,
        });
        (call.arguments, call.complete) = (early.json, early.complete);
        call.is_whole = true;
    }
    Ok(())
}

impl Fields {
    fn read(
        &mut self,
        from: &mut Cursor,
        tools: &[Tool],
        calls: &mut Vec<ToolCall>,
        at: usize,
    ) -> Read<()> {
        from.skip_space();
        from.exact("{")?;
        loop {
            from.skip_space();
            if from.peek()? == '}' {
                from.next()?;
                return Ok(());
            }
            let field = json_text(from)?;
            from.skip_space();
            from.exact(":")?;
            from.skip_space();
            match (field.as_str(), from.peek()?) {
                ("name" | "tool_name" | "function" | "tool", '"') => {
                    let name = json_text(from)?;
                    self.named(name, tools, calls)?;
                }
                ("function", '{') => self.read(from, tools, calls, at)?,
                ("arguments" | "parameters", _) => {
                    self.arguments(from, tools, calls.get_mut(at))?
                }
                ("type" | "id" | "tool_call_id" | "description" | "index", _) => {
                    any_value(from, &mut Written::default())?;
                }
                _ => return Err(Stop::Mismatch),
            }
            from.skip_space();
            if from.peek()? != '}' {
                from.exact(",")?;
            }
        }
    }

    fn named(&mut self, name: String, tools: &[Tool], calls: &mut Vec<ToolCall>) -> Read<()> {
        if self.name.is_some() || !tools.iter().any(|tool| tool.name == name) {
            return Err(Stop::Mismatch);
        }
        self.name = Some(name.clone());
        calls.push(ToolCall {
            name,
            ..ToolCall::default()
        });
        Ok(())
    }

    fn arguments(
        &mut self,
        from: &mut Cursor,
        tools: &[Tool],
        call: Option<&mut ToolCall>,
    ) -> Read<()> {
        let mut written = Written::default();
        let read = match from.peek()? {
            '{' => {
                // Objects are read the same way for every tool.
                let tool = tools.first().ok_or(Stop::Mismatch)?;
                arguments(&Notation::Json, from, tool, &mut written)
            }
            '"' => {
                let text = json_text(from)?;
                let mut inner = Cursor::new(&text);
                let tool = tools.first().ok_or(Stop::Mismatch)?;
                arguments(&Notation::Json, &mut inner, tool, &mut written)
                    .map_err(|_| Stop::Mismatch)
            }
            'n' => {
                from.exact("null")?;
                written.json.push_str("{}");
                written.complete = 1;
                Ok(())
            }
            _ => Err(Stop::Mismatch),
        };
        match call {
            Some(call) => {
                call.is_whole = read.is_ok();
                (call.arguments, call.complete) = (written.json, written.complete);
            }
            None => self.arguments = Some(written),
        }
        read
    }
}

/// A text of JSON.
fn json_text(from: &mut Cursor) -> Read<String> {
    if from.peek()? != '"' {
        return Err(Stop::Mismatch);
    }
    let mut written = Written::default();
    any_value(from, &mut written)?;
    match serde_json::from_str(&written.json) {
        Ok(Value::String(text)) => Ok(text),
        _ => Err(Stop::Mismatch),
    }
}
