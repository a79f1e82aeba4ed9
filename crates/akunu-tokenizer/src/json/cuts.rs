//! How a `tokenizer.json` cuts text into the pieces that its model sees.

use super::file::{Behavior, PatternEntry, PreTokenizerEntry, PrependScheme};
use crate::pattern::Pattern;
use crate::pretokenizer::GPT2;
use crate::wordpiece::{bert_words, is_punctuation};

/// The most steps of a pre-tokenizer: each is a call inside of the one before it. Those in use have up to five.
const MAX_STEPS: usize = 64;

/// The most steps that put a character in front of a piece: with a step that cuts it off again, each doubles the pieces.
const MAX_PREFIXES: usize = 4;

/// A step; each cuts every piece of the former.
#[derive(Debug)]
pub(super) enum Cut {
    /// At the matches of a pattern; where inverted, at what lies between them.
    Split {
        pattern: Pattern,
        behavior: Behavior,
        invert: bool,
    },
    /// At characters of a kind.
    At(fn(char) -> bool, Behavior),
    /// A space in front of a piece that has none.
    PrefixSpace,
    /// Another character for spaces, and cuts before it.
    Metaspace {
        replacement: char,
        prepend: PrependScheme,
        split: bool,
    },
    /// The words of BERT.
    Bert,
}

/// The steps of a pre-tokenizer, and whether its pieces are bytes (which is the last step of those that have it).
pub(super) struct Cuts {
    pub steps: Vec<Cut>,
    pub is_byte_level: bool,
}

impl Cuts {
    pub fn new(entry: Option<PreTokenizerEntry>) -> Result<Cuts, String> {
        let mut cuts = Cuts {
            steps: Vec::new(),
            is_byte_level: false,
        };
        if let Some(entry) = entry {
            cuts.add(entry)?;
        }
        let n_steps = cuts.steps.len();
        if n_steps > MAX_STEPS {
            return Err(format!(
                "has a `pre_tokenizer` of {n_steps} steps; at most {MAX_STEPS} are accepted"
            ));
        }
        let puts_in_front = |step: &&Cut| matches!(step, Cut::PrefixSpace | Cut::Metaspace { .. });
        if cuts.steps.iter().filter(puts_in_front).count() > MAX_PREFIXES {
            return Err(format!(
                "has a `pre_tokenizer` with more than {MAX_PREFIXES} steps that put a space in front of pieces"
            ));
        }
        Ok(cuts)
    }

    fn add(&mut self, entry: PreTokenizerEntry) -> Result<(), String> {
        if self.is_byte_level {
            return Err("has a pre-tokenizer after `ByteLevel`, which is not supported".into());
        }
        match entry {
            PreTokenizerEntry::Sequence { pretokenizers } => {
                return pretokenizers.into_iter().try_for_each(|e| self.add(e));
            }
            PreTokenizerEntry::ByteLevel {
                add_prefix_space,
                use_regex,
            } => {
                self.is_byte_level = true;
                if add_prefix_space {
                    self.steps.push(Cut::PrefixSpace);
                }
                if use_regex {
                    self.steps.push(Cut::Split {
                        pattern: Pattern::new(GPT2)?,
                        behavior: Behavior::Isolated,
                        invert: false,
                    });
                }
            }
            other => self.steps.push(step(other)?),
        }
        Ok(())
    }
}

/// A step by itself.
fn step(entry: PreTokenizerEntry) -> Result<Cut, String> {
    let words = |pattern: &str| {
        Ok(Cut::Split {
            pattern: Pattern::new(pattern)?,
            behavior: Behavior::Removed,
            invert: true,
        })
    };
    match entry {
        PreTokenizerEntry::Split {
            pattern,
            behavior,
            invert,
        } => Ok(Cut::Split {
            pattern: compile(pattern)?,
            behavior,
            invert,
        }),
        PreTokenizerEntry::Metaspace {
            replacement,
            prepend_scheme,
            add_prefix_space,
            split,
        } => Ok(Cut::Metaspace {
            replacement,
            prepend: prepend_scheme.unwrap_or(match add_prefix_space {
                Some(false) => PrependScheme::Never,
                _ => PrependScheme::Always,
            }),
            split,
        }),
        PreTokenizerEntry::Digits { individual_digits } => Ok(Cut::At(
            char::is_numeric,
            if individual_digits {
                Behavior::Isolated
            } else {
                Behavior::Contiguous
            },
        )),
        PreTokenizerEntry::Punctuation { behavior } => Ok(Cut::At(is_punctuation, behavior)),
        PreTokenizerEntry::Whitespace => words(r"\w+|[^\w\s]+"),
        PreTokenizerEntry::WhitespaceSplit => Ok(Cut::At(char::is_whitespace, Behavior::Removed)),
        PreTokenizerEntry::BertPreTokenizer => Ok(Cut::Bert),
        PreTokenizerEntry::Sequence { .. } | PreTokenizerEntry::ByteLevel { .. } => {
            Err("has a sequence of pre-tokenizers where one is expected".into())
        }
    }
}

