//! Answers that go round in circles: the same few tokens again and again, which a model does not leave by itself.
//!
//! The last tokens repeat a cycle of p tokens over a span of n tokens when each of them is the one p tokens before it:
//!
//! ```text
//! the  cat  sat  on  the  mat  and  on  the  mat  and  on  the  mat  and
//!                └──────── p = 4, a span of n = 12 tokens ─────────────┘
//! ```
//!
//! An answer loops when, for some p, the span reaches `max(window, 3 p)` tokens. A run counter for each p follows from one
//! comparison for each token, so that nothing is searched.

use crate::error::EngineError;

/// The window that suits conversations: long enough for a table's rule or a row of zeros, short enough that nobody waits long
/// for an answer that has ended in a loop.
pub const LOOP_WINDOW: u32 = 64;

/// The longest cycle that is looked for, in tokens: a paragraph.
const MAX_CYCLE: usize = 256;
/// How often a cycle must have come, at least.
const MIN_TURNS: usize = 3;

/// Watches an answer for loops.
pub(crate) struct LoopWatch {
    window: usize,
    /// The last [`MAX_CYCLE`] tokens: token i lies at `i % MAX_CYCLE`.
    tokens: [u32; MAX_CYCLE],
    n_tokens: usize,
    /// For each cycle of p tokens, at p - 1: how many of the last tokens are those p tokens before them.
    runs: [u32; MAX_CYCLE],
    has_looped: bool,
}

impl LoopWatch {
    pub fn new(window: u32) -> Result<LoopWatch, EngineError> {
        if window == 0 {
            return Err(EngineError::Sampling {
                option: "loop_window",
                found: 0.0,
                wanted: "a number of tokens from 1 to 4294967295",
            });
        }
        Ok(LoopWatch {
            window: window as usize,
            tokens: [0; MAX_CYCLE],
            n_tokens: 0,
            runs: [0; MAX_CYCLE],
            has_looped: false,
        })
    }

    /// The next token of the answer.
    pub fn push(&mut self, token: u32) {
        let n_cycles = self.n_tokens.min(MAX_CYCLE);
        for cycle in 1..=n_cycles {
            let run = &mut self.runs[cycle - 1];
            let before = self.tokens[(self.n_tokens - cycle) % MAX_CYCLE];
            *run = if before == token { *run + 1 } else { 0 };
            let span = *run as usize + cycle;
            self.has_looped |= *run > 0 && span >= self.window.max(MIN_TURNS * cycle);
        }
        self.tokens[self.n_tokens % MAX_CYCLE] = token;
        self.n_tokens += 1;
    }

    /// Whether the answer has looped.
    pub fn has_looped(&self) -> bool {
        self.has_looped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of tokens after which a text is found to loop.
    fn ends_at(window: u32, text: impl IntoIterator<Item = u32>) -> Option<usize> {
        let mut watch = LoopWatch::new(window).expect("a window");
        text.into_iter().zip(1..).find_map(|(token, n)| {
            watch.push(token);
            watch.has_looped().then_some(n)
        })
    }

    fn cycle(length: u32) -> impl Iterator<Item = u32> {
        (0..length).cycle().take(5000)
    }

    #[test]
    fn a_cycle_ends_after_the_window_and_three_turns() {
        assert_eq!(ends_at(64, cycle(1)), Some(64));
        assert_eq!(ends_at(64, cycle(7)), Some(64));
        assert_eq!(ends_at(64, cycle(50)), Some(150));
        assert_eq!(ends_at(64, cycle(256)), Some(768));
        assert_eq!(ends_at(64, cycle(257)), None);
        assert_eq!(ends_at(1000, cycle(50)), Some(1000));
        // A window of one token still asks for three turns.
        assert_eq!(ends_at(1, [5, 5, 5]), Some(3));
        // What comes before a loop does not count for it.
        assert_eq!(ends_at(64, (1000..1300).chain(cycle(10))), Some(364));
    }

    /// Fails if a list whose entries differ in one token each counts as a loop.
    #[test]
    fn what_changes_in_each_turn_is_no_loop() {
        let list = (0..1000).flat_map(|entry| [7, 8, 9, 100 + entry, 10]);
        assert_eq!(ends_at(64, list), None);
        let two_turns = (0..100).chain(0..100).chain(200..300);
        assert_eq!(ends_at(64, two_turns), None);
    }

    #[test]
    fn a_window_of_nothing_is_refused() {
        let refused = LoopWatch::new(0).err().expect("refused").to_string();
        assert!(refused.contains("loop_window"), "{refused}");
    }
}
