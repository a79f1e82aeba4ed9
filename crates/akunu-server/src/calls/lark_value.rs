//! Values in Lark: JSON by its schema, and the same schema in the notations that are not JSON.

use std::collections::BTreeMap;

use akunu::Grammar;
use serde_json::{Map, Value};

/// Rules of a grammar.
#[derive(Default)]
pub(super) struct Rules {
    pub text: String,
    n: usize,
}

/// A text as a string of Lark.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// How a notation writes values.
struct Ways {
    /// A text of any content.
    text: String,
    /// Around a text that is known.
    quotes: [String; 2],
    words: [&'static str; 3],
    bare_names: bool,
}

/// Keywords that mean nothing for what is valid, or are looked at.
const KNOWN: [&str; 18] = [
    "type",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "$ref",
    "$defs",
    "definitions",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "title",
    "description",
    "default",
    "examples",
    "$schema",
    "strict",
];

impl Rules {
    /// Adds a rule; returns its name.
    pub fn add(&mut self, body: &str) -> String {
        self.add_with("", body)
    }

    /// A name that no other rule has.
    fn name(&mut self) -> String {
        self.n += 1;
        format!("r{}", self.n)
    }

    fn add_with(&mut self, attributes: &str, body: &str) -> String {
        let name = self.name();
        self.text.push_str(&format!("{name}{attributes}: {body}\n"));
        name
    }

    /// A rule for JSON by a schema.
    pub fn json(&mut self, schema: &Value) -> String {
        let schema = Grammar::lark_schema(&schema.to_string());
        self.add(&format!("%json {schema}"))
    }

    /// A rule for any text up to this one, which is its end.
    pub fn until(&mut self, end: &str) -> String {
        self.add_with(&format!("[suffix={}]", quoted(end)), "/(?s:.*)/")
    }

    /// Arguments as Python writes them: `(city="Rome", days=3)`.
    pub fn python(&mut self, schema: &Value) -> Result<String, String> {
        let ways = Ways {
            text: r#"/"([^"\\\n]|\\["\\nrt'])*"|'([^'\\\n]|\\["\\nrt'])*'/"#.into(),
            quotes: ["\"".into(), "\"".into()],
            words: ["True", "False", "None"],
            bare_names: false,
        };
        let members = Values::new(self, &ways, schema).members(schema, "=", true)?;
        Ok(format!("\"(\" {members} \")\""))
    }

    /// Arguments with bare names, and a mark around texts: `{city:<|"|>Rome<|"|>}`.
    pub fn quoted(&mut self, schema: &Value, mark: &str) -> Result<String, String> {
        let text = match mark.strip_prefix('"') {
            None => format!("{mark} ANY {mark}"),
            Some(_) => {
                let end: String = serde_json::from_str(mark).unwrap_or_default();
                format!("{mark} {}", self.until(&end))
            }
        };
        let ways = Ways {
            text,
            quotes: [mark.to_string(), mark.to_string()],
            words: ["true", "false", "null"],
            bare_names: true,
        };
        let members = Values::new(self, &ways, schema).members(schema, ":", true)?;
        Ok(format!("\"{{\" {members} \"}}\""))
    }
}

/// Writes the values of a schema.
struct Values<'a> {
    rules: &'a mut Rules,
    ways: &'a Ways,
    root: &'a Value,
    any: Option<String>,
    /// Rules, by the reference that they were made for.
    references: BTreeMap<String, String>,
}

impl<'a> Values<'a> {
    fn new(rules: &'a mut Rules, ways: &'a Ways, root: &'a Value) -> Values<'a> {
        Values {
            rules,
            ways,
            root,
            any: None,
            references: BTreeMap::new(),
        }
    }

    fn value(&mut self, schema: &Value) -> Result<String, String> {
        let Some(object) = schema.as_object() else {
            return Ok(self.any());
        };
        if let Some(unknown) = object.keys().find(|key| !KNOWN.contains(&&key[..])) {
            return Err(format!("`{unknown}`"));
        }
        if let Some(Value::String(path)) = object.get("$ref") {
            return self.reference(path);
        }
        if let Some(value) = object.get("const") {
            return Ok(self.literal(value));
        }
        if let Some(Value::Array(values)) = object.get("enum") {
            let values: Vec<String> = values.iter().map(|value| self.literal(value)).collect();
            return Ok(format!("({})", values.join(" | ")));
        }
        if let Some(Value::Array(ways)) = object.get("anyOf").or(object.get("oneOf")) {
            let ways: Result<Vec<String>, String> =
                ways.iter().map(|way| self.value(way)).collect();
            return Ok(format!("({})", ways?.join(" | ")));
        }
        match object.get("type") {
            Some(Value::String(kind)) => self.of_type(kind, schema),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let kinds: Result<Vec<String>, String> =
                    kinds.map(|kind| self.of_type(kind, schema)).collect();
                Ok(format!("({})", kinds?.join(" | ")))
            }
            _ if object.contains_key("properties") => self.of_type("object", schema),
            _ => Ok(self.any()),
        }
    }

