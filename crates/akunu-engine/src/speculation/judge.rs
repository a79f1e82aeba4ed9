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
//! and long agreements apart. A branch of m further guesses after the first f adds
//!
//! ```text
//! pᶠ (1 - p) q (1 + p + … + pᵐ⁻¹)   tokens
//! ```
//!
//! where q is how often a branch was right lately when the trunk was wrong at its fork.
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
const GUESSED_ROW: f64 = 0.25;
/// How much nearer the times of larger steps come to that assumption with each step that has no guesses.
const DOUBT: f64 = 0.03;

/// Seconds of steps by their rows.
#[derive(Clone, Default)]
pub(crate) struct Costs {
    steps: Times,
    /// Rounds of guesses of the model's own block, by their sequences.
    guesses: Times,
}

/// Times by a number of rows; 0 where none was seen.
#[derive(Clone)]
struct Times {
    seconds: [f64; MAX_ROWS + 1],
}

impl Default for Times {
    fn default() -> Times {
        Times {
            seconds: [0.0; MAX_ROWS + 1],
        }
    }
}

impl Times {
    fn record(&mut self, rows: usize, seconds: f64) {
        if let Some(known) = self.seconds.get_mut(rows) {
            *known = match *known {
                0.0 => seconds,
                // Somebody else had the machine: one such step says little.
                before => before + NEW * (seconds.min(2.0 * before) - before),
            };
        }
    }

    /// A time that was seen, or between those of fewer and of more rows. `None` before any was seen.
    fn of(&self, rows: usize) -> Option<f64> {
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

impl Costs {
    /// Takes note of a step.
    pub fn record(&mut self, rows: usize, seconds: f64) {
        self.steps.record(rows, seconds);
    }

    /// Takes note of a round of guesses for as many sequences.
    pub fn record_guesses(&mut self, sequences: usize, seconds: f64) {
        self.guesses.record(sequences, seconds);
    }

    /// Each sequence's share of the seconds of a round of guesses; 0 before any was seen.
    pub fn of_guess(&self, sequences: usize) -> f64 {
        let round = self.guesses.of(sequences).unwrap_or(0.0);
        round / sequences.max(1) as f64
    }

    /// Takes note of a step without guesses. A time of more rows that is longer than assumed may have been somebody else's
    /// work; nobody measures it again as long as it forbids guesses, so that it counts less and less.
    pub fn record_plain(&mut self, rows: usize, seconds: f64) {
        self.record(rows, seconds);
        let Some(plain) = self.of(rows) else { return };
        let times = self.steps.seconds.iter_mut().skip(rows + 1);
        for (more, known) in (1..).zip(times) {
            let assumed = plain * (1.0 + GUESSED_ROW * f64::from(more));
            if *known > assumed {
                *known += DOUBT * (assumed - *known);
            }
        }
    }

    /// Seconds of a step: seen, or between those of fewer and of more rows. `None` before any was seen.
    pub fn of(&self, rows: usize) -> Option<f64> {
        self.steps.of(rows)
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
    /// The model's own block for multi-token prediction.
    Mtp,
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
            Source::Mtp => 7,
        }
    }
}

/// What is taken to be the share of right guesses before any was seen, for each kind of source.
const PRIOR: [f64; 8] = [0.4, 0.7, 0.85, 0.3, 0.6, 0.8, 0.7, 0.7];
/// The same for a branch, where the trunk is wrong.
const BRANCH_PRIOR: f64 = 0.3;
/// Most guesses of a branch.
const MAX_BRANCH: usize = 8;

/// What there is to guess.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub source: Source,
    /// Guesses that follow each other.
    pub trunk: usize,
    /// Another continuation.
    pub fork: Option<Fork>,
    /// Guesses in all, at most.
    pub most: usize,
}

/// Guesses that follow the first `after` guesses of the trunk, instead of the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fork {
    pub after: usize,
    pub guesses: usize,
}

/// Guesses of the trunk, and of the branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Worthwhile {
    pub trunk: usize,
    pub branch: usize,
}

/// How a step with guesses went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Went {
    pub source: Source,
    /// Guesses of the trunk, and how many of them were right.
    pub trunk: (usize, usize),
    /// Whether the branch was right; `None` where there was none, or where the trunk was right at its fork.
    pub branch: Option<bool>,
    /// Right guesses in all.
    pub right: usize,
}

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
    branches: Seen,
}

/// What the rest of a step is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// Its rows.
    pub rows: usize,
    /// Tokens that it is expected to give.
    pub tokens: f64,
    /// Sequences that may guess.
    pub sequences: usize,
}

impl Judge {
    pub fn new() -> Judge {
        Judge {
            account: FIRST,
            seen: [Seen::default(); PRIOR.len()],
            branches: Seen::default(),
        }
    }

    fn share(&self, source: Source) -> f64 {
        let kind = source.kind();
        self.seen[kind].share(PRIOR[kind])
    }