/// A pattern of the file.
pub(super) fn compile(entry: PatternEntry) -> Result<Pattern, String> {
    match entry {
        PatternEntry::String(text) => Pattern::literal(&text),
        PatternEntry::Regex(pattern) => Pattern::new(&pattern),
    }
}

/// Calls `each` with every piece of a text; `is_first` where the text begins the whole.
pub(super) fn cut(steps: &[Cut], text: &str, is_first: bool, each: &mut dyn FnMut(&str)) {
    let Some((step, others)) = steps.split_first() else {
        return each(text);
    };
    let mut begins = is_first;
    let mut next = |piece: &str| {
        cut(others, piece, begins, each);
        begins = false;
    };
    match step {
        Cut::Split {
            pattern,
            behavior,
            invert,
        } => {
            let mut segments = Vec::new();
            pattern.segments(text, |segment, is_match| {
                segments.push((segment, is_match != *invert));
            });
            gather(text, &segments, *behavior, &mut next);
        }
        Cut::At(is_it, behavior) => {
            gather(text, &by_character(text, *is_it), *behavior, &mut next);
        }
        Cut::PrefixSpace if text.starts_with(' ') => next(text),
        Cut::PrefixSpace => next(&format!(" {text}")),
        Cut::Metaspace {
            replacement,
            prepend,
            split,
        } => {
            let mut spaced = text.replace(' ', replacement.encode_utf8(&mut [0; 4]));
            let wants_space = match prepend {
                PrependScheme::Always => true,
                PrependScheme::First => is_first,
                PrependScheme::Never => false,
            };
            if wants_space && !spaced.starts_with(*replacement) {
                spaced.insert(0, *replacement);
            }
            if *split {
                let segments = by_character(&spaced, |c| c == *replacement);
                gather(&spaced, &segments, Behavior::MergedWithNext, &mut next);
            } else {
                next(&spaced);
            }
        }
        Cut::Bert => bert_words(text, &mut next),
    }
}

/// Every character of a kind as a match of its own, and what lies between them.
fn by_character(text: &str, is_it: impl Fn(char) -> bool) -> Vec<(&str, bool)> {
    let mut segments = Vec::new();
    let mut done = 0;
    for (start, character) in text.char_indices().filter(|(_, c)| is_it(*c)) {
        if done < start {
            segments.push((&text[done..start], false));
        }
        done = start + character.len_utf8();
        segments.push((&text[start..done], true));
    }
    if done < text.len() {
        segments.push((&text[done..], false));
    }
    segments
}

/// Puts segments of a text together as a behaviour says. They lie side by side, so that a piece is a range of the text.
fn gather(text: &str, segments: &[(&str, bool)], behavior: Behavior, each: &mut dyn FnMut(&str)) {
    let mut start = 0;
    let mut end = 0;
    for (at, (segment, is_match)) in segments.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| segments.get(at));
        let was_match = before.is_some_and(|(_, was_match)| *was_match);
        let joins = before.is_some()
            && match behavior {
                Behavior::Removed | Behavior::Isolated => false,
                Behavior::Contiguous => *is_match == was_match,
                Behavior::MergedWithPrevious => *is_match && !was_match,
                Behavior::MergedWithNext => was_match && !*is_match,
            };
        if !joins {
            if start < end {
                each(&text[start..end]);
            }
            start = end;
        }
        end += segment.len();
        if behavior == Behavior::Removed && *is_match {
            start = end;
        }
    }
    if start < end {
        each(&text[start..end]);
    }
}
