//! Why there is no grammar, in words that a user can read.

/// Why there is no grammar.
///
/// ```no_run
/// use akunu_engine::Grammar;
/// # fn example(model: &akunu_engine::Model) -> Result<(), akunu_engine::EngineError> {
/// if let Err(error) = Grammar::regex(model, "(unclosed") {
///     eprintln!("{error}");
/// }
/// # Ok(())
/// # }
/// ```
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
    /// Part of a schema that a grammar has no words for.
    #[error("{why} cannot be enforced; leave it out")]
    Unsupported {
        /// The part.
        why: String,
    },
    /// Too long a text.
    #[error("the {kind} has {bytes} bytes, and at most {max} are allowed; make it shorter")]
    TooLarge {
        /// What was given.
        kind: &'static str,
        /// Its length.
        bytes: usize,
        /// The maximum.
        max: usize,
    },
    /// Brackets that are nested too deep.
    #[error(
        "the {kind} has brackets nested {depth} deep, and at most {max} are allowed; make it flatter"
    )]
    TooDeep {
        /// What was given.
        kind: &'static str,
        /// How deep they are.
        depth: usize,
        /// The maximum.
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
    /// Too many patterns of property names.
    #[error(
        "the JSON schema has {found} `patternProperties`, and at most {max} are possible; leave some out"
    )]
    Patterns {
        /// Those of all objects.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// A choice of no strings, or of too many.
    #[error("a choice of {found} strings is not possible; give 1 to {max}")]
    Choices {
        /// Strings that were given.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// A choice with a string of no characters.
    #[error("string {number} of the choice is empty; leave it out")]
    EmptyChoice {
        /// Which one, from 1.
        number: usize,
    },
}

/// The message in one line, without the compiler's state and without pictures of the place.
pub(super) fn one_line(message: &str) -> String {
    if message.starts_with("panic: ") {
        return "it is too large or too involved to compile; make it smaller".to_string();
    }
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
