//! How many guesses are worth their rows.
//!
//! A step of r rows takes `t(r)` seconds on this device, which [`Costs`] remembers. If a guess is right with probability
//! p given that those before it were, k guesses give
//!
//! ```text
//! 1 + p + p² + … + pᵏ   tokens in   t(rows + k) + drafting   seconds
//! ```
//!
//! and the best k is taken, if it beats the step without guesses. p is the share of right guesses lately, for short
//! and long agreements apart.
//!
//! Estimates are wrong at times, so that there is an *account*, in tokens: a step of guesses that gave more tokens than
//! it took the time of is a gain, one that gave fewer is a loss, and each token without guesses adds [`ALLOWANCE`]. A
//! step whose guesses may all be wrong must be covered. Whatever a text is like, guessing then costs no more than that
//! share, and the first few tokens' worth.

/// Share of the time that wrong guesses may take.
const ALLOWANCE: f64 = 0.02;
/// What the account begins with, in tokens, and the most that it holds.
const FIRST: f64 = 1.0;
const MOST: f64 = 8.0;
/// How much older observations count less with each new one, and with each token without guesses.
const DECAY: f64 = 0.9;
const FORGET: f64 = 0.99;
/// Weight of a new time against those before.
const NEW: f64 = 0.2;
/// Rows that times are kept for.
const MAX_ROWS: usize = 64;
/// The assumed cost of one more row, as a share of the first, before any was measured.
const GUESSED_ROW: f64 = 0.08;

/// Seconds of steps by their rows.
#[derive(Clone)]
pub(crate) struct Costs {
    seconds: [f64; MAX_ROWS + 1],
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            seconds: [0.0; MAX_ROWS + 1],
        }
    }
}

impl Costs {
    /// Takes note of a step.
    pub fn record(&mut self, rows: usize, seconds: f64) {
        if let Some(known) = self.seconds.get_mut(rows) {
            *known = match *known {
                0.0 => seconds,
                // Somebody else had the machine: one such step says little.
                before => before + NEW * (seconds.min(2.0 * before) - before),
            };
        }
    }

    /// Seconds of a step: seen, or between those of fewer and of more rows. `None` before any was seen.
    pub fn of(&self, rows: usize) -> Option<f64> {
        let seen = |at: &usize| self.seconds[*at] > 0.0;
        let rows = rows.clamp(1, MAX_ROWS);
        let fewer = (1..=rows).rev().find(seen)?;
        let low = self.seconds[fewer];
        if fewer == rows {
            return Some(low);
        }
        let Some(more) = (rows..=MAX_ROWS).find(seen) else {
            return Some(low * (1.0 + GUESSED_ROW * (rows - fewer) as f64));
        };
        let share = (rows - fewer) as f64 / (more - fewer) as f64;
        Some(low + share * (self.seconds[more] - low))
    }
}

/// Where guesses come from, as far as it says how good they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The text, after an agreement of as many tokens.
    Text(usize),
    /// The text of another sequence, after an agreement of as many tokens.
    Pool(usize),
    /// A model.
    Model,
}

impl Source {
    /// Its place among the kinds of sources.
    fn kind(self) -> usize {
        match self {
            Source::Text(0..6) => 0,
            Source::Text(6..16) => 1,
            Source::Text(_) => 2,
            Source::Pool(0..6) => 3,
            Source::Pool(6..16) => 4,
            Source::Pool(_) => 5,
            Source::Model => 6,
        }
    }
}

/// What is taken to be the share of right guesses before any was seen, for each kind of source.
const PRIOR: [f64; 7] = [0.5, 0.7, 0.85, 0.4, 0.6, 0.8, 0.7];

/// Right and wrong guesses of one kind lately.
#[derive(Clone, Copy, Default)]
struct Seen {
    right: f64,
    wrong: f64,
}

/// The judge of one sequence.
pub(super) struct Judge {
    account: f64,
    seen: [Seen; PRIOR.len()],
}

/// What the rest of a step is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// Its rows.
    pub rows: usize,
    /// Tokens that it is expected to give.
    pub tokens: f64,
}

impl Judge {
    pub fn new() -> Judge {
        Judge {
            account: FIRST,
            seen: [Seen::default(); PRIOR.len()],
        }
    }

    fn share(&self, source: Source) -> f64 {
        let kind = source.kind();
        let Seen { right, wrong } = self.seen[kind];
        (right + PRIOR[kind]) / (right + wrong + 1.0)
    }

