//! Calls of tools as grammars.
//!
//! Where a tool must be called, the answer is a call and nothing else. Where one may be called and is `strict`, the answer is
//! free until the model begins a call by itself; from there on it must name a tool, and a strict tool gets arguments that are valid
//! by its schema. How a model begins a call is seen by giving its template a made-up one to write:
//!
//! ```text
//! <tool_call>{"name": …, "arguments": {…}}</tool_call>    Hermes, Qwen: a form after the mark; further calls may follow
//! [TOOL_CALLS][{"name": …, "arguments": {…}}, …]          Mistral: a form after the mark
//! [TOOL_CALLS]name[ARGS]{…}                               newer ones: likewise, and further calls
//! {"name": …, "parameters": {…}}                          Llama 3, and models that were told to: an answer that begins with a
//!                                                         bracket is a call, or several
//! ```

use akunu::{EncodeOptions, Grammar, Message, Model, RenderOptions, Tokenizer};
use serde_json::{Map, Value, json};

use super::messages::{Tool, calling, template_call};
use crate::error::ApiError;
use crate::reader::{ARGS, CALL, END_CALL, MISTRAL, PYTHON};

/// A name that no tool has.
const PROBE: &str = "akunu_probe";

/// How a model writes a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Between `<tool_call>` and `</tool_call>`.
    Hermes,
    /// A list after `[TOOL_CALLS]`.
    MistralList,
    /// The name after `[TOOL_CALLS]`, then `[ARGS]` or not, then the arguments.
    MistralNamed { has_mark: bool },
    /// An object, whose arguments have this name.
    Json { arguments: &'static str },
}

impl Style {
    /// How calls are described to a model whose template knows of none.
    pub const TOLD: Style = Style::Json {
        arguments: "arguments",
    };

    /// How a model writes calls, by what its template makes of one. `None` for a way that is not known here.
    pub fn of_model(model: &Model, options: &RenderOptions) -> Option<Style> {
        let call = template_call(Some("call00001"), PROBE, json!({"a": 1}));
        let calling = calling(vec![call]);
        let options = RenderOptions {
            add_generation_prompt: false,
            ..options.clone()
        };
        let asked = Message::new("user", "Hi");
        let ids = model.prompt_with(&[asked, calling], &options).ok()?;
        let bytes = ids
            .iter()
            .filter_map(|id| model.tokenizer().token_bytes(*id));
        let bytes: Vec<u8> = bytes.flatten().collect();
        Style::of_text(&String::from_utf8_lossy(&bytes))
    }

    fn of_text(written: &str) -> Option<Style> {
        let at = written.rfind(PROBE)?;
        let (before, after) = (&written[..at], &written[at + PROBE.len()..]);
        let begins = |mark: &str, then: &str| {
            let (_, between) = before.rsplit_once(mark)?;
            let between: String = between.split_whitespace().collect();
            (between == then).then_some(())
        };
        if begins(CALL, "{\"name\":\"").is_some() {
            return Some(Style::Hermes);
        }
        if begins(MISTRAL, "[{\"name\":\"").is_some() {
            return Some(Style::MistralList);
        }
        if begins(MISTRAL, "").is_some() {
            let has_mark = after.starts_with(ARGS);
            return Some(Style::MistralNamed { has_mark });
        }
        begins("{", "\"name\":\"")?;
        let rest: String = after.split_whitespace().collect();
        let named = |name: &&str| rest.starts_with(&format!("\",\"{name}\":{{"));
        let arguments = ["parameters", "arguments"].into_iter().find(named)?;
        Some(Style::Json { arguments })
    }

    /// The grammar of an answer that may call these tools, beginning within a thought or not.
    pub fn grammar(self, model: &Model, tools: &[Tool], thinks: bool) -> Result<Grammar, ApiError> {
        let form = match self {
            Style::Hermes => self.hermes(model, tools),
            Style::MistralList => return Ok(self.list(model, tools)?.starting_after(MISTRAL)),
            Style::MistralNamed { has_mark } => named(model, tools, has_mark),
            Style::Json { .. } => self.json(model, tools),
        };
        // A schema that cannot be used is told of in its own words, and one that is too large does not get further.
        self.list(model, tools)?;
        let grammar = Grammar::lark(model, &form).map_err(wrong)?;
        Ok(match self {
            Style::Hermes => grammar.starting_after(CALL),
            Style::MistralList | Style::MistralNamed { .. } => grammar.starting_after(MISTRAL),
            Style::Json { .. } if thinks => grammar.starting_after("</think>"),
            Style::Json { .. } => grammar,
        })
    }

    fn hermes(self, model: &Model, tools: &[Tool]) -> String {
        let mark = |text| mark(model.tokenizer(), text);
        let (begin, end) = (mark(CALL), mark(END_CALL));
        let call = in_lark(&self.call(tools));
        format!(
            "start: SPACE? call SPACE? {end} (SPACE? {begin} SPACE? call SPACE? {end})*\n\
             call: %json {call}\n\
             SPACE: /[ \\t\\r\\n]{{1,8}}/"
        )
    }

