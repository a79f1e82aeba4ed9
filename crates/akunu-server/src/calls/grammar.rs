//! The grammar of calls in a style.
//!
//! ```text
//! must call   start: lead open call (between call)* close
//! may call    free up to the mark with which a section begins; then the rest of it. In a style without a mark, an answer that
//!             begins with a bracket is a call
//! ```

use akunu::{EncodeOptions, Grammar, GrammarError, Model, Tokenizer};
use serde_json::Value;

use super::lark_value::{Rules, quoted};
use super::schema::{any_call, of_arguments};
use super::style::{Element, Notation, Style, Tags};
use super::tagged::Kind;
use super::tool::{Tool, resolved};
use crate::error::ApiError;

/// What is known of an answer that calls tools.
pub(crate) struct Answering<'a> {
    pub model: &'a Model,
    pub tools: &'a [Tool],
    /// Whether it has to.
    pub must_call: bool,
    /// Whether it may call more than once.
    pub many: bool,
    /// The end of the thought within which it begins.
    pub thought: Option<&'static str>,
}

/// The grammar of an answer, if there is something to enforce. Tools that are not strict take any arguments if their schemas
/// cannot be enforced.
pub(crate) fn grammar(style: &Style, answer: &Answering) -> Result<Option<Grammar>, ApiError> {
    let has_strict = answer.tools.iter().any(|tool| tool.strict);
    let is_strict_object = has_strict && style.trigger() == "{";
    let is_enforced = answer.must_call || style.has_mark() || is_strict_object;
    if !is_enforced {
        return Ok(None);
    }
    // Without a mark a call is enforced only for the sake of strict tools.
    let is_plain = !answer.must_call && !style.has_mark();
    let none = |tool: &Tool| is_plain && !tool.strict;
    let grammar = match compiled(style, answer, answer.tools, &none) {
        Ok(grammar) => grammar,
        Err(_) => {
            let mut free = Vec::new();
            for tool in answer.tools {
                let alone = compiled(style, answer, std::slice::from_ref(tool), &none);
                match alone {
                    Ok(_) => {}
                    Err(why) if tool.strict => return Err(wrong(style, tool, &why)),
                    Err(_) => free.push(tool.name.clone()),
                }
            }
            let is_free = |tool: &Tool| none(tool) || free.contains(&tool.name);
            let compiled = compiled(style, answer, answer.tools, &is_free);
            compiled.map_err(|error| ApiError::bad_field("tools", format!("tools: {error}")))?
        }
    };
    let after = match (answer.must_call, style.has_mark()) {
        (false, true) => style.trigger(),
        _ => answer.thought.unwrap_or_default(),
    };
    Ok(Some(grammar.starting_after(after)))
}

fn wrong(style: &Style, tool: &Tool, error: &GrammarError) -> ApiError {
    let (tool, style) = (&tool.name, style.name);
    let message =
        format!("tools: the parameters of `{tool}`, called in the style of {style}: {error}");
    ApiError::bad_field("tools", message)
}

fn compiled(
    style: &Style,
    answer: &Answering,
    tools: &[Tool],
    is_free: &dyn Fn(&Tool) -> bool,
) -> Result<Grammar, GrammarError> {
    let writer = Writer {
        tokenizer: answer.model.tokenizer(),
        tools,
        is_free,
        rules: Rules::default(),
    };
    let lark = writer.lark(style, answer);
    let lark = lark.map_err(|why| GrammarError::Unsupported { why })?;
    Grammar::lark(answer.model, &lark)
}

/// Writes a grammar in Lark.
struct Writer<'a> {
    tokenizer: &'a Tokenizer,
    tools: &'a [Tool],
    /// Which tools take any arguments.
    is_free: &'a dyn Fn(&Tool) -> bool,
    rules: Rules,
}