    /// The number of guesses, at most `most`, that make a step the fastest; each takes `drafting` seconds.
    pub fn best(
        &self,
        source: Source,
        most: usize,
        rest: Rest,
        (costs, drafting): (&Costs, f64),
    ) -> usize {
        let Some(plain) = costs.of(rest.rows) else {
            return 0;
        };
        let token = plain / rest.tokens;
        let share = self.share(source);
        let (mut best, mut best_rate) = (0, 1.0 / token);
        let (mut expected, mut right) = (rest.tokens, 1.0);
        for n in 1..=most {
            right *= share;
            expected += right;
            let seconds = costs.of(rest.rows + n).unwrap_or(plain) + drafting * n as f64;
            let worst = (seconds - plain) / token;
            if worst <= self.account && expected / seconds > best_rate {
                (best, best_rate) = (n, expected / seconds);
            }
        }
        best
    }

    /// The expected number of right guesses.
    pub fn expected(&self, source: Source, n: usize) -> f64 {
        let share = self.share(source);
        (1..=n as i32).map(|n| share.powi(n)).sum()
    }

    /// Some tokens came without guesses.
    pub fn plain(&mut self, tokens: usize) {
        self.account = (self.account + ALLOWANCE * tokens as f64).min(MOST);
        for seen in &mut self.seen {
            let kept = FORGET.powi(tokens.min(1000) as i32);
            seen.right *= kept;
            seen.wrong *= kept;
        }
    }

    /// A step had guesses, of which the first ones were right; it took as long as `worth` tokens more than one without.
    pub fn learn(&mut self, source: Source, guesses: usize, right: usize, worth: f64) {
        let gain = right as f64 - worth;
        self.account = (self.account + gain).clamp(-MOST, MOST);
        let seen = &mut self.seen[source.kind()];
        seen.right = seen.right * DECAY + right as f64;
        seen.wrong = seen.wrong * DECAY + f64::from(right < guesses);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device on which a row more costs a tenth of the first.
    fn costs() -> Costs {
        let mut costs = Costs::default();
        for rows in 1..=32 {
            costs.record(rows, 0.01 * (0.9 + 0.1 * rows as f64));
        }
        costs
    }

    const ALONE: Rest = Rest {
        rows: 1,
        tokens: 1.0,
    };

    /// Fails when refused guesses are made again and again, or when they are never tried again.
    #[test]
    fn refused_guesses_cost_no_more_than_the_allowance() {
        let (costs, source) = (costs(), Source::Text(3));
        let mut judge = Judge::new();
        let (mut seconds, n_tokens) = (0.0, 2000);
        let mut tries = 0;
        for _ in 0..n_tokens {
            let n = judge.best(source, 8, ALONE, (&costs, 0.0));
            let took = costs.of(1 + n).expect("known");
            seconds += took;
            match n {
                0 => judge.plain(1),
                n => {
                    tries += 1;
                    judge.learn(source, n, 0, (took - 0.01) / 0.01);
                }
            }
        }
        let plain = 0.01 * f64::from(n_tokens);
        assert!(seconds < 1.025 * plain, "{seconds} against {plain}");
        assert!(tries > 1, "{tries}");
    }

    /// Fails when good guesses do not become more.
    #[test]
    fn right_guesses_become_more() {
        let (costs, source) = (costs(), Source::Text(20));
        let mut judge = Judge::new();
        for _ in 0..20 {
            let n = judge.best(source, 31, ALONE, (&costs, 0.0));
            assert!(n > 0);
            let took = costs.of(1 + n).expect("known");
            judge.learn(source, n, n, (took - 0.01) / 0.01);
        }
        assert!(judge.best(source, 31, ALONE, (&costs, 0.0)) > 16);
    }

    /// Fails when guesses are made where a row more costs as much as a step.
    #[test]
    fn nothing_is_guessed_where_rows_are_dear() {
        let mut costs = Costs::default();
        for rows in 1..=32 {
            costs.record(rows, 0.01 * rows as f64);
        }
        let judge = Judge::new();
        assert_eq!(judge.best(Source::Text(20), 31, ALONE, (&costs, 0.0)), 0);
        assert_eq!(
            judge.best(Source::Text(20), 31, ALONE, (&Costs::default(), 0.0)),
            0,
            "nothing is known"
        );
    }

    #[test]
    fn times_between_those_that_were_seen_are_between_them() {
        let mut costs = Costs::default();
        costs.record(1, 1.0);
        costs.record(5, 3.0);
        assert_eq!(costs.of(3), Some(2.0));
        assert_eq!(costs.of(5), Some(3.0));
        assert!(costs.of(9).is_some_and(|seconds| seconds > 3.0));
    }
}
