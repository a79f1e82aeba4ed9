//! Keys of clients.

use axum::http::{HeaderMap, header};

/// Whether the headers have one of the keys, or none is needed.
pub(super) fn are_right(keys: &[String], headers: &HeaderMap) -> bool {
    let bearer = headers
        .get(header::AUTHORIZATION)
        .map(|value| value.as_bytes());
    let bearer = bearer.and_then(|value| value.strip_prefix(b"Bearer "));
    let plain = headers.get("x-api-key").map(|value| value.as_bytes());
    let mut is_right = keys.is_empty();
    for given in [bearer, plain].into_iter().flatten() {
        for key in keys {
            // Without a shortcut: how long the search takes says nothing about the keys.
            is_right |= is_equal(given, key.as_bytes());
        }
    }
    is_right
}

/// Compares in a time that depends on the length of what was given only.
fn is_equal(given: &[u8], key: &[u8]) -> bool {
    let mut difference = u8::from(given.len() != key.len());
    for (at, byte) in given.iter().enumerate() {
        let other = key.get(at % key.len().max(1)).copied().unwrap_or(0);
        difference |= std::hint::black_box(byte ^ other);
    }
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_right(name: &'static str, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().expect("a header"));
        are_right(&["secret".into(), "other".into()], &headers)
    }

    /// Breaks when a prefix, a longer text or an empty one passes.
    #[test]
    fn only_a_whole_key_is_right() {
        assert!(is_right("authorization", "Bearer secret"));
        assert!(is_right("x-api-key", "other"));
        for wrong in [
            "Bearer secre",
            "Bearer secretsecret",
            "Bearer ",
            "secret",
            "Basic secret",
        ] {
            assert!(!is_right("authorization", wrong), "{wrong}");
        }
        assert!(!is_right("x-api-key", ""));
        assert!(!are_right(&["secret".into()], &HeaderMap::new()));
        assert!(are_right(&[], &HeaderMap::new()), "no key is needed");
    }
}
