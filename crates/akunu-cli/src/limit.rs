//! The option of a command that writes tokens: how many at most.

/// Most new tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub usize);

/// A number of tokens, or -1 for no limit.
pub fn limit(text: &str) -> Result<Limit, String> {
    match (text, text.parse()) {
        ("-1", _) => Ok(Limit(usize::MAX)),
        (_, Ok(n)) => Ok(Limit(n)),
        _ => Err("it must be a number of tokens, or -1 for no limit".into()),
    }
}

/// As [`limit`] reads it.
pub fn in_words(max_tokens: usize) -> String {
    match max_tokens {
        usize::MAX => "-1".to_string(),
        n => n.to_string(),
    }
}
