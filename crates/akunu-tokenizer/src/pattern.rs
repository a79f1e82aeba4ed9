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
//! word only one space earlier, and a single space is left to the last branch.

use regex_automata::Input;
use regex_automata::meta::Regex;

/// The end of a pattern that looks ahead.
const SPACES_BEFORE_WORDS: &str = r"|\s+(?!\S)|\s+";

/// A compiled pattern. Its second expression, where it has two, is the run of spaces.
#[derive(Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// Compiles a regular expression.
    pub fn new(pattern: &str) -> Result<Pattern, String> {
        let regex = match pattern.strip_suffix(SPACES_BEFORE_WORDS) {
            Some(head) => Regex::new_many(&[head, r"\s+"]),
            None => Regex::new(pattern),
        };
        let regex = regex.map_err(|error| format!("the pattern {pattern:?} is wrong: {error}"))?;
        Ok(Pattern(regex))
    }

    /// Calls `each` with every match and with what lies between matches, in order. Together these are the text. Only a
    /// match can be empty.
    pub fn segments<'t>(&self, text: &'t str, mut each: impl FnMut(&'t str)) {
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
                each(&text[done..start]);
            }
            each(&text[start..end]);
            done = end;
            last_end = Some(end);
        }
        if done < text.len() {
            each(&text[done..]);
        }
    }

    /// The first match from `at` on.
    fn find(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        if at > text.len() {
            return None;
        }
        let found = self.0.search(&Input::new(text).range(at..))?;
        let (start, end) = (found.start(), found.end());
        let is_run_of_spaces = found.pattern().as_usize() == 1;
        let given_back = match text[start..end].chars().next_back() {
            Some(last) if is_run_of_spaces && end < text.len() => last.len_utf8(),
            _ => 0,
        };
        let is_single = start + given_back == end;
        Some((start, if is_single { end } else { end - given_back }))
    }
}

/// The byte after the character at `at`; beyond the text at its end.
fn after_character(text: &str, at: usize) -> usize {
    at + text[at..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(pattern: &str, text: &str) -> Vec<String> {
        let mut segments = Vec::new();
        let pattern = Pattern::new(pattern).expect("a pattern");
        pattern.segments(text, |segment| segments.push(segment.to_string()));
        segments
    }

    /// Breaks when the end that is spelt out does something else than a look ahead: a run of spaces leaves its last one to
    /// the word after it, and a single space stays.
    #[test]
    fn spaces_before_words_leave_the_last_one() {
        let cut = |text: &str| segments(r" ?[a-z]+|\s+(?!\S)|\s+", text);
        assert_eq!(cut("a  b"), ["a", " ", " b"]);
        assert_eq!(cut("  "), ["  "]);
        assert_eq!(cut(" a "), [" a", " "]);
        assert_eq!(
            cut("\n \n a\t\tb  "),
            ["\n \n", " a", "\t", "\t", "b", "  "]
        );
        assert_eq!(cut("é é  é"), ["é", " ", "é", " ", " ", "é"]);
        assert!(cut("").is_empty());
    }

    /// Breaks when an empty match ends the search, or is found twice.
    #[test]
    fn empty_matches_are_found_between_characters() {
        assert_eq!(segments("x*", ""), [""]);
        assert_eq!(segments("x*", "aé"), ["", "a", "", "é", ""]);
    }

    #[test]
    fn patterns_that_look_around_are_named() {
        let refused = Pattern::new("a(?!b)").expect_err("no automaton");
        assert!(refused.contains("a(?!b)"), "{refused}");
    }
}
