//! Cuts text into pieces by the patterns of a [`PreTokenizer`].
//!
//! Each pattern cuts every piece of the former into its matches and what lies between them. Most patterns
//! end in `|\s+(?!\S)|\s+`: a run of spaces before a word leaves its last space to the word. Automata cannot
//! look ahead, so that end is spelt out here:
//!
//! ```text
//! match head, or else \s+
//! when \s+ matched two or more spaces and the piece goes on: give the last one back
//! ```
//!
//! That is the same. `\s+` takes all spaces there are, so what follows it is none; it can look ahead at no
//! word only one space earlier, and a single space is left to the last branch.

use crate::error::TokenizerError;
use crate::pretokenizer::PreTokenizer;
use regex_automata::Input;
use regex_automata::meta::Regex;

/// The end of a pattern that looks ahead.
const SPACES_BEFORE_WORDS: &str = r"|\s+(?!\S)|\s+";

/// The patterns of a pre-tokenizer, compiled.
#[derive(Debug)]
pub(crate) struct Cutter {
    steps: Vec<Regex>,
}

impl Cutter {
    pub fn new(pre: &PreTokenizer) -> Result<Cutter, TokenizerError> {
        let steps = pre.patterns.iter().map(|pattern| compile(pattern));
        Ok(Cutter {
            steps: steps.collect::<Result<_, _>>()?,
        })
    }

    /// Calls `each` with every piece of the text, in order.
    pub fn cut<'t>(&self, text: &'t str, each: &mut dyn FnMut(&'t str)) {
        cut(&self.steps, text, each);
    }
}

/// A pattern; its second one, where it has two, is the run of spaces.
fn compile(pattern: &str) -> Result<Regex, TokenizerError> {
    let regex = match pattern.strip_suffix(SPACES_BEFORE_WORDS) {
        Some(head) => Regex::new_many(&[head, r"\s+"]),
        None => Regex::new(pattern),
    };
    regex.map_err(|error| TokenizerError::Backend {
        action: "built",
        reason: error.to_string(),
    })
}

fn cut<'t>(steps: &[Regex], text: &'t str, each: &mut dyn FnMut(&'t str)) {
    let Some((step, others)) = steps.split_first() else {
        return each(text);
    };
    let mut done = 0;
    while let Some((start, end)) = next_match(step, text, done) {
        if done < start {
            cut(others, &text[done..start], each);
        }
        cut(others, &text[start..end], each);
        done = end;
    }
    if done < text.len() {
        cut(others, &text[done..], each);
    }
}

/// The first match from `at` on; never an empty one.
fn next_match(step: &Regex, text: &str, at: usize) -> Option<(usize, usize)> {
    let found = step.search(&Input::new(text).range(at..))?;
    let (start, mut end) = (found.start(), found.end());
    if found.pattern().as_usize() == 1 && end < text.len() {
        let last = text[start..end].chars().next_back()?.len_utf8();
        if start + last < end {
            end -= last;
        }
    }
    (start < end).then_some((start, end))
}
