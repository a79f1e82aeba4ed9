//! Grammars from what people write: a JSON schema, a regular expression, a context-free grammar, or some strings.

use std::sync::Arc;

use llguidance::Matcher;
use llguidance::api::TopLevelGrammar;

use super::error::{GrammarError, one_line};
use super::schema::prepared;
use super::{Compiled, Grammar, gbnf};
use crate::model::Model;

/// Brackets within brackets of a regular expression or grammar, at most: compiling them takes stack.
const MAX_DEPTH: usize = 128;
/// Properties of one object of a schema, and of all together, at most: the time to compile one grows with the square.
const MAX_PROPERTIES: [usize; 2] = [2000, 5000];
/// Patterns of property names in a schema, at most: each is compared with all others, as automata.
const MAX_PATTERNS: usize = 64;
/// Strings of a choice, at most.
const MAX_CHOICES: usize = 10_000;

impl Grammar {
    /// Bytes of a schema, grammar or expression, at most.
    pub const MAX_TEXT: usize = 512 << 10;

    /// Answers that are JSON and valid by a JSON schema (draft 2020-12; older ones by their `$schema`).
    pub fn json_schema(model: &impl AsRef<Model>, schema: &str) -> Result<Grammar, GrammarError> {
        let kind = "JSON schema";
        check_text(kind, schema)?;
        let parsed = serde_json::from_str::<serde_json::Value>(schema);
        let schema = parsed.map_err(|error| GrammarError::Json {
            why: error.to_string(),
        })?;
        check_properties(&schema)?;
        compile(
            model,
            kind,
            TopLevelGrammar::from_json_schema(prepared(schema)),
        )
    }

    /// Answers that are any JSON value.
    pub fn any_json(model: &impl AsRef<Model>) -> Result<Grammar, GrammarError> {
        Grammar::json_schema(model, "{}")
    }

    /// Answers that a regular expression matches as a whole, in the syntax of the `regex` crate.
    pub fn regex(model: &impl AsRef<Model>, pattern: &str) -> Result<Grammar, GrammarError> {
        let kind = "regular expression";
        check_text(kind, pattern)?;
        check_depth(kind, pattern)?;
        compile(model, kind, TopLevelGrammar::from_regex(pattern))
    }

    /// Answers of a context-free grammar, in the Lark syntax of llguidance. Tokens such as `<|im_end|>` are allowed
    /// where it names them.
    pub fn lark(model: &impl AsRef<Model>, text: &str) -> Result<Grammar, GrammarError> {
        let kind = "grammar";
        check_text(kind, text)?;
        check_depth(kind, text)?;
        for schema in schemas_within(text) {
            check_properties(&schema)?;
        }
        compile(model, kind, TopLevelGrammar::from_lark(text.to_string()))
    }

    /// Answers of a context-free grammar in GBNF, beginning with its rule `root`.
    pub fn gbnf(model: &impl AsRef<Model>, text: &str) -> Result<Grammar, GrammarError> {
        let kind = "GBNF grammar";
        check_text(kind, text)?;
        check_depth(kind, text)?;
        let lark = gbnf::to_lark(text).map_err(|why| GrammarError::Compile { kind, why })?;
        compile(model, kind, TopLevelGrammar::from_lark(lark))
    }

    /// Answers of a context-free grammar in either syntax: GBNF, whose rules are written with `::=`, or Lark.
    pub fn context_free(model: &impl AsRef<Model>, text: &str) -> Result<Grammar, GrammarError> {
        if gbnf::is_gbnf(text) {
            Grammar::gbnf(model, text)
        } else {
            Grammar::lark(model, text)
        }
    }

    /// Answers that are one of some strings.
    pub fn choice(model: &impl AsRef<Model>, strings: &[String]) -> Result<Grammar, GrammarError> {
        let found = strings.len();
        if !(1..=MAX_CHOICES).contains(&found) {
            let max = MAX_CHOICES;
            return Err(GrammarError::Choices { found, max });
        }
        if let Some(at) = strings.iter().position(String::is_empty) {
            return Err(GrammarError::EmptyChoice { number: at + 1 });
        }
        let quoted = strings
            .iter()
            .map(|text| serde_json::json!(text).to_string());
        let text = format!("start: {}", quoted.collect::<Vec<_>>().join(" | "));
        check_text("choice of strings", &text)?;
        compile(model, "choice of strings", TopLevelGrammar::from_lark(text))
    }

    /// Whether it was compiled for this model.
    pub(crate) fn is_of(&self, model: &Model) -> bool {
        Arc::ptr_eq(&self.compiled.table, &model.token_table())
    }
}

fn check_text(kind: &'static str, text: &str) -> Result<(), GrammarError> {
    let (bytes, max) = (text.len(), Grammar::MAX_TEXT);
    if bytes > max {
        return Err(GrammarError::TooLarge { kind, bytes, max });
    }
    Ok(())
}

/// Counts all brackets, also those in strings, where more than a hundred are not to be expected.
fn check_depth(kind: &'static str, text: &str) -> Result<(), GrammarError> {
    let (mut open, mut depth) = (0usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        depth = depth.max(open);
    }
    if depth > MAX_DEPTH {
        let max = MAX_DEPTH;
        return Err(GrammarError::TooDeep { kind, depth, max });
    }
    Ok(())
}

/// The JSON schemas in a grammar of Lark, each behind `%json`. What is not JSON is left to the compiler.
fn schemas_within(lark: &str) -> impl Iterator<Item = serde_json::Value> {
    lark.split("%json").skip(1).filter_map(|text| {
        let mut values = serde_json::Deserializer::from_str(text).into_iter();
        values.next().and_then(Result::ok)
    })
}

fn check_properties(schema: &serde_json::Value) -> Result<(), GrammarError> {
    let max = MAX_PROPERTIES;
    let (mut largest, mut all, mut patterns) = (0, 0, 0);
    let mut values = vec![schema];
    while let Some(value) = values.pop() {
        match value {
            serde_json::Value::Array(items) => values.extend(items),
            serde_json::Value::Object(members) => {
                let size = |key| members.get(key).map_or(0, n_members);
                let n = size("properties").max(size("required"));
                (largest, all) = (n.max(largest), all + n);
                patterns += size("patternProperties");
                values.extend(members.values());
            }
            _ => {}
        }
    }
    for (found, most) in [largest, all].into_iter().zip(max) {
        if found > most {
            return Err(GrammarError::Properties { found, max });
        }
    }
    if patterns > MAX_PATTERNS {
        return Err(GrammarError::Patterns {
            found: patterns,
            max: MAX_PATTERNS,
        });
    }
    Ok(())
}

fn n_members(value: &serde_json::Value) -> usize {
    let members = value.as_object().map(serde_json::Map::len);
    members.or(value.as_array().map(Vec::len)).unwrap_or(0)
}

fn compile(
    model: &impl AsRef<Model>,
    kind: &'static str,
    grammar: TopLevelGrammar,
) -> Result<Grammar, GrammarError> {
    let table = model.as_ref().token_table();
    let failed = |why: &str| GrammarError::Compile {
        kind,
        why: one_line(why),
    };
    let parser = table.compile(grammar).map_err(|why| failed(&why))?;
    let matcher = Matcher::new(Ok(parser));
    // Something must be possible at the beginning.
    let mut first = matcher.clone();
    if first.compute_mask_or_eos().is_err() {
        return Err(failed("there is no text that it allows"));
    }
    Ok(Grammar {
        compiled: Arc::new(Compiled {
            kind,
            table,
            matcher,
        }),
        after: None,
    })
}
