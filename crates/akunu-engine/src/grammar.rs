//! Grammars: which tokens an answer may have next.
//!
//! A grammar is compiled once for a model and used by any number of answers. While the device runs the layers, the host
//! works out the set of tokens that may come next, one bit each; the choice is then made among those. What the grammar
//! leaves no choice about (`{"name": "` of an object with one property) is read without choosing.
//!
//! The work is that of the `llguidance` crate: an Earley parser over a lexer of derivatives, walked along a tree of the
//! vocabulary. [`table`] gives it our tokens byte by byte, [`guide`] is an answer's way through a grammar.

mod gbnf;
mod guide;
mod table;
mod walk;

use std::sync::Arc;

use llguidance::Matcher;
use llguidance::api::TopLevelGrammar;

pub(crate) use self::guide::Guide;
pub(crate) use self::table::TokenTable;
pub use self::walk::GrammarWalk;
use crate::model::Model;

/// Bytes of a schema or grammar, at most.
const MAX_TEXT: usize = 512 << 10;
/// Brackets within brackets of a regular expression or grammar, at most: compiling them takes stack.
const MAX_DEPTH: usize = 128;
/// Properties of one object of a schema, and of all together, at most: the time to compile one grows with the square.
const MAX_PROPERTIES: [usize; 2] = [2000, 5000];
/// Strings of a choice, at most.
const MAX_CHOICES: usize = 10_000;
/// White space between the parts of JSON: enough to be read by people, and an end to it. A small model would otherwise
/// begin line after line until nothing is left of its context.
const JSON_SPACE: &str = r"[ \t]{1,8}|\r?\n[ \t]{0,24}";

/// Why there is no grammar.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// A schema that is not JSON.
    #[error("the JSON schema is not JSON: {why}")]
    Json {
        /// What the reader said, with line and column.
        why: String,
    },
    /// Something that cannot be compiled.
    #[error("the {kind} cannot be used: {why}")]
    Compile {
        /// What was given.
        kind: &'static str,
        /// What is wrong, and where.
        why: String,
    },
    /// Too long a text.
    #[error("the {kind} has {bytes} bytes, and {max} are possible; make it shorter")]
    TooLarge {
        /// What was given.
        kind: &'static str,
        /// Its length.
        bytes: usize,
        /// The most.
        max: usize,
    },
    /// Brackets within brackets within brackets.
    #[error("the {kind} has brackets {depth} deep, and {max} are possible; make it flatter")]
    TooDeep {
        /// What was given.
        kind: &'static str,
        /// How deep they are.
        depth: usize,
        /// The most.
        max: usize,
    },
    /// Objects with too many properties.
    #[error(
        "the JSON schema has {found} properties, and {} of one object and {} of all are possible; leave some out",
        max[0], max[1]
    )]
    Properties {
        /// Those of the largest object, or of all.
        found: usize,
        /// The most of one object, and of all.
        max: [usize; 2],
    },
    /// A choice of nothing, or of too much.
    #[error("a choice of {found} strings is not possible; give 1 to {max}, none of them empty")]
    Choices {
        /// Strings that were given.
        found: usize,
        /// The most.
        max: usize,
    },
}

/// A grammar that was compiled for a model. Clones are cheap.
///
/// ```no_run
/// # use akunu_engine::{EngineError, GenerateOptions, Grammar, Model, Session};
/// # fn answer(model: &Model, session: &mut Session) -> Result<(), EngineError> {
/// let schema = r#"{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}"#;
/// let options = GenerateOptions {
///     grammar: Some(Grammar::json_schema(model, schema)?),
///     ..GenerateOptions::default()
/// };
/// for token in session.generate(options)? {
///     print!("{}", token?.text);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Grammar {
    compiled: Arc<Compiled>,
    /// The text after which it begins.
    after: Option<Arc<str>>,
}

/// What all clones share.
struct Compiled {
    kind: &'static str,
    table: Arc<TokenTable>,
    /// At the beginning of the grammar. Its clones share what they learn about the lexer.
    matcher: Matcher,
}

impl std::fmt::Debug for Grammar {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "Grammar({})", self.compiled.kind)
    }
}

impl Grammar {
    /// Answers that are JSON and valid by a JSON schema (draft 2020-12; older ones by their `$schema`).
    pub fn json_schema(model: &Model, schema: &str) -> Result<Grammar, GrammarError> {
        let kind = "JSON schema";
        check_text(kind, schema)?;
        let parsed = serde_json::from_str::<serde_json::Value>(schema);
        let mut schema = parsed.map_err(|error| GrammarError::Json {
            why: error.to_string(),
        })?;
        check_properties(&schema)?;
        if schema == true {
            schema = serde_json::json!({});
        }
        if let Some(object) = schema.as_object_mut() {
            let space = serde_json::json!({ "whitespace_pattern": JSON_SPACE });
            object.entry("x-guidance").or_insert(space);
        }
        compile(model, kind, TopLevelGrammar::from_json_schema(schema))
    }

