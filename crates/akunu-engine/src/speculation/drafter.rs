//! The guesses of one answer.

use std::sync::{Arc, Mutex, PoisonError};

use super::draft::Draft;
use super::judge::{Costs, Fork, Judge, Offer, Rest, Source, Went, Worthwhile};
use super::lookup::{Found, Index, OtherTokens};
use super::proposal::{MtpPlan, Plan, Proposal};
use super::text::Text;
use super::{Lookup, MAX_DRAFT, Mtp, Speculated, TextPool};
use crate::error::EngineError;
use crate::guesses::Tree;
use crate::options::GenerateOptions;
use crate::sampling::Sampling;
use crate::session::Session;

/// Guesses from the text when nobody judges them, and those of a branch.
const ALWAYS: usize = 8;
const ALWAYS_OF_BRANCH: usize = 2;
/// Windows that a tree fits into, whatever it is like.
const MIN_WINDOW: u32 = MAX_DRAFT as u32 + 1;

/// Guesses for one answer, and how they went.
pub(crate) struct Drafter {
    lookup: Option<(Index, Lookup)>,
    /// What other sequences have said.
    pool: Arc<Mutex<TextPool>>,
    draft: Option<Draft>,
    /// Guesses of the draft model in each step; `None` for as many as pay.
    draft_tokens: Option<usize>,
    /// Guesses of the model's own block; off for a model without one.
    mtp: Mtp,
    /// Whether guesses may branch.
    can_branch: bool,
    judge: Judge,
    pub stats: Speculated,
}

impl Drafter {
    /// `None` where nothing is to be guessed.
    pub fn new(
        options: &GenerateOptions,
        session: &Session,
    ) -> Result<Option<Drafter>, EngineError> {
        let (speculation, sampling) = (&options.speculation, &options.sampling);
        // Mirostat goes from token to token: several rows of one step would all begin with the same bound.
        let is_stepwise = sampling.mirostat_tau > 0.0;
        let mtp = mtp_of(speculation.mtp, session)?;
        let is_off =
            speculation.lookup == Lookup::Off && speculation.draft.is_none() && mtp == Mtp::Off;
        if is_off || is_stepwise {
            return Ok(None);
        }
        let lookup = speculation.lookup;
        let draft = speculation.draft.as_ref();
        let can_branch = can_branch(sampling, session);
        let draft = draft.map(|draft| Draft::new(draft, options, (session, can_branch)));
        Ok(Some(Drafter {
            lookup: (lookup != Lookup::Off).then(|| (Index::default(), lookup)),
            pool: session.model().runtime().text_pool(),
            draft: draft.transpose()?,
            draft_tokens: speculation.draft_tokens,
            mtp,
            can_branch,
            judge: Judge::new(),
            stats: Speculated::default(),
        }))
    }

    /// Guesses what follows a text: at most `most` tokens, as many as pay beside the rest of the step.
    pub fn propose(
        &mut self,
        text: Text,
        most: usize,
        rest: Rest,
        costs: &Costs,
    ) -> Result<Plan, EngineError> {
        if let Some(found) = self.find(text, most, rest, costs) {
            return Ok(Plan::Guesses(found));
        }
        if self.draft.is_some() {
            let drafted = self.draft(text, most, rest, costs)?;
            return Ok(drafted.map_or(Plan::Nothing, Plan::Guesses));
        }
        let plan = self.plan_mtp(text, most, rest, costs);
        Ok(plan.map_or(Plan::Nothing, Plan::Mtp))
    }

    /// Guesses of the model's own block, which follow a single token.
    fn plan_mtp(&self, text: Text, most: usize, rest: Rest, costs: &Costs) -> Option<MtpPlan> {
        let most = match text.pending.len() {
            1 => most.min(MAX_DRAFT),
            _ => 0,
        };
        let (n, is_judged) = match self.mtp {
            Mtp::Off => (0, false),
            Mtp::Always(n) => (n.min(most), false),
            Mtp::Auto => {
                let per_guess = (costs, costs.of_guess(rest.sequences));
                let offer = Offer::chain(Source::Mtp, most);
                (self.judge.best(offer, rest, per_guess).trunk, true)
            }
        };
        (n > 0).then_some(MtpPlan { n, is_judged })
    }

    /// Guesses of the draft model.
    fn draft(
        &mut self,
        text: Text,
        most: usize,
        rest: Rest,
        costs: &Costs,
    ) -> Result<Option<Proposal>, EngineError> {
        let Some(draft) = &mut self.draft else {
            return Ok(None);
        };
        let most = most.min(MAX_DRAFT);
        let offer = Offer::chain(Source::Model, most);
        let behind = draft.behind(text.before.len() + text.pending.len());
        let n = match self.draft_tokens {
            Some(n) => n.min(most),
            None if !self.judge.covers(behind, rest, costs) => 0,
            None => {
                let per_guess = (costs, draft.seconds());
                self.judge.best(offer, rest, per_guess).trunk
            }
        };
        if n == 0 {
            return Ok(None);
        }
        let guessed = draft.guess(text, n)?;
        let offer = Offer {
            trunk: guessed.tokens.len(),
            fork: guessed.second.as_ref().map(|second| Fork {
                after: second.after,
                guesses: 1,
            }),
            ..offer
        };
        // What the draft has guessed costs rows and nothing else.
        let guesses = match self.draft_tokens {
            Some(_) => offer.beside(offer.trunk),
            None => self.judge.best(offer, rest, (costs, 0.0)),
        };
        let tree = tree_of(&guessed.tokens, guessed.second, guesses);
        Ok((!tree.is_empty()).then_some(Proposal {
            tree,
            source: Source::Model,
            is_judged: self.draft_tokens.is_none(),
            seconds: behind + draft.seconds() * n as f64,
        }))
    }