    fn of_type(&mut self, kind: &str, schema: &Value) -> Result<String, String> {
        let [yes, no, nothing] = self.ways.words;
        Ok(match kind {
            "string" => self.ways.text.clone(),
            "integer" => "/-?(0|[1-9][0-9]{0,15})/".into(),
            "number" => NUMBER.into(),
            "boolean" => format!("({} | {})", quoted(yes), quoted(no)),
            "null" => quoted(nothing),
            "array" => {
                let item = self.value(schema.get("items").unwrap_or(&Value::Bool(true)))?;
                self.list(&item)
            }
            "object" if schema.get("properties").is_some() => {
                let members = self.members(schema, ":", self.ways.bare_names)?;
                format!("(\"{{\" {members} \"}}\")")
            }
            "object" => {
                let value = match schema.get("additionalProperties") {
                    Some(schema @ Value::Object(_)) => self.value(schema)?,
                    _ => self.any(),
                };
                self.map(&value)
            }
            other => return Err(format!("the type `{other}`")),
        })
    }

    fn reference(&mut self, path: &str) -> Result<String, String> {
        if let Some(name) = self.references.get(path) {
            return Ok(name.clone());
        }
        let target = path
            .strip_prefix('#')
            .and_then(|path| self.root.pointer(path));
        let target = target.ok_or_else(|| format!("the reference `{path}`"))?;
        // The name is known before the rule is, which may refer to itself.
        let name = self.rules.name();
        self.references.insert(path.to_string(), name.clone());
        let body = self.value(target)?;
        self.rules.text.push_str(&format!("{name}: {body}\n"));
        Ok(name)
    }

    /// The members of an object in the order of its schema, those that are required first; what is between them is a comma.
    fn members(&mut self, schema: &Value, between: &str, bare: bool) -> Result<String, String> {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties else {
            let value = self.any();
            let name = if bare {
                "KEY".into()
            } else {
                self.ways.text.clone()
            };
            let one = format!("{name} {} {value}", quoted(between));
            return Ok(format!("({one} (COMMA {one})*)?"));
        };
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .unwrap_or(const { &Vec::new() });
        let is_required = |name: &str| required.iter().any(|one| one == name);
        let (mut first, mut later) = (Vec::new(), Vec::new());
        for (name, property) in if properties.is_empty() {
            &none
        } else {
            properties
        } {
            let key = if bare {
                quoted(name)
            } else {
                self.literal(&Value::from(name.as_str()))
            };
            let value = self.value(property)?;
            let one = format!("{key} {} {value}", quoted(between));
            if is_required(name) {
                &mut first
            } else {
                &mut later
            }
            .push(one);
        }
        let rest = |from: usize| -> String {
            later[from..]
                .iter()
                .map(|one| format!(" (COMMA {one})?"))
                .collect()
        };
        if !first.is_empty() {
            return Ok(format!("{}{}", first.join(" COMMA "), rest(0)));
        }
        let ways = later
            .iter()
            .enumerate()
            .map(|(n, one)| format!("{one}{}", rest(n + 1)));
        let ways: Vec<String> = ways.collect();
        Ok(if ways.is_empty() {
            String::new()
        } else {
            format!("({})?", ways.join(" | "))
        })
    }

    fn list(&self, item: &str) -> String {
        format!("(\"[\" ({item} (COMMA {item})*)? \"]\")")
    }

    fn map(&self, value: &str) -> String {
        let name = if self.ways.bare_names {
            "KEY"
        } else {
            &self.ways.text
        };
        format!("(\"{{\" ({name} COLON {value} (COMMA {name} COLON {value})*)? \"}}\")")
    }

    /// Any value.
    fn any(&mut self) -> String {
        if let Some(name) = &self.any {
            return name.clone();
        }
        let name = self.rules.name();
        self.any = Some(name.clone());
        let words = self.ways.words.map(quoted).join(" | ");
        let (list, map) = (self.list(&name), self.map(&name));
        let text = &self.ways.text;
        let body = format!("{text} | {NUMBER} | {words} | {list} | {map}");
        self.rules.text.push_str(&format!("{name}: {body}\n"));
        name
    }

    /// A value as it is.
    fn literal(&self, value: &Value) -> String {
        let [open, close] = &self.ways.quotes;
        match value {
            Value::String(text) if self.ways.bare_names => {
                format!("{open} {} {close}", quoted(text))
            }
            Value::Bool(true) => quoted(self.ways.words[0]),
            Value::Bool(false) => quoted(self.ways.words[1]),
            Value::Null => quoted(self.ways.words[2]),
            other => quoted(&other.to_string()),
        }
    }
}

const NUMBER: &str = r"/-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,16})?([eE][+-]?[0-9]{1,3})?/";