    /// The guesses that make a step the fastest; each takes `drafting` seconds.
    pub fn best(&self, offer: Offer, rest: Rest, (costs, drafting): (&Costs, f64)) -> Worthwhile {
        let Some(plain) = costs.of(rest.rows) else {
            return Worthwhile::default();
        };
        let token = plain / rest.tokens;
        let (mut best, mut best_rate) = (Worthwhile::default(), 1.0 / token);
        for trunk in 1..=offer.trunk.min(offer.most) {
            for branch in 0..=offer.most_of_branch(trunk) {
                let n = trunk + branch;
                let seconds = costs.of(rest.rows + n).unwrap_or(plain) + drafting * n as f64;
                let worst = (seconds - plain) / token;
                let (guesses, after) = (Worthwhile { trunk, branch }, offer.fork_after());
                let expected = rest.tokens + self.expected(offer.source, guesses, after);
                if worst <= self.account && expected / seconds > best_rate {
                    (best, best_rate) = (guesses, expected / seconds);
                }
            }
        }
        best
    }

    /// Whether the account covers so many seconds before the first guess, and something is left.
    pub fn covers(&self, seconds: f64, rest: Rest, costs: &Costs) -> bool {
        let plain = costs.of(rest.rows);
        plain.is_some_and(|plain| seconds < self.account * plain / rest.tokens)
    }

    /// The expected number of right guesses; the branch follows the first `after` of the trunk.
    pub fn expected(&self, source: Source, guesses: Worthwhile, after: usize) -> f64 {
        let share = self.share(source);
        // share + share² + …
        let sum = |n: usize| (0..n).fold(0.0, |sum, _| share * (1.0 + sum));
        let reached = share.powi(after as i32) * (1.0 - share);
        let in_branch =
            (1.0 + sum(guesses.branch.saturating_sub(1))) * f64::from(guesses.branch > 0);
        sum(guesses.trunk) + reached * self.branches.share(BRANCH_PRIOR) * in_branch
    }

    /// Some tokens came without guesses.
    pub fn plain(&mut self, tokens: usize) {
        self.account = (self.account + ALLOWANCE * tokens as f64).min(MOST);
        let kept = FORGET.powi(tokens.min(1000) as i32);
        for seen in self.seen.iter_mut().chain([&mut self.branches]) {
            seen.right *= kept;
            seen.wrong *= kept;
        }
    }

    /// A step had guesses; it took as long as `worth` tokens more than one without.
    pub fn learn(&mut self, went: Went, worth: f64) {
        let gain = went.right as f64 - worth;
        self.account = (self.account + gain).clamp(-MOST, MOST);
        let (guesses, right) = went.trunk;
        self.seen[went.source.kind()].add(right, right < guesses);
        if let Some(is_right) = went.branch {
            self.branches.add(usize::from(is_right), !is_right);
        }
    }
}

impl Seen {
    fn share(&self, prior: f64) -> f64 {
        (self.right + prior) / (self.right + self.wrong + 1.0)
    }

    fn add(&mut self, right: usize, is_wrong: bool) {
        self.right = self.right * DECAY + right as f64;
        self.wrong = self.wrong * DECAY + f64::from(is_wrong);
    }
}

impl Offer {
    /// Guesses of a trunk alone.
    pub fn chain(source: Source, most: usize) -> Offer {
        Offer {
            source,
            trunk: most,
            fork: None,
            most,
        }
    }

    /// As many guesses as that, where there is room; a branch takes the place of the last ones of the trunk.
    pub fn always(&self, trunk: usize, branch: usize) -> Worthwhile {
        let trunk = trunk.min(self.trunk).min(self.most);
        let most_of_branch = |trunk: usize| self.most_of_branch(trunk).min(branch);
        let trunks = (1..=trunk).filter(|&trunk| most_of_branch(trunk) > 0);
        let widest = trunks.max_by_key(|&trunk| (most_of_branch(trunk), trunk));
        let trunk = widest.unwrap_or(trunk);
        Worthwhile {
            trunk,
            branch: if trunk == 0 { 0 } else { most_of_branch(trunk) },
        }
    }

    /// As many guesses of the trunk, and what there is room for of the branch beside them.
    pub fn beside(&self, trunk: usize) -> Worthwhile {
        let branch = self.most_of_branch(trunk);
        Worthwhile { trunk, branch }
    }

    /// Most guesses of the branch beside as many of the trunk, which must go beyond the fork.
    fn most_of_branch(&self, trunk: usize) -> usize {
        let fork = self.fork.filter(|fork| fork.after < trunk);
        let guesses = fork.map_or(0, |fork| fork.guesses.min(MAX_BRANCH));
        guesses.min(self.most - trunk)
    }