    /// Adds the tokens of this sequence to the texts that others guess from; the first `known` are already there.
    pub fn tell(&self, tokens: &[u32], known: usize) {
        if self.lookup.is_some() {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.add(tokens, known);
        }
    }

    /// Guesses from the text itself, or from those of other sequences if they agree longer.
    fn find(&mut self, text: Text, most: usize, rest: Rest, costs: &Costs) -> Option<Proposal> {
        let (index, lookup) = self.lookup.as_mut()?;
        let len = text.before.len() + text.pending.len();
        index.follow(len, text.before.iter().chain(text.pending));
        let most = most.min(MAX_DRAFT);
        let own = index.find(most);
        let pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let others = pool.find(index.end(), most);
        drop(pool);
        let length = |found: &Option<Found>| found.as_ref().map_or(0, |found| found.length);
        let is_own = own.is_some() && length(&own) >= length(&others);
        let (found, other) = if is_own { (own, others) } else { (others, own) };
        let found = found?;
        let source = if is_own {
            Source::Text(found.length)
        } else {
            Source::Pool(found.length)
        };
        let fork = match self.can_branch {
            true => found.fork.or_else(|| {
                let other = other.as_ref()?;
                OtherTokens::between(&found.tokens, &other.tokens)
            }),
            false => None,
        };
        let offer = Offer {
            source,
            trunk: found.tokens.len(),
            fork: fork.as_ref().map(|fork| Fork {
                after: fork.after,
                guesses: fork.tokens.len(),
            }),
            most,
        };
        let is_judged = *lookup == Lookup::Auto;
        let guesses = match is_judged {
            true => self.judge.best(offer, rest, (costs, 0.0)),
            false => offer.always(ALWAYS, ALWAYS_OF_BRANCH),
        };
        let tree = tree_of(&found.tokens, fork, guesses);
        (!tree.is_empty()).then_some(Proposal {
            tree,
            source,
            is_judged,
            seconds: 0.0,
        })
    }

    /// Whether there may be something to guess after these, so that nothing should be computed ahead.
    pub fn may_propose(&mut self, text: Text, most: usize, rest: Rest, costs: &Costs) -> bool {
        self.draft.is_some()
            || self.find(text, most, rest, costs).is_some()
            || self.plan_mtp(text, most, rest, costs).is_some()
    }

    /// Tokens that some guesses are expected to add.
    pub fn expected(&self, proposal: &Proposal) -> f64 {
        let tree = &proposal.tree;
        let guesses = Worthwhile {
            trunk: tree.n_trunk(),
            branch: tree.len() - tree.n_trunk(),
        };
        let fork = tree.fork().unwrap_or(0);
        self.judge.expected(proposal.source, guesses, fork)
    }

    /// The same of guesses that the model's own block is still to compute.
    pub fn expected_of_mtp(&self, plan: MtpPlan) -> f64 {
        let guesses = Worthwhile {
            trunk: plan.n,
            branch: 0,
        };
        self.judge.expected(Source::Mtp, guesses, 0)
    }

    /// Some tokens came without guesses.
    pub fn plain(&mut self, tokens: usize) {
        self.judge.plain(tokens);
    }

    /// A step checked a proposal, and the guesses of a path were right. It took `extra` seconds more than without, where a
    /// token takes `token` seconds.
    pub fn learn(&mut self, proposal: &Proposal, path: &[usize], extra: f64, token: f64) {
        let tree = &proposal.tree;
        self.stats.count(tree, path);
        if !proposal.is_judged || token <= 0.0 {
            return;
        }
        let n_trunk = tree.n_trunk();
        let of_trunk = path.iter().take_while(|&&node| node < n_trunk).count();
        let is_forked = tree.fork() == Some(of_trunk);
        let went = Went {
            source: proposal.source,
            trunk: (n_trunk, of_trunk),
            branch: is_forked.then_some(of_trunk < path.len()),
            right: path.len(),
        };
        self.judge.learn(went, (extra + proposal.seconds) / token);
    }
}

/// Guesses of the model's own block, if it has one.
fn mtp_of(wanted: Mtp, session: &Session) -> Result<Mtp, EngineError> {
    let model = session.model();
    match wanted {
        Mtp::Off => Ok(Mtp::Off),
        Mtp::Auto | Mtp::Always(_) if model.config().mtp.is_some() => Ok(wanted),
        Mtp::Auto => Ok(Mtp::Off),
        Mtp::Always(_) => Err(EngineError::NoMtp {
            path: model.path().to_path_buf(),
        }),
    }
}

/// Whether rows of several branches choose as they would alone. Penalties look at the device's record of the last tokens,
/// which has one text; and a window must be longer than a tree.
fn can_branch(sampling: &Sampling, session: &Session) -> bool {
    let looks_back = sampling.repetition_penalty != 1.0
        || sampling.frequency_penalty != 0.0
        || sampling.presence_penalty != 0.0
        || sampling.dry_multiplier != 0.0;
    let mut windows = session.model().config().windows();
    !looks_back && windows.all(|window| window.is_none_or(|window| window >= MIN_WINDOW))
}

/// As many guesses of a continuation, and of another one.
fn tree_of(trunk: &[u32], fork: Option<OtherTokens>, guesses: Worthwhile) -> Tree {
    let mut tree = Tree::chain(&trunk[..guesses.trunk.min(trunk.len())]);
    if let Some(fork) = fork {
        let parent = fork.after.checked_sub(1);
        tree.add(parent, &fork.tokens[..guesses.branch]);
    }
    tree
}
