//! Changes to a text before it is split: accents, letter case, replaced characters.

use std::borrow::Cow;

use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::pattern::Pattern;

/// A way to change a text.
#[derive(Debug)]
pub(crate) enum Normalizer {
    /// One after the other; none leaves the text as it is.
    Sequence(Vec<Normalizer>),
    /// Unicode's normalization forms.
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    /// To lower case.
    Lowercase,
    /// Removes combining marks.
    StripAccents,
    /// Removes spaces at the ends.
    Strip {
        left: bool,
        right: bool,
    },
    /// Puts a text in front, unless the text is empty.
    Prepend(String),
    /// Every match becomes another text.
    Replace {
        pattern: Pattern,
        with: String,
    },
    /// What BERT does.
    Bert(BertNormalizer),
}

/// BERT's cleaning of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BertNormalizer {
    /// Removes control characters, and replaces every kind of space by a space.
    pub clean_text: bool,
    /// Chinese characters are words of their own.
    pub handle_chinese_chars: bool,
    pub strip_accents: bool,
    pub lowercase: bool,
}

impl Normalizer {
    pub fn run<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        match self {
            Normalizer::Sequence(steps) => steps.iter().fold(text, |text, step| step.run(text)),
            Normalizer::Nfc => text.nfc().collect(),
            Normalizer::Nfd => text.nfd().collect(),
            Normalizer::Nfkc => text.nfkc().collect(),
            Normalizer::Nfkd => text.nfkd().collect(),
            Normalizer::Lowercase => lowercase(&text).into(),
            Normalizer::StripAccents => text.chars().filter(|c| !is_combining_mark(*c)).collect(),
            Normalizer::Strip { left, right } => strip(&text, *left, *right).to_string().into(),
            Normalizer::Prepend(_) if text.is_empty() => text,
            Normalizer::Prepend(before) => format!("{before}{text}").into(),
            Normalizer::Replace { pattern, with } => {
                let mut replaced = String::with_capacity(text.len());
                pattern.segments(&text, |segment, is_match| {
                    replaced.push_str(if is_match { with } else { segment });
                });
                replaced.into()
            }
            Normalizer::Bert(bert) => bert.run(&text).into(),
        }
    }
}

impl BertNormalizer {
    fn run(&self, text: &str) -> String {
        let mut text = text.to_string();
        if self.clean_text {
            let kept = text.chars().filter(|c| !is_dirt(*c));
            let spaced = kept.map(|c| if c.is_whitespace() { ' ' } else { c });
            text = spaced.collect();
        }
        if self.handle_chinese_chars {
            let mut apart = String::with_capacity(text.len());
            for character in text.chars() {
                if is_chinese(character) {
                    apart.extend([' ', character, ' ']);
                } else {
                    apart.push(character);
                }
            }
            text = apart;
        }
        if self.strip_accents {
            text = text.nfd().filter(|c| !c.is_mark_nonspacing()).collect();
        }
        if self.lowercase {
            text = lowercase(&text);
        }
        text
    }
}

/// Character by character: `str::to_lowercase` looks at the neighbours of a Greek sigma.
fn lowercase(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

fn strip(text: &str, left: bool, right: bool) -> &str {
    let text = if left { text.trim_start() } else { text };
    if right { text.trim_end() } else { text }
}

/// What BERT throws away.
fn is_dirt(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{FFFD}' => true,
        _ => character.is_other(),
    }
}

/// The blocks of ideographs that BERT counts as Chinese.
fn is_chinese(character: char) -> bool {
    matches!(
        u32::from(character),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B73F
            | 0x2B740..=0x2B81F
            | 0x2B920..=0x2CEAF
            | 0xF900..=0xFAFF
            | 0x2F800..=0x2FA1F
    )
}