    fn fork_after(&self) -> usize {
        self.fork.map_or(0, |fork| fork.after)
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

    fn chain(source: Source, guesses: usize, right: usize) -> Went {
        Went {
            source,
            trunk: (guesses, right),
            branch: None,
            right,
        }
    }

    const ALONE: Rest = Rest {
        rows: 1,
        tokens: 1.0,
        sequences: 1,
    };

    /// Fails when refused guesses are made again and again, or when they are never tried again.
    #[test]
    fn refused_guesses_cost_no_more_than_the_allowance() {
        let (costs, source) = (costs(), Source::Text(3));
        let mut judge = Judge::new();
        let (mut seconds, n_tokens) = (0.0, 2000);
        let mut tries = 0;
        for _ in 0..n_tokens {
            let n = judge
                .best(Offer::chain(source, 8), ALONE, (&costs, 0.0))
                .trunk;
            let took = costs.of(1 + n).expect("known");
            seconds += took;
            match n {
                0 => judge.plain(1),
                n => {
                    tries += 1;
                    judge.learn(chain(source, n, 0), (took - 0.01) / 0.01);
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
            let n = judge
                .best(Offer::chain(source, 31), ALONE, (&costs, 0.0))
                .trunk;
            assert!(n > 0);
            let took = costs.of(1 + n).expect("known");
            judge.learn(chain(source, n, n), (took - 0.01) / 0.01);
        }
        let best = judge.best(Offer::chain(source, 31), ALONE, (&costs, 0.0));
        assert!(best.trunk > 16);
    }

    /// Fails when guesses are made where a row more costs as much as a step.
    #[test]
    fn nothing_is_guessed_where_rows_are_dear() {
        let mut costs = Costs::default();
        for rows in 1..=32 {
            costs.record(rows, 0.01 * rows as f64);
        }
        let judge = Judge::new();
        let offer = Offer::chain(Source::Text(20), 31);
        let nothing = Worthwhile::default();
        assert_eq!(judge.best(offer, ALONE, (&costs, 0.0)), nothing);
        let unknown = judge.best(offer, ALONE, (&Costs::default(), 0.0));
        assert_eq!(unknown, nothing, "nothing is known");
    }

    /// Fails when a branch is guessed that was never right, or when one is not that was right whenever the trunk was not.
    #[test]
    fn a_branch_is_guessed_where_it_was_right() {
        let costs = costs();
        let offer = Offer {
            fork: Some(Fork {
                after: 1,
                guesses: 4,
            }),
            most: 7,
            ..Offer::chain(Source::Text(4), 7)
        };
        let after = |is_right: bool| {
            let mut judge = Judge::new();
            for _ in 0..30 {
                let went = Went {
                    branch: Some(is_right),
                    ..chain(Source::Text(4), 3, 1)
                };
                judge.learn(went, 0.0);
            }
            judge.best(offer, ALONE, (&costs, 0.0))
        };
        assert!(after(true).branch > 0, "{:?}", after(true));
        assert!(after(false).trunk > 0, "{:?}", after(false));
        assert_eq!(after(false).branch, 0);
        let few = Offer { most: 1, ..offer };
        assert_eq!(few.most_of_branch(1), 0, "there is no room");
    }

    /// Fails when a draft model catches up at the cost of more than the account, or never.
    #[test]
    fn catching_up_must_be_covered() {
        let (costs, mut judge) = (costs(), Judge::new());
        assert!(judge.covers(0.009, ALONE, &costs));
        assert!(
            !judge.covers(0.011, ALONE, &costs),
            "more than a token's time"
        );
        judge.plain(100);
        assert!(
            judge.covers(0.025, ALONE, &costs),
            "two per cent of a hundred more"
        );
        assert!(
            !judge.covers(0.0, ALONE, &Costs::default()),
            "nothing is known"
        );
    }

    /// Fails when one step that took long for other reasons forbids guesses for good, or when steps that are always dear
    /// cost more than the allowance.
    #[test]
    fn a_step_that_was_slow_once_is_tried_again() {
        let offer = Offer::chain(Source::Text(20), 7);
        for (of_row, is_worth_it) in [(0.1, true), (1.0, false)] {
            let seconds_of = |rows: usize| 0.01 * (1.0 + of_row * (rows - 1) as f64);
            let mut costs = Costs::default();
            (2..=8).for_each(|rows| costs.record(rows, 0.5));
            let (mut judge, mut seconds, mut n_tokens) = (Judge::new(), 0.0, 0);
            while n_tokens < 1000 {
                let n = judge.best(offer, ALONE, (&costs, 0.0)).trunk;
                let took = seconds_of(1 + n);
                seconds += took;
                if n == 0 {
                    n_tokens += 1;
                    judge.plain(1);
                    costs.record_plain(1, took);
                } else {
                    let right = if is_worth_it { n } else { 0 };
                    n_tokens += 1 + right;
                    judge.learn(chain(Source::Text(20), n, right), (took - 0.01) / 0.01);
                    costs.record(1 + n, took);
                }
            }
            let share = seconds / (0.01 * n_tokens as f64);
            assert_eq!(share < 0.5, is_worth_it, "{share}");
            assert!(share < 1.025, "{share}");
        }
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
