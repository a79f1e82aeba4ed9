//! A check of `tokenizer.json` before the `tokenizers` crate reads it.
//!
//! That crate joins the two halves of each BPE merge in a buffer as long as the longest token, and
//! panics where the halves are longer. So merges that are too long are refused here.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    model: Option<Model<'a>>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(borrow)]
    merges: Option<Vec<Merge<'a>>>,
    vocab: Option<LongestToken>,
}

/// Both spellings that are in use.
#[derive(Deserialize)]
#[serde(untagged)]
enum Merge<'a> {
    Pair(#[serde(borrow)] [Cow<'a, str>; 2]),
    Joined(#[serde(borrow)] Cow<'a, str>),
}

impl Merge<'_> {
    /// Bytes of what the merge makes.
    fn len(&self) -> usize {
        match self {
            Merge::Pair([left, right]) => left.len() + right.len(),
            Merge::Joined(text) => text.len().saturating_sub(1),
        }
    }
}

/// Refuses merges that are longer than every token.
pub(super) fn check(json: &[u8]) -> Result<(), String> {
    let file: File<'_> = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    let Some(Model {
        merges: Some(merges),
        vocab: Some(LongestToken(longest)),
    }) = file.model
    else {
        return Ok(());
    };
    match merges.iter().position(|merge| merge.len() > longest) {
        Some(index) => Err(format!(
            "entry {index} of `model.merges` makes no known token"
        )),
        None => Ok(()),
    }
}

/// Bytes of the longest token. A vocabulary is a map, or for Unigram a list, which has no merges.
struct LongestToken(usize);

impl<'de> Deserialize<'de> for LongestToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LongestToken, D::Error> {
        deserializer.deserialize_any(VocabularyVisitor)
    }
}

struct VocabularyVisitor;

impl<'de> Visitor<'de> for VocabularyVisitor {
    type Value = LongestToken;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a vocabulary")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LongestToken, A::Error> {
        let mut longest = 0;
        while let Some((token, _)) = map.next_entry::<Cow<'de, str>, IgnoredAny>()? {
            longest = longest.max(token.len());
        }
        Ok(LongestToken(longest))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LongestToken, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LongestToken(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn only_merges_that_are_too_long_are_refused() {
        let json = |merges: &str| {
            format!(r#"{{"model": {{"vocab": {{"a": 0, "ab": 1}}, "merges": {merges}}}}}"#)
        };
        check(json(r#"["a b"]"#).as_bytes()).unwrap();
        check(json(r#"[["a", "b"]]"#).as_bytes()).unwrap();
        let error = check(json(r#"[["a", "b"], ["ab", "ab"]]"#).as_bytes()).unwrap_err();
        assert!(error.contains("entry 1"), "{error}");
        check(json(r#"["ab ab"]"#).as_bytes()).unwrap_err();
        check(br#"{"model": {"vocab": [["a", 0.5]]}}"#).unwrap();
        check(b"{}").unwrap();
        check(b"nonsense").unwrap_err();
    }
}
