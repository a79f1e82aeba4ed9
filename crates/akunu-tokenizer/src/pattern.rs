//! A regular expression that cuts text.
//!
//! Most patterns of tokenizers end in `|\s+(?!\S)|\s+`: a run of spaces before a word leaves its last space to the
//! word. Automata cannot look ahead, so that end is spelt out here:
//!
//! ```text
//! match head, or else \s+
//! when \s+ matched two or more spaces and the text goes on: give the last one back
//! ```
//!
//! That is the same. `\s+` takes all spaces there are, so what follows it is none; it can look ahead at no
//! word only one space earlier, and a single space is left to the last branch. A pattern that looks around in another way
//! is matched by backtracking, which is several times slower.

use fancy_regex::Regex as Backtracking;
use regex_automata::Input;
use regex_automata::meta::Regex as Automaton;

/// The end of a pattern that looks ahead.
const SPACES_BEFORE_WORDS: &str = r"|\s+(?!\S)|\s+";

/// A compiled pattern.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// Its second expression, where it has two, is the run of spaces.
    Automaton(Box<Automaton>),
    /// What automata cannot do.
    Backtracking(Box<Backtracking>),
}

impl Pattern {
    /// Compiles a regular expression.
    pub fn new(pattern: &str) -> Result<Pattern, String> {
        let automaton = match pattern.strip_suffix(SPACES_BEFORE_WORDS) {
            Some(head) => Automaton::new_many(&[head, r"\s+"]),
            None => Automaton::new(pattern),
        };
        if let Ok(automaton) = automaton {
            return Ok(Pattern::Automaton(Box::new(automaton)));
        }
        let backtracking = Backtracking::new(pattern);
        let backtracking =
            backtracking.map_err(|error| format!("the pattern {pattern:?} is wrong: {error}"))?;
        Ok(Pattern::Backtracking(Box::new(backtracking)))
    }

    /// A text that matches itself.
    pub fn literal(text: &str) -> Result<Pattern, String> {
        Pattern::new(&regex::escape(text))
    }

    /// Calls `each` with every match and with what lies between matches, in order, and whether it is a match. Together
    /// these are the text. Only a match can be empty.
    pub fn segments<'t>(&self, text: &'t str, mut each: impl FnMut(&'t str, bool)) {
        let mut done = 0;
        let mut from = 0;
        let mut last_end = None;
        while let Some((start, end)) = self.find(text, from) {
            let is_empty = start == end;
            from = if is_empty {
                after_character(text, end)
            } else {
                end
            };
            // Right after a match there is no empty one.
            if is_empty && last_end == Some(end) {
                continue;
            }
            if done < start {
                each(&text[done..start], false);
            }
            each(&text[start..end], true);
            done = end;
            last_end = Some(end);
        }
        if done < text.len() {
            each(&text[done..], false);
        }
    }

    /// The first match from `at` on.
    fn find(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        if at > text.len() {
            return None;
        }
        match self {
            Pattern::Automaton(automaton) => {
                let found = automaton.search(&Input::new(text).range(at..))?;
                let (start, end) = (found.start(), found.end());
                let is_run_of_spaces = found.pattern().as_usize() == 1;
                let given_back = match text[start..end].chars().next_back() {
                    Some(last) if is_run_of_spaces && end < text.len() => last.len_utf8(),
                    _ => 0,
                };
                let is_single = start + given_back == end;
                Some((start, if is_single { end } else { end - given_back }))
            }
            Pattern::Backtracking(regex) => {
                // An error is a text that takes too many steps: it stays whole.
                let found = regex.find_from_pos(text, at).ok()??;
                Some((found.start(), found.end()))
            }
        }
    }
}

/// The byte after the character at `at`; beyond the text at its end.
fn after_character(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(pattern: &str, text: &str) -> Vec<(String, bool)> {
        let mut segments = Vec::new();
        let pattern = Pattern::new(pattern).expect("a pattern");
        pattern.segments(text, |segment, is_match| {
            segments.push((segment.to_string(), is_match));
        });
        segments
    }

    /// Breaks when the end that is spelt out differs from the same pattern matched by backtracking.
    #[test]
    fn spaces_before_words_are_cut_as_backtracking_cuts_them() {
        let spelt = r"[a-z]+|\s+(?!\S)|\s+";
        // An end that means the same and is not recognised.
        let other = r"[a-z]+|\s+(?!\S)|\s\s*";
        for text in ["a  b", "  ", " a ", "\n \n a\t\tb  ", "", "é é  é"] {
            assert!(matches!(Pattern::new(spelt), Ok(Pattern::Automaton(_))));
            assert!(matches!(Pattern::new(other), Ok(Pattern::Backtracking(_))));
            assert_eq!(segments(spelt, text), segments(other, text), "{text:?}");
        }
    }

    /// Breaks when an empty match ends the search, or is found twice.
    #[test]
    fn empty_matches_are_found_between_characters() {
        let matched = |text: &str| (text.to_string(), true);
        let between = |text: &str| (text.to_string(), false);
        assert_eq!(segments("x*", ""), [matched("")]);
        assert_eq!(
            segments("x*", "aé"),
            [
                matched(""),
                between("a"),
                matched(""),
                between("é"),
                matched("")
            ]
        );
    }

    #[test]
    fn wrong_patterns_are_named() {
        let refused = Pattern::new("(?!").expect_err("a wrong pattern");
        assert!(refused.contains("(?!"), "{refused}");
    }
}
