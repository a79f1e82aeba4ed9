//! Grammars: which tokens an answer may have next.
//!
//! A grammar is compiled once for a model and used by any number of answers. While the device runs the layers, the host
//! computes the set of tokens that may come next, one bit each; the choice is then made among those. What the grammar
//! leaves no choice about (`{"name": "` of an object with one property) is read without choosing.
//!
//! The work is that of the `llguidance` crate: an Earley parser over a lexer of derivatives, walked along a tree of the
//! vocabulary. [`table`] gives it our tokens byte by byte, [`guide`] is an answer's way through a grammar.

mod compile;
mod error;
mod gbnf;
mod guide;
mod schema;
mod table;
mod walk;

use std::sync::Arc;

use llguidance::Matcher;

pub use self::error::GrammarError;
pub(crate) use self::guide::Guide;
pub(crate) use self::table::TokenTable;
pub use self::walk::GrammarWalk;

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
    /// Applies the grammar only after a text in the answer, such as `</think>`: from the token after the one that completes
    /// it. The answer is free before that.
    pub fn starting_after(mut self, text: &str) -> Grammar {
        self.after = (!text.is_empty()).then(|| Arc::from(text));
        self
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
