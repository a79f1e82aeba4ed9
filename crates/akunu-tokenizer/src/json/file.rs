//! What is read of a `tokenizer.json` before the package `tokenizers` gets it: the texts of its tokens, and what the limits
//! are about.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The whole file.
#[derive(Deserialize)]
pub(super) struct File<'a> {
    #[serde(default)]
    pub added_tokens: Vec<AddedToken>,
    pub normalizer: Option<Value>,
    pub pre_tokenizer: Option<Value>,
    pub post_processor: Option<Value>,
    pub decoder: Option<Value>,
    #[serde(borrow)]
    pub model: Model<'a>,
}

/// A token that is found in the text before anything else.
#[derive(Deserialize)]
pub(super) struct AddedToken {
    pub id: u32,
    pub content: String,
    #[serde(default)]
    pub single_word: bool,
    #[serde(default)]
    pub lstrip: bool,
    #[serde(default)]
    pub rstrip: bool,
    /// Looked for in the normalized text, as it is after it was normalized itself.
    #[serde(default)]
    pub normalized: bool,
    /// Controls the model and is no text.
    #[serde(default)]
    pub special: bool,
}

/// The model; which fields it has depends on its type.
#[derive(Deserialize)]
pub(super) struct Model<'a> {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    #[serde(borrow)]
    pub vocab: Vocab<'a>,
    #[serde(borrow)]
    pub merges: Option<Vec<Merge<'a>>>,
    pub unk_token: Option<String>,
    pub unk_id: Option<u32>,
    pub continuing_subword_prefix: Option<String>,
    pub dropout: Option<f64>,
    pub max_input_chars_per_word: Option<usize>,
}

/// Tokens and their ids, in the order of the file.
pub(super) struct Vocab<'a> {
    pub entries: Vec<(Cow<'a, str>, u32)>,
    /// A list of texts and scores, as Unigram has it.
    pub is_list: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Vocab<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Vocab<'a>, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocab<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tokens and their ids, or a list of tokens and their scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((Text(text), id)) = map.next_entry()? {
                    entries.push((text, id));
                }
                Ok(Vocab {
                    entries,
                    is_list: false,
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vocab<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((Text(text), IgnoredAny)) = list.next_element()? {
                    let id = u32::try_from(entries.len()).map_err(A::Error::custom)?;
                    entries.push((text, id));
                }
                Ok(Vocab {
                    entries,
                    is_list: true,
                })
            }
        }
        deserializer.deserialize_any(Entries)
    }
}

/// A text that is borrowed from the file where nothing in it is escaped.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'de>, D::Error> {
        struct AnyText;
        impl<'de> Visitor<'de> for AnyText {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_string())))
            }
        }
        deserializer.deserialize_str(AnyText)
    }
}

/// A merge: `["left", "right"]` or `"left right"`.
pub(super) struct Merge<'a> {
    pub left_bytes: usize,
    pub right: Cow<'a, str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Merge<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Merge<'a>, D::Error> {
        struct AnyMerge;
        impl<'de> Visitor<'de> for AnyMerge {
            type Value = Merge<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge: two tokens, or a text with a space between them")
            }

            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                text: &'de str,
            ) -> Result<Merge<'de>, E> {
                let (left, right) = two(text)?;
                Ok(Merge {
                    left_bytes: left.len(),
                    right: Cow::Borrowed(right),
                })
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Merge<'de>, E> {
                let (left, right) = two(text)?;
                Ok(Merge {
                    left_bytes: left.len(),
                    right: Cow::Owned(right.to_string()),
                })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Merge<'de>, A::Error> {
                let mut next = || pair.next_element::<Text<'de>>();
                match (next()?, next()?, next()?) {
                    (Some(Text(left)), Some(Text(right)), None) => Ok(Merge {
                        left_bytes: left.len(),
                        right,
                    }),
                    _ => Err(A::Error::custom("a merge is not two tokens")),
                }
            }
        }
        deserializer.deserialize_any(AnyMerge)
    }
}

fn two<E: serde::de::Error>(text: &str) -> Result<(&str, &str), E> {
    let pair = text.split_once(' ');
    pair.ok_or_else(|| E::custom("a merge is not two tokens and a space"))
}
