//! What other sequences have said: look-up in the texts of all sequences of a model.
//!
//! ```text
//! young   text | text | text …        texts are added at the end of an answer, a separator between them
//! old     text | text                 when the young half is full it becomes the old one, and that is forgotten
//! ```
//!
//! Each half is an [`Index`] of at most [`HALF`] tokens, which takes two or three megabytes.

use super::lookup::{Found, Index, LONGEST};

/// Tokens of a half.
const HALF: usize = 1 << 16;
/// Between two texts; no vocabulary has it.
const SEPARATOR: u32 = u32::MAX;

/// The texts of all sequences, as far as they are remembered.
#[derive(Default)]
pub(crate) struct TextPool {
    young: Index,
    old: Index,
}

impl TextPool {
    /// Remembers a text of which all but the first `known` tokens are new. What the pool has already of the rest's
    /// beginning is not added again: many sequences begin alike.
    pub fn add(&mut self, text: &[u32], known: usize) {
        let new = &text[known.min(text.len())..];
        let repeated = self.young.repeated(new).max(self.old.repeated(new));
        let first = (text.len() - new.len()) + repeated;
        // Some tokens before it, so that its first ones are found.
        let text = &text[first.saturating_sub(LONGEST)..];
        let text = &text[text.len().saturating_sub(HALF - 1)..];
        if first + 1 >= known + new.len() {
            return;
        }
        if self.young.len() + text.len() + 1 > HALF {
            self.old = std::mem::take(&mut self.young);
        }
        for &token in text.iter().chain([&SEPARATOR]) {
            self.young.push(token);
        }
    }

    /// What followed the last of these tokens in some text: after the longest agreement, then the latest.
    pub(super) fn find(&self, last: &[u32], most: usize) -> Option<Found> {
        let found = [&self.young, &self.old].map(|half| {
            let mut found = half.find_after(last, most)?;
            let n = cut(&mut found.tokens);
            let fork = found.fork.as_mut().map(|fork| cut(&mut fork.tokens));
            if fork == Some(0) || found.fork.as_ref().is_some_and(|fork| fork.after >= n) {
                found.fork = None;
            }
            (n > 0).then_some(found)
        });
        // Of equals `max_by_key` takes the last.
        let found = found.into_iter().rev().flatten();
        found.max_by_key(|found| found.length)
    }
}

/// Cuts tokens where their text ends; returns how many are left.
fn cut(tokens: &mut Vec<u32>) -> usize {
    let end = tokens.iter().position(|&token| token == SEPARATOR);
    tokens.truncate(end.unwrap_or(tokens.len()));
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(found: Option<Found>) -> Option<(Vec<u32>, usize)> {
        found.map(|found| (found.tokens, found.length))
    }

    /// Fails when a text is not found, when a guess goes on into the next text, or when an agreement does.
    #[test]
    fn what_another_text_said_is_found_up_to_its_end() {
        let mut pool = TextPool::default();
        pool.add(&[1, 2, 3, 4, 5], 0);
        pool.add(&[9, 2, 3, 4, 6, 7, 8], 0);
        assert_eq!(tokens(pool.find(&[0, 1, 2, 3], 8)), Some((vec![4, 5], 3)));
        assert_eq!(tokens(pool.find(&[9, 2, 3, 4], 2)), Some((vec![6, 7], 4)));
        assert_eq!(
            tokens(pool.find(&[2, 3, 4], 9)),
            Some((vec![6, 7, 8], 3)),
            "the latest"
        );
        assert_eq!(tokens(pool.find(&[3, 4, 5], 9)), None, "the end of a text");
        assert_eq!(tokens(pool.find(&[2, 3], 9)), None);
    }

    /// Fails when a conversation is added anew with each of its turns, or a system prompt with each question.
    #[test]
    fn what_is_there_is_not_added_again() {
        let mut pool = TextPool::default();
        let text: Vec<u32> = (0..1000).collect();
        pool.add(&text, 0);
        let before = pool.young.len();
        pool.add(&text, 0);
        assert_eq!(pool.young.len(), before);
        let longer: Vec<u32> = (0..1010).collect();
        pool.add(&longer, 1000);
        pool.add(&[&text[..], &[7, 7, 7, 8, 8]].concat(), 0);
        assert!(pool.young.len() < before + 100, "{}", pool.young.len());
        assert_eq!(
            tokens(pool.find(&[998, 999, 1000], 2)),
            Some((vec![1001, 1002], 3))
        );
        assert_eq!(tokens(pool.find(&[999, 7, 7, 7], 2)), Some((vec![8, 8], 4)));
    }

    /// Fails when memory grows with the texts, or when a text that came just before is forgotten.
    #[test]
    fn a_full_pool_forgets_the_oldest_texts() {
        let mut pool = TextPool::default();
        // No three tokens of one text are those of another.
        let text =
            |number: u32| -> Vec<u32> { (0..1000).map(|i| (number << 23) | (i * 7919)).collect() };
        for text in (0..400).map(text) {
            pool.add(&text, 0);
            assert!(pool.find(&text[..10], 3).is_some());
            assert!(pool.young.len() <= HALF && pool.old.len() <= HALF);
        }
        assert_eq!(tokens(pool.find(&text(0)[..10], 3)), None);
        let endless: Vec<u32> = (0..3 * HALF as u32).collect();
        pool.add(&endless, 0);
        assert!(pool.young.len() <= HALF);
    }
}