    /// Answers that are JSON, whatever they say: an object, or any other value.
    pub fn any_json(model: &Model) -> Result<Grammar, GrammarError> {
        Grammar::json_schema(model, "{}")
    }

    /// Answers that a regular expression matches as a whole, in the syntax of the `regex` crate.
    pub fn regex(model: &Model, pattern: &str) -> Result<Grammar, GrammarError> {
        let kind = "regular expression";
        check_text(kind, pattern)?;
        check_depth(kind, pattern)?;
        compile(model, kind, TopLevelGrammar::from_regex(pattern))
    }

    /// Answers of a context-free grammar, in the Lark syntax of llguidance. Tokens such as `<|im_end|>` are allowed
    /// where it names them.
    pub fn lark(model: &Model, text: &str) -> Result<Grammar, GrammarError> {
        let kind = "grammar";
        check_text(kind, text)?;
        check_depth(kind, text)?;
        compile(model, kind, TopLevelGrammar::from_lark(text.to_string()))
    }

    /// Answers of a context-free grammar in GBNF, beginning with its rule `root`.
    pub fn gbnf(model: &Model, text: &str) -> Result<Grammar, GrammarError> {
        let kind = "GBNF grammar";
        check_text(kind, text)?;
        check_depth(kind, text)?;
        let lark = gbnf::to_lark(text).map_err(|why| GrammarError::Compile { kind, why })?;
        compile(model, kind, TopLevelGrammar::from_lark(lark))
    }

    /// Answers of a context-free grammar in either syntax: GBNF, whose rules are written with `::=`, or Lark.
    pub fn context_free(model: &Model, text: &str) -> Result<Grammar, GrammarError> {
        if gbnf::is_gbnf(text) {
            Grammar::gbnf(model, text)
        } else {
            Grammar::lark(model, text)
        }
    }

    /// Answers that are one of some strings.
    pub fn choice(model: &Model, strings: &[String]) -> Result<Grammar, GrammarError> {
        let found = strings.len();
        let is_possible =
            (1..=MAX_CHOICES).contains(&found) && strings.iter().all(|text| !text.is_empty());
        if !is_possible {
            let max = MAX_CHOICES;
            return Err(GrammarError::Choices { found, max });
        }
        let quoted = strings
            .iter()
            .map(|text| serde_json::json!(text).to_string());
        let text = format!("start: {}", quoted.collect::<Vec<_>>().join(" | "));
        check_text("choice of strings", &text)?;
        compile(model, "choice of strings", TopLevelGrammar::from_lark(text))
    }

    /// The same, beginning after a text in the answer, such as `</think>`: with the token after the one that completes
    /// it. What comes before is free.
    pub fn starting_after(mut self, text: &str) -> Grammar {
        self.after = (!text.is_empty()).then(|| Arc::from(text));
        self
    }

    /// Whether it was compiled for this model.
    pub(crate) fn is_of(&self, model: &Model) -> bool {
        Arc::ptr_eq(&self.compiled.table, &model.token_table())
    }

    /// Whether both are clones of one.
    pub(crate) fn is(&self, other: &Grammar) -> bool {
        Arc::ptr_eq(&self.compiled, &other.compiled) && self.after == other.after
    }

    /// An answer's way through it, at the beginning.
    pub(crate) fn guide(&self) -> Guide {
        Guide::new(
            Arc::clone(&self.compiled.table),
            self.compiled.matcher.clone(),
            self.after.as_deref(),
        )
    }
}

fn check_text(kind: &'static str, text: &str) -> Result<(), GrammarError> {
    let (bytes, max) = (text.len(), MAX_TEXT);
    if bytes > max {
        return Err(GrammarError::TooLarge { kind, bytes, max });
    }
    Ok(())
}

/// Counts all brackets, also those in strings: nobody writes a hundred of them into one.
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

fn check_properties(schema: &serde_json::Value) -> Result<(), GrammarError> {
    let max = MAX_PROPERTIES;
    let (mut largest, mut all) = (0, 0);
    let mut values = vec![schema];
    while let Some(value) = values.pop() {
        match value {
            serde_json::Value::Array(items) => values.extend(items),
            serde_json::Value::Object(members) => {
                let properties = members.get("properties").and_then(|of| of.as_object());
                let n = properties.map_or(0, |properties| properties.len());
                (largest, all) = (n.max(largest), all + n);
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
    Ok(())
}

fn compile(
    model: &Model,
    kind: &'static str,
    grammar: TopLevelGrammar,
) -> Result<Grammar, GrammarError> {
    let table = model.token_table();
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

/// The message in one line, without the compiler's state and without pictures of the place.
fn one_line(message: &str) -> String {
    let end = ["\n<state>", "\n<non-verbose/>", "\n<backtrace>"];
    let end = end.iter().filter_map(|mark| message.find(mark)).min();
    let is_picture = |line: &str| {
        let code = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.is_empty() || line == "^" || (code != line && code.starts_with(" |"))
    };
    let lines = message[..end.unwrap_or(message.len())].lines();
    let lines = lines.map(str::trim).filter(|line| !is_picture(line));
    lines.collect::<Vec<_>>().join(" ")
}
