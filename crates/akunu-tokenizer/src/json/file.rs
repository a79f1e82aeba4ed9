//! What a `tokenizer.json` says, as it is written there.
//!
//! A kind of normalizer, pre-tokenizer, post-processor or model that is not listed here is refused by name.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The whole file. Padding and truncation are for batches of training texts: a prompt is neither filled up nor cut off.
#[derive(Deserialize)]
pub(super) struct File<'a> {
    #[serde(default)]
    pub added_tokens: Vec<AddedToken>,
    pub normalizer: Option<NormalizerEntry>,
    pub pre_tokenizer: Option<PreTokenizerEntry>,
    pub post_processor: Option<PostProcessorEntry>,
    pub decoder: Option<Value>,
    #[serde(borrow)]
    pub model: Model<'a>,
}

/// A token that is found in the text before anything else.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct AddedToken {
    pub id: u32,
    pub content: String,
    /// Only where no letter or digit is beside it.
    #[serde(default)]
    pub single_word: bool,
    /// With the spaces on its left.
    #[serde(default)]
    pub lstrip: bool,
    /// With the spaces on its right.
    #[serde(default)]
    pub rstrip: bool,
    /// Looked for after the text was normalized, as it is after it was normalized itself.
    #[serde(default)]
    pub normalized: bool,
    /// Controls the model and is no text.
    #[serde(default)]
    pub special: bool,
}

/// A literal text or a regular expression.
#[derive(Deserialize)]
pub(super) enum PatternEntry {
    String(String),
    Regex(String),
}

#[derive(Deserialize)]
#[serde(tag = "type")]
pub(super) enum NormalizerEntry {
    Sequence {
        normalizers: Vec<NormalizerEntry>,
    },
    #[serde(rename = "NFC")]
    Nfc,
    #[serde(rename = "NFD")]
    Nfd,
    #[serde(rename = "NFKC")]
    Nfkc,
    #[serde(rename = "NFKD")]
    Nfkd,
    Lowercase,
    StripAccents,
    Strip {
        strip_left: bool,
        strip_right: bool,
    },
    Prepend {
        prepend: String,
    },
    Replace {
        pattern: PatternEntry,
        content: String,
    },
    BertNormalizer {
        clean_text: bool,
        handle_chinese_chars: bool,
        strip_accents: Option<bool>,
        lowercase: bool,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type")]
pub(super) enum PreTokenizerEntry {
    Sequence {
        pretokenizers: Vec<PreTokenizerEntry>,
    },
    ByteLevel {
        #[serde(default = "yes")]
        add_prefix_space: bool,
        #[serde(default = "yes")]
        use_regex: bool,
    },
    Split {
        pattern: PatternEntry,
        behavior: Behavior,
        #[serde(default)]
        invert: bool,
    },
    Metaspace {
        replacement: char,
        prepend_scheme: Option<PrependScheme>,
        /// How older files say it.
        add_prefix_space: Option<bool>,
        #[serde(default = "yes")]
        split: bool,
    },
    Digits {
        #[serde(default)]
        individual_digits: bool,
    },
    Punctuation {
        #[serde(default)]
        behavior: Behavior,
    },
    Whitespace,
    WhitespaceSplit,
    BertPreTokenizer,
}

fn yes() -> bool {
    true
}

/// Where the matches of a pattern go.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) enum Behavior {
    Removed,
    #[default]
    Isolated,
    Contiguous,
    MergedWithPrevious,
    MergedWithNext,
}

/// Which texts get a space in front.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum PrependScheme {
    /// The beginning of the whole.
    First,
    Never,
    Always,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
pub(super) enum PostProcessorEntry {
    Sequence {
        processors: Vec<PostProcessorEntry>,
    },
    ByteLevel {},
    BertProcessing {
        sep: (String, u32),
        cls: (String, u32),
    },
    RobertaProcessing {
        sep: (String, u32),
        cls: (String, u32),
    },
    TemplateProcessing(Template),
}

#[derive(Deserialize)]
pub(super) struct Template {
    /// What a single text becomes.
    pub single: Vec<TemplatePart>,
    /// The ids of the special tokens, by name.
    pub special_tokens: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
pub(super) enum TemplatePart {
    SpecialToken { id: String },
    Sequence {},
}

/// The model; which fields it has depends on its type.
#[derive(Deserialize)]
pub(super) struct Model<'a> {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    #[serde(borrow)]
    pub vocab: Vocab<'a>,
    #[serde(borrow)]
    pub merges: Option<Vec<MergeEntry<'a>>>,
    pub unk_token: Option<String>,
    pub continuing_subword_prefix: Option<String>,
    pub end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub fuse_unk: bool,
    #[serde(default)]
    pub byte_fallback: bool,
    #[serde(default)]
    pub ignore_merges: bool,
    pub max_input_chars_per_word: Option<usize>,
}

/// Tokens and their ids, in the order of the file.
pub(super) struct Vocab<'a>(pub Vec<(Cow<'a, str>, u32)>);

impl<'de: 'a, 'a> Deserialize<'de> for Vocab<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Vocab<'a>, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Vocab<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tokens and their ids, as the models BPE and WordPiece have them")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vocab<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some((Text(text), id)) = map.next_entry()? {
                    entries.push((text, id));
                }
                Ok(Vocab(entries))
            }
        }
        deserializer.deserialize_map(Entries)
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

/// A merge, in one of the two spellings that are in use.
pub(super) enum MergeEntry<'a> {
    /// `["left", "right"]`
    Pair(Cow<'a, str>, Cow<'a, str>),
    /// `"left right"`
    Joined(Cow<'a, str>),
}

impl MergeEntry<'_> {
    /// The texts of both tokens, if there are two.
    pub fn pair(&self) -> Option<(&[u8], &[u8])> {
        let (left, right) = match self {
            MergeEntry::Pair(left, right) => (left.as_ref(), right.as_ref()),
            MergeEntry::Joined(text) => text.split_once(' ')?,
        };
        Some((left.as_bytes(), right.as_bytes()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for MergeEntry<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MergeEntry<'a>, D::Error> {
        struct AnyMerge;
        impl<'de> Visitor<'de> for AnyMerge {
            type Value = MergeEntry<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge: two tokens, or a text with a space between them")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<MergeEntry<'de>, E> {
                Ok(MergeEntry::Joined(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<MergeEntry<'de>, E> {
                Ok(MergeEntry::Joined(Cow::Owned(text.to_string())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Self::Value, A::Error> {
                let mut next = || pair.next_element::<Text<'de>>();
                match (next()?, next()?, next()?) {
                    (Some(Text(left)), Some(Text(right)), None) => {
                        Ok(MergeEntry::Pair(left, right))
                    }
                    _ => Err(A::Error::custom("a merge is not two tokens")),
                }
            }
        }
        deserializer.deserialize_any(AnyMerge)
    }
}