    fn json(self, model: &Model, tools: &[Tool]) -> String {
        let python = control(model.tokenizer(), PYTHON);
        let python = python.map_or(String::new(), |token| format!("{token}?"));
        let call = in_lark(&self.call(tools));
        let list = in_lark(&self.call_list(tools));
        format!(
            "start: (TEXT | SPACE? {python} (call (SEPARATOR call)* | list))?\n\
             call: %json {call}\n\
             list: %json {list}\n\
             TEXT: /\\s*([^{{\\[\\s]|\\[\\s*[^{{\\s])(.|\\n)*/\n\
             SEPARATOR: /[ \\n]{{0,2}}[;,\\n][ \\n]{{0,2}}/\n\
             SPACE: /[ \\t\\r\\n]{{1,8}}/"
        )
    }

    /// A list of calls, as a grammar.
    fn list(self, model: &Model, tools: &[Tool]) -> Result<Grammar, ApiError> {
        Grammar::json_schema(model, &self.call_list(tools).to_string()).map_err(wrong)
    }

    fn call_list(self, tools: &[Tool]) -> Value {
        let mut schema = self.call(tools);
        let any = schema["anyOf"].take();
        schema["type"] = "array".into();
        schema["minItems"] = 1.into();
        schema["items"] = json!({"anyOf": any});
        if let Some(schema) = schema.as_object_mut() {
            schema.remove("anyOf");
        }
        schema
    }

    /// The schema of a call of any of these tools; those that are not strict take any arguments.
    fn call(self, tools: &[Tool]) -> Value {
        let arguments = match self {
            Style::Json { arguments } => arguments,
            _ => "arguments",
        };
        let mut schema = any_call(tools, arguments, |tool| tool.strict);
        if self == Style::MistralList {
            let id = json!({"type": "string", "pattern": "^[A-Za-z0-9]{9}$"});
            for call in schema["anyOf"].as_array_mut().into_iter().flatten() {
                call["properties"]["id"] = id.clone();
            }
        }
        schema
    }
}

/// `name[ARGS]{…}`, once or several times.
fn named(model: &Model, tools: &[Tool], has_mark: bool) -> String {
    let mark = |text| mark(model.tokenizer(), text);
    let args = if has_mark { mark(ARGS) } else { String::new() };
    let one = |tool: &Tool| {
        let name = json!(tool.name);
        let schema = in_lark(&arguments(tool, tool.strict));
        format!("{name} {args} %json {schema}")
    };
    let any: Vec<String> = tools.iter().map(one).collect();
    format!(
        "start: call ({} call)*\ncall: {}",
        mark(MISTRAL),
        any.join("\n    | ")
    )
}

/// The schema of a call of any of these tools. `is_forced` says whose arguments must be valid.
pub(super) fn any_call(
    tools: &[Tool],
    arguments_name: &str,
    is_forced: impl Fn(&Tool) -> bool,
) -> Value {
    let mut definitions = Map::new();
    let mut calls = Vec::new();
    for (n, tool) in tools.iter().enumerate() {
        let mut schema = arguments(tool, is_forced(tool));
        move_references(&mut schema, &format!("#/$defs/tool{n}"));
        definitions.insert(format!("tool{n}"), schema);
        let given = json!({"$ref": format!("#/$defs/tool{n}")});
        calls.push(json!({
            "type": "object",
            "properties": {"name": {"const": tool.name}, arguments_name: given},
            "required": ["name", arguments_name],
            "additionalProperties": false,
        }));
    }
    json!({"anyOf": calls, "$defs": definitions})
}

/// The schema of a tool's arguments, without further properties unless it speaks of them: a small model that may add some does
/// not come to an end.
fn arguments(tool: &Tool, is_forced: bool) -> Value {
    let Some(schema) = tool.parameters.as_object().filter(|_| is_forced) else {
        return json!({"type": "object"});
    };
    let mut schema = schema.clone();
    if schema.contains_key("properties") {
        let further = schema.entry("additionalProperties");
        further.or_insert(Value::Bool(false));
    }
    Value::Object(schema)
}

/// Makes references to the schema's own root (`#/$defs/…`) hold where the schema becomes a part of another one.
fn move_references(schema: &mut Value, to: &str) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, to)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(path) if name == "$ref" && path.starts_with('#') => {
                        *path = format!("{to}{}", &path[1..]);
                    }
                    value => move_references(value, to),
                }
            }
        }
        _ => {}
    }
}

/// A schema as a part of a Lark grammar.
fn in_lark(schema: &Value) -> String {
    Grammar::lark_schema(&schema.to_string())
}

/// A mark in a Lark grammar: a control token where it is one, or else its text.
fn mark(tokenizer: &Tokenizer, text: &str) -> String {
    control(tokenizer, text).unwrap_or_else(|| json!(text).to_string())
}

fn control(tokenizer: &Tokenizer, text: &str) -> Option<String> {
    let options = EncodeOptions {
        add_special: false,
        parse_special: true,
    };
    match tokenizer.encode(text, options)[..] {
        [id] if tokenizer.is_control(id) => Some(format!("<[{id}]>")),
        _ => None,
    }
}

fn wrong(error: akunu::GrammarError) -> ApiError {
    ApiError::bad_field("tools", format!("tools: {error}"))
}

#[cfg(test)]
mod tests;