impl Writer<'_> {
    /// The whole grammar, or which part of a schema it cannot say.
    fn lark(mut self, style: &Style, answer: &Answering) -> Result<String, String> {
        let (open, call) = (style.open, style.call);
        let is_lazy = !answer.must_call && style.has_mark();
        let (open, first) = match (is_lazy, open.is_empty()) {
            (true, true) => (open, &call[1..]),
            (true, false) => (&open[1..], call),
            (false, _) => (open, call),
        };
        let mut start = self.elements(open, None)?;
        let first = self.any_call(first)?;
        start.push_str(&format!(" {first}"));
        // Without a mark a small model that has to call would go on and on.
        if answer.many && (style.has_mark() || !answer.must_call) {
            let between = self.elements(style.between, None)?;
            let next = self.any_call(call)?;
            start.push_str(&format!(" ({between} {next})*"));
        }
        start.push_str(&self.elements(style.close, None)?);
        let start = match (answer.must_call, style.has_mark()) {
            (true, _) => format!("SPACE? {} {start}", self.elements(style.lead, None)?),
            (false, true) => start,
            (false, false) => {
                let list = self.any_call(call)?;
                let list = format!("\"[\" SPACE? {list} (COMMA {list})* SPACE? \"]\"");
                format!("(NO_CALL | SPACE? ({start} | {list}))?")
            }
        };
        let rules = self.rules.text;
        Ok(format!("start: {start}\n{rules}{TERMINALS}"))
    }

    /// A call of any of the tools, as the name of a rule.
    fn any_call(&mut self, elements: &[Element]) -> Result<String, String> {
        let ways = if has_name(elements) {
            let ways = self
                .tools
                .iter()
                .map(|tool| self.elements(elements, Some(tool)));
            ways.collect::<Result<Vec<_>, _>>()?.join("\n    |")
        } else {
            self.elements(elements, None)?
        };
        Ok(self.rules.add(&ways))
    }

    /// Parts one after the other, of a call of this tool.
    fn elements(&mut self, elements: &[Element], tool: Option<&Tool>) -> Result<String, String> {
        let mut all = String::new();
        for element in elements {
            all.push(' ');
            all.push_str(&self.element(element, tool)?);
        }
        Ok(all)
    }

    fn element(&mut self, element: &Element, tool: Option<&Tool>) -> Result<String, String> {
        Ok(match element {
            // The token that ends a turn is not forced: the answer may end there by itself.
            Element::Mark(text) if is_end(self.tokenizer, text) => String::new(),
            Element::Mark(text) => self.mark(text),
            Element::Text(text) => quoted(text),
            Element::Space => "SPACE?".into(),
            Element::OneOf(ways) => {
                let ways = ways.iter().map(|way| self.elements(way, tool));
                let ways = ways.collect::<Result<Vec<_>, _>>()?;
                let is_maybe = ways.iter().any(String::is_empty);
                let ways: Vec<&str> = ways
                    .iter()
                    .map(|way| &way[..])
                    .filter(|way| !way.is_empty())
                    .collect();
                let mark = if is_maybe { "?" } else { "" };
                format!("({}){mark}", ways.join(" |"))
            }
            Element::Name => tool.map_or(String::new(), |tool| quoted(&tool.name)),
            Element::Id => "ID".into(),
            Element::Object(fields) => {
                let schema = any_call(self.tools, fields, self.is_free);
                self.rules.json(&schema)
            }
            Element::Arguments(notation) => match tool {
                Some(tool) => self.arguments(notation, tool)?,
                None => String::new(),
            },
        })
    }

    fn arguments(&mut self, notation: &Notation, tool: &Tool) -> Result<String, String> {
        let is_free = (self.is_free)(tool);
        let schema = of_arguments(tool, is_free);
        match notation {
            Notation::Json => Ok(self.rules.json(&schema)),
            Notation::Python => self.rules.python(&schema),
            Notation::Quoted(mark) => {
                let mark = self.mark(mark);
                self.rules.quoted(&schema, &mark)
            }
            Notation::Tagged(tags) => self.tagged(tags, &schema),
        }
    }

    /// Arguments with a tag each, in the order of the schema.
    fn tagged(&mut self, tags: &Tags, schema: &Value) -> Result<String, String> {
        let end = match control(self.tokenizer, tags.after_value) {
            Some(token) => End::Token(token),
            None => End::Text(tags.after_value),
        };
        let before = self.mark(tags.before_name);
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            let text = self.tagged_text(tags, &end);
            let [after, after_json] = tags
                .after_name
                .map(|text| format!("{text}{}", tags.padding));
            let mut value = format!("{} {text}", quoted(&after));
            if after != after_json {
                let (json, end) = (self.rules.json(&Value::Bool(true)), end.after(tags.padding));
                value = format!("({value} | {} {json} {end})", quoted(&after_json));
            }
            return Ok(format!("(SPACE? {before} KEY {value})*"));
        };
        let required = schema.get("required").and_then(Value::as_array);
        let mut all = String::new();
        for (name, property) in properties {
            let property = resolved(schema, property);
            let kind = Kind::of(Some(property));
            let after = tags.after_name[usize::from(kind == Kind::Json)];
            let after = quoted(&format!("{after}{}", tags.padding));
            let value = match (kind, property.get("enum").or(property.get("const"))) {
                (Kind::Text, Some(values)) => self.tagged_choice(tags, &end, values),
                (Kind::Json, _) => {
                    let mut property = property.clone();
                    for key in ["$defs", "definitions"] {
                        if let Some(shared) = schema.get(key) {
                            property[key] = shared.clone();
                        }
                    }
                    let json = self.rules.json(&property);
                    format!("{json} {}", end.after(tags.padding))
                }
                _ => {
                    unlimited(property)?;
                    self.tagged_text(tags, &end)
                }
            };
            let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
            let mark = if is_required { "" } else { "?" };
            let name = quoted(name);
            all.push_str(&format!(" (SPACE? {before} {name} {after} {value}){mark}"));
        }
        Ok(all)
    }

    fn tagged_choice(&mut self, tags: &Tags, end: &End, values: &Value) -> String {
        let values = values.as_array().cloned().unwrap_or(vec![values.clone()]);
        let texts: Vec<String> = values
            .iter()
            .filter_map(Value::as_str)
            .map(quoted)
            .collect();
        format!("({}) {}", texts.join(" | "), end.after(tags.padding))
    }

    /// Any text up to the end of the value.
    fn tagged_text(&mut self, tags: &Tags, end: &End) -> String {
        match end {
            End::Token(token) => format!("ANY {token}"),
            End::Text(text) => self.rules.until(&format!("{}{text}", tags.padding)),
        }
    }

    /// A mark: a control token where it is one, or else its text.
    fn mark(&self, text: &str) -> String {
        control(self.tokenizer, text).unwrap_or_else(|| quoted(text))
    }
}

