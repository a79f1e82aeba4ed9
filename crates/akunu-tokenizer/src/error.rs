//! What can be wrong with a vocabulary.

use akunu_gguf::GgufError;
use std::path::PathBuf;

/// Why a tokenizer cannot be built or used.
///
/// ```
/// use akunu_gguf::GgufFile;
/// use akunu_tokenizer::{Tokenizer, TokenizerError};
///
/// fn open(file: &GgufFile) -> Result<Tokenizer, TokenizerError> {
///     Tokenizer::from_gguf(file.metadata())
/// }
/// # let _ = open;
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A metadata entry is missing or has the wrong type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// The chat template of the file cannot be used.
    #[error(transparent)]
    Template(#[from] crate::TemplateError),
    /// A conversation that contains every character that could mark its texts.
    #[error(
        "the messages have a control token's text and every noncharacter from U+FDD0 to U+FDEF, one of which is needed to tell that text from the template's own"
    )]
    NoMarker,
    /// The algorithm of the vocabulary is not supported.
    #[error("`tokenizer.ggml.model` is `{name}`, which is not supported; supported are {known}")]
    UnknownModel {
        /// What the file says.
        name: String,
        /// The supported names.
        known: String,
    },
    /// The pre-tokenizer is not supported.
    #[error(
        "`tokenizer.ggml.pre` is `{name}`, a pre-tokenizer that is not known; known are {known}"
    )]
    UnknownPreTokenizer {
        /// What the file says.
        name: String,
        /// The supported names.
        known: String,
    },
    /// A vocabulary without tokens, or with more than an id can count.
    #[error("`tokenizer.ggml.tokens` has {n_tokens} tokens; a vocabulary has 1 to {limit}")]
    VocabularySize {
        /// Number of tokens.
        n_tokens: usize,
        /// The most there may be.
        limit: usize,
    },
    /// An array does not have one element for each token.
    #[error("`{key}` has {found} elements, but there are {n_tokens} tokens: the file is damaged")]
    ArrayLength {
        /// The array.
        key: &'static str,
        /// Its length.
        found: usize,
        /// Number of tokens.
        n_tokens: usize,
    },
    /// A score that cannot be compared.
    #[error("the score of token {id} in `tokenizer.ggml.scores` is not a number")]
    Score {
        /// The token.
        id: usize,
    },
    /// A table of replaced characters that cannot be used.
    #[error("`{key}` {fault}: the file is damaged")]
    Charsmap {
        /// The metadata key.
        key: &'static str,
        /// What is wrong with it.
        fault: String,
    },
    /// Two tokens with the same text.
    #[error("tokens {first} and {second} in `tokenizer.ggml.tokens` are both {text:?}")]
    DuplicateToken {
        /// Their text.
        text: String,
        /// The lower id.
        first: u32,
        /// The higher id.
        second: u32,
    },
    /// A merge that is not two tokens with a space between them.
    #[error("entry {index} of `tokenizer.ggml.merges`, {merge:?}, is not two tokens and a space")]
    MalformedMerge {
        /// Its index.
        index: usize,
        /// Its text.
        merge: String,
    },
    /// A merge whose parts or whose result is not in the vocabulary.
    #[error(
        "entry {index} of `tokenizer.ggml.merges`, {merge:?}, names {token:?}, which is not in \
         `tokenizer.ggml.tokens`"
    )]
    UnknownMergeToken {
        /// Its index.
        index: usize,
        /// Its text.
        merge: String,
        /// The token that is missing.
        token: String,
    },
    /// A special token beyond the vocabulary.
    #[error("`{key}` is {id}, but there are {n_tokens} tokens")]
    SpecialId {
        /// The metadata key.
        key: &'static str,
        /// The id.
        id: u32,
        /// Number of tokens.
        n_tokens: usize,
    },
    /// Special tokens that are too long together.
    #[error(
        "the special tokens in `tokenizer.ggml.tokens` have {found} bytes; at most {limit} are \
         accepted"
    )]
    SpecialTexts {
        /// Their bytes.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A special token that is too long.
    #[error(
        "token {id} in `tokenizer.ggml.tokens` is a special token of {found} bytes; at most {limit} are accepted"
    )]
    SpecialText {
        /// The token.
        id: u32,
        /// Its bytes.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The vocabulary needs a special token that the file does not name.
    #[error("this vocabulary needs {what}: the file has no `{key}`")]
    MissingSpecial {
        /// What it is for.
        what: &'static str,
        /// The metadata key.
        key: &'static str,
    },
    /// The model's embedding has fewer rows than there are tokens.
    #[error("the vocabulary has {n_tokens} tokens, but the embedding has only {n_rows} rows")]
    EmbeddingRows {
        /// Number of tokens.
        n_tokens: usize,
        /// Rows of the embedding.
        n_rows: usize,
    },
    /// A file that cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file that is too large.
    #[error("{}: is larger than {limit} bytes, the most that is read of such a file", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit: u64,
    },
    /// A `tokenizer.json` or `tokenizer_config.json` that cannot be used.
    #[error("{}: {reason}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A library refused a vocabulary, a pattern or a text.
    #[error("the tokenizer cannot be {action}: {reason}")]
    Backend {
        /// What was being done.
        action: &'static str,
        /// What is wrong.
        reason: String,
    },
}

/// The most characters of an error's text that come out of a file.
const MAX_REASON_CHARS: usize = 500;

/// A text from a file as one line of a message: control characters could change what a terminal shows, so they are
/// escaped, and what is too long is cut off.
pub(crate) fn printable(text: &str) -> String {
    let mut line = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == MAX_REASON_CHARS {
            line.push('…');
            break;
        }
        match character.is_control() {
            true => line.extend(character.escape_default()),
            false => line.push(character),
        }
    }
    line
}
