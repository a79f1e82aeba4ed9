//! Speculation: several tokens are guessed, and one step says how many of the guesses are right.
//!
//! ```text
//! answer so far   … the cat sat on          guess   the mat .
//! rows            on      the     mat     .
//! chosen          the     mat     and     …           "the mat" is right, "." is not: "and" is kept
//! ```
//!
//! Every row chooses as it would by itself: with the noise of its own position, and with penalties that see the guesses
//! before it. A guess is kept only if it is what was chosen. The answer therefore has exactly the tokens that it has
//! without guesses, greedy or drawn. What was computed for wrong guesses is dropped.
//!
//! Where a text went on in two ways before, both are guessed: guesses are a tree then.
//!
//! Guesses come from the text itself ([`lookup`]: people edit, quote and repeat), from what other sequences have said
//! ([`pool`]), from a small model of the same vocabulary, which draws with the same noise, or from the model's own block for
//! multi-token prediction. [`judge`] decides how many are worth their rows.

mod draft;
mod drafter;
mod judge;
mod lookup;
mod pool;
mod proposal;
mod text;

use crate::error::EngineError;
use crate::guesses::Tree;
use crate::model::Model;

pub(crate) use self::drafter::Drafter;
pub(crate) use self::judge::{Costs, Rest};
pub(crate) use self::pool::TextPool;
pub(crate) use self::proposal::{MtpPlan, Plan, Proposal};
pub(crate) use self::text::Text;

/// Maximum number of guesses that one step checks.
pub const MAX_DRAFT: usize = 31;

/// How tokens are guessed. Answers do not depend on it, only their speed.
///
/// Later versions may have further fields: end a value with `..Speculation::default()`.
///
/// ```
/// use akunu_engine::{GenerateOptions, Speculation};
///
/// let options = GenerateOptions { speculation: Speculation::off(), ..GenerateOptions::default() };
/// # drop(options);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Speculation {
    /// Guesses from the text itself and from those of other sequences.
    pub lookup: Lookup,
    /// Guesses of a smaller model, used when the texts have none.
    pub draft: Option<DraftModel>,
    /// Guesses of the model's own block for multi-token prediction, used when there are no others.
    pub mtp: Mtp,
    /// Guesses of the draft model in each step, up to [`MAX_DRAFT`]; `None` for as many as save time.
    pub draft_tokens: Option<usize>,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl Speculation {
    /// One token after another.
    pub fn off() -> Speculation {
        Speculation {
            lookup: Lookup::Off,
            draft: None,
            mtp: Mtp::Off,
            draft_tokens: None,
            _more: (),
        }
    }
}

/// Whether tokens are guessed from what followed the same words before, in the text itself or in those of other
/// sequences of the model.
///
/// ```
/// use akunu_engine::{Lookup, Speculation};
///
/// let speculation = Speculation { lookup: Lookup::Off, ..Speculation::default() };
/// # drop(speculation);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup {
    /// Never.
    Off,
    /// As long as it saves time, estimated from the recent share of right guesses and the time of steps on this device.
    #[default]
    Auto,
    /// Whenever there is something to guess.
    On,
}

/// Whether tokens are guessed by the block for multi-token prediction (`nextn`, MTP) that the files of some models have.
///
/// ```
/// use akunu_engine::{Mtp, Speculation};
///
/// let speculation = Speculation { mtp: Mtp::Always(2), ..Speculation::default() };
/// # drop(speculation);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mtp {
    /// Never.
    Off,
    /// As many tokens as save time, if the model has the block.
    #[default]
    Auto,
    /// As many tokens in every step, up to [`MAX_DRAFT`]; an error if the model does not have the block.
    Always(usize),
}

/// A model that drafts for another one.
///
/// ```no_run
/// use akunu_engine::{DraftModel, Speculation};
/// # fn example(large: &akunu_engine::Model, small: &akunu_engine::Model) -> Result<(), akunu_engine::EngineError> {
/// let draft = Some(DraftModel::new(large, small)?);
/// let speculation = Speculation { draft, ..Speculation::default() };
/// # drop(speculation);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DraftModel {
    model: Model,
}

impl std::fmt::Debug for DraftModel {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "DraftModel({})", self.model.path().display())
    }
}

impl DraftModel {
    /// Lets `draft` guess for `model`; an error if their vocabularies differ.
    pub fn new(
        model: &impl AsRef<Model>,
        draft: &impl AsRef<Model>,
    ) -> Result<DraftModel, EngineError> {
        let (model, draft) = (model.as_ref(), draft.as_ref());
        let (ours, theirs) = (model.tokenizer(), draft.tokenizer());
        let (n_ours, n_theirs) = (ours.vocab_size(), theirs.vocab_size());
        let refuse = |why: String| {
            Err(EngineError::DraftVocabulary {
                draft: draft.path().to_path_buf(),
                model: model.path().to_path_buf(),
                why,
            })
        };
        if n_ours != n_theirs {
            return refuse(format!("it has {n_theirs} tokens, and not {n_ours}"));
        }
        let differs = |id: &u32| ours.token_bytes(*id) != theirs.token_bytes(*id);
        if let Some(id) = (0..n_ours as u32).find(differs) {
            return refuse(format!("token {id} is another one"));
        }
        Ok(DraftModel {
            model: draft.clone(),
        })
    }
}

/// How many guesses were made and were right, by their position among the guesses of a step, from 0.
///
/// ```no_run
/// use akunu_engine::GenerateOptions;
/// # fn example(session: &mut akunu_engine::Session) -> Result<(), akunu_engine::EngineError> {
/// let mut generation = session.generate(GenerateOptions::default())?;
/// generation.by_ref().for_each(drop);
/// let speculated = generation.speculated();
/// println!("{} of {} guesses were right", speculated.n_accepted(), speculated.n_drafted());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Speculated {
    /// Steps that had guesses.
    pub steps: u32,
    /// Tokens that were guessed.
    pub drafted: [u32; MAX_DRAFT],
    /// Of those, how many were right.
    pub accepted: [u32; MAX_DRAFT],
    /// Steps whose guesses had a second branch.
    pub branched: u32,
    /// Of those, how many went on in that branch.
    pub branches_accepted: u32,
}

impl Default for Speculated {
    fn default() -> Speculated {
        Speculated {
            steps: 0,
            drafted: [0; MAX_DRAFT],
            accepted: [0; MAX_DRAFT],
            branched: 0,
            branches_accepted: 0,
        }
    }
}

impl Speculated {
    /// All tokens that were guessed.
    pub fn n_drafted(&self) -> u32 {
        self.drafted.iter().sum()
    }

    /// All guesses that were right.
    pub fn n_accepted(&self) -> u32 {
        self.accepted.iter().sum()
    }

    fn count(&mut self, tree: &Tree, path: &[usize]) {
        self.steps += 1;
        for node in 0..tree.len() {
            self.drafted[tree.depth(node)] += 1;
        }
        for count in &mut self.accepted[..path.len()] {
            *count += 1;
        }
        self.branched += u32::from(tree.is_branched());
        let has_left = path.iter().any(|&node| node >= tree.n_trunk());
        self.branches_accepted += u32::from(has_left);
    }
}