fn has_name(elements: &[Element]) -> bool {
    elements.iter().any(|element| match element {
        Element::Name => true,
        Element::OneOf(ways) => ways.iter().any(|way| has_name(way)),
        _ => false,
    })
}

/// How a value with tags ends.
enum End {
    Token(String),
    Text(&'static str),
}

impl End {
    fn after(&self, padding: &str) -> String {
        match self {
            End::Token(token) => token.clone(),
            End::Text(text) => quoted(&format!("{padding}{text}")),
        }
    }
}

/// Refuses what cannot be said of a text without quotes.
fn unlimited(schema: &Value) -> Result<(), String> {
    let limits = ["pattern", "format", "minLength", "maxLength"];
    match limits.iter().find(|limit| schema.get(**limit).is_some()) {
        Some(limit) => Err(format!("`{limit}` of a text")),
        None => Ok(()),
    }
}

const TERMINALS: &str = r#"
SPACE: /[ \t\r\n]{1,8}/
ID: /[A-Za-z0-9_]{1,32}/
COMMA: /, ?/
COLON: /: ?/
KEY: /[A-Za-z0-9_.$-]{1,64}/
ANY: /(?s:.*)/
NO_CALL: /\s*([^{\[\s]|\[\s*[^{\s])(.|\n)*/
"#;

/// The token of a control token's text, as a grammar names it.
pub(super) fn control(tokenizer: &Tokenizer, text: &str) -> Option<String> {
    single(tokenizer, text)
        .filter(|id| tokenizer.is_control(*id))
        .map(|id| format!("<[{id}]>"))
}

fn is_end(tokenizer: &Tokenizer, text: &str) -> bool {
    single(tokenizer, text).is_some_and(|id| tokenizer.is_end(id))
}

fn single(tokenizer: &Tokenizer, text: &str) -> Option<u32> {
    let options = EncodeOptions {
        parse_special: true,
        ..EncodeOptions::default()
    };
    match tokenizer.encode(text, options)[..] {
        [id] => Some(id),
        _ => None,
    }
}
