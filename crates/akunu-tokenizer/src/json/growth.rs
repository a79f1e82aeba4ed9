//! How much longer the normalizer of a `tokenizer.json` can make a text.
//!
//! A step makes a text at most so many times longer, and steps one after the other multiply: 27 that double a letter make
//! a text of one into 128 MiB. So the product has a limit.

use super::file::{NormalizerEntry, PatternEntry};

/// How many times longer a text may become. `Prepend` and `Replace` of Llama 2 make it 12 times; with NFKC and lower case
/// it would be 264.
const MAX_TIMES: usize = 1024;

/// The most steps, with sequences counted too. Those in use have up to ten.
const MAX_STEPS: usize = 64;

/// What the steps so far can do to a text.
#[derive(Debug)]
pub(super) struct Growth {
    n_steps: usize,
    times: usize,
}

impl Default for Growth {
    fn default() -> Growth {
        Growth {
            n_steps: 0,
            times: 1,
        }
    }
}

impl Growth {
    /// Adds a step, without those inside of it.
    pub fn add(&mut self, entry: &NormalizerEntry) -> Result<(), String> {
        self.n_steps += 1;
        if self.n_steps > MAX_STEPS {
            return Err(format!("has a `normalizer` of more than {MAX_STEPS} steps"));
        }
        self.times = self.times.saturating_mul(times(entry));
        if self.times > MAX_TIMES {
            return Err(format!(
                "has a `normalizer` that can make a text {} times longer; at most {MAX_TIMES} times are accepted: shorten \
                 its `prepend` and `content`",
                self.times
            ));
        }
        Ok(())
    }
}

/// How many times longer a step makes a text of one byte or more, at most.
fn times(entry: &NormalizerEntry) -> usize {
    match entry {
        NormalizerEntry::Sequence { .. }
        | NormalizerEntry::StripAccents
        | NormalizerEntry::Strip { .. } => 1,
        // The most that a single character grows in UTF-8: U+1D160, U+FDFA and U+0130.
        NormalizerEntry::Nfc | NormalizerEntry::Nfd => 3,
        NormalizerEntry::Nfkc | NormalizerEntry::Nfkd => 11,
        NormalizerEntry::Lowercase => 2,
        // Spaces around a Chinese character, NFD, and lower case.
        NormalizerEntry::BertNormalizer { .. } => 2 * 3 * 2,
        NormalizerEntry::Prepend { prepend } => prepend.len().saturating_add(1),
        NormalizerEntry::Replace { pattern, content } => match shortest_match(pattern) {
            // An empty match before every byte.
            0 => content.len().saturating_add(1),
            n_bytes => content.len().div_ceil(n_bytes).max(1),
        },
    }
}

/// The fewest bytes that a pattern matches; 0 for one that looks around or is wrong.
fn shortest_match(pattern: &PatternEntry) -> usize {
    match pattern {
        PatternEntry::String(text) => text.len(),
        PatternEntry::Regex(pattern) => regex_automata::util::syntax::parse(pattern)
            .ok()
            .and_then(|parsed| parsed.properties().minimum_len())
            .unwrap_or(0),
    }
}
