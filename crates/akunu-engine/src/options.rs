//! Options for generating, and the results.

use crate::cancel::CancelFlag;
use crate::grammar::Grammar;
use crate::logprobs::TokenLogprobs;
use crate::rules::LogitRules;
use crate::sampling::Sampling;
use crate::speculation::Speculation;

/// What happens when the context is full.
///
/// ```
/// use akunu_engine::{GenerateOptions, Overflow};
///
/// let overflow = Overflow::Shift { keep: 30 };
/// let options = GenerateOptions { overflow, ..GenerateOptions::default() };
/// # drop(options);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The answer ends with [`StopReason::ContextFull`].
    #[default]
    Stop,
    /// The older half of the tokens after the first `keep` is dropped, and the answer continues.
    Shift {
        /// Tokens at the beginning that stay: the system prompt.
        keep: usize,
    },
}

/// The default texts at which repetitions end.
pub const DRY_BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];

/// What to generate.
///
/// Later versions may have further fields: end a value with `..GenerateOptions::default()`.
///
/// ```
/// use akunu_engine::{GenerateOptions, Sampling};
///
/// let options = GenerateOptions {
///     max_tokens: 100,
///     sampling: Sampling { temperature: 0.7, ..Sampling::greedy() },
///     stop: vec!["\n\n".into()],
///     ..GenerateOptions::default()
/// };
/// # drop(options);
/// ```
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// Maximum number of tokens.
    pub max_tokens: usize,
    /// How a token is chosen.
    pub sampling: Sampling,
    /// What is added to the logits of some tokens before everything else, of at most
    /// [`MAX_BIASES`](crate::MAX_BIASES); minus infinity forbids a token.
    pub logit_bias: Vec<(u32, f32)>,
    /// Texts at which a repetition ends for [`Sampling::dry_multiplier`]: tokens that have one of them in it.
    pub dry_breakers: Vec<String>,
    /// Log probabilities: those of the chosen tokens, and of as many of the best, up to
    /// [`MAX_LOGPROBS`](crate::MAX_LOGPROBS).
    pub logprobs: Option<u32>,
    /// Texts that end the answer; they are not part of it.
    pub stop: Vec<String>,
    /// The answer ends with [`StopReason::Loop`] when its last tokens, at least this many, repeat a cycle for the third time or
    /// more; 0 is an error. `None`: it may loop. [`LOOP_WINDOW`](crate::LOOP_WINDOW) suits conversations.
    pub loop_window: Option<u32>,
    /// Tokens of the session, from its first one on, that are not of the answer: penalties and DRY do not count them. `None`: all of
    /// them. An answer that was cut goes on with the length of its own prompt.
    pub n_prompt: Option<usize>,
    /// What to do when the context is full.
    pub overflow: Overflow,
    /// Continue after the model's own end tokens.
    pub ignore_end: bool,
    /// Maximum number of tokens of one submission, up to 64; in a [`Batch`](crate::Batch) it is always one of each sequence.
    pub max_chain: u32,
    /// The form that the answer must have.
    pub grammar: Option<Grammar>,
    /// Your own rules. They need the logits on the host, so that each token is a separate submission.
    pub rules: LogitRules,
    /// How tokens are guessed and checked several at once. The answer is the same with and without.
    pub speculation: Speculation,
    /// Stops it from another thread.
    pub cancel: CancelFlag,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl Default for GenerateOptions {
    fn default() -> GenerateOptions {
        GenerateOptions {
            max_tokens: usize::MAX,
            sampling: Sampling::greedy(),
            logit_bias: Vec::new(),
            dry_breakers: DRY_BREAKERS.map(String::from).to_vec(),
            logprobs: None,
            stop: Vec::new(),
            loop_window: None,
            n_prompt: None,
            overflow: Overflow::Stop,
            ignore_end: false,
            max_chain: 32,
            grammar: None,
            rules: LogitRules::default(),
            speculation: Speculation::default(),
            cancel: CancelFlag::default(),
            _more: (),
        }
    }
}

/// A generated token.
///
/// ```no_run
/// use akunu_engine::GenerateOptions;
/// # fn example(session: &mut akunu_engine::Session) -> Result<(), akunu_engine::EngineError> {
/// for token in session.generate(GenerateOptions::default())? {
///     let token = token?;
///     println!("{}: {:?}", token.id, token.text);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Token {
    /// Its id.
    pub id: u32,
    /// The text that is complete with it: empty in the middle of a character.
    pub text: String,
    /// How likely it was, if [`GenerateOptions::logprobs`] asks for it.
    pub logprobs: Option<TokenLogprobs>,
}

/// Why a generation ended.
///
/// ```
/// use akunu_engine::StopReason;
///
/// assert_eq!(StopReason::EndToken.name(), "end");
/// assert_eq!(StopReason::MaxTokens.name(), "length");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model chose an end token.
    EndToken,
    /// One of the stop texts appeared.
    StopText,
    /// The maximum number of tokens.
    MaxTokens,
    /// It repeated itself: [`GenerateOptions::loop_window`].
    Loop,
    /// The grammar was fulfilled, and nothing may follow.
    GrammarEnd,
    /// The context holds no more.
    ContextFull,
    /// Stopped from outside.
    Cancelled,
    /// Something failed, the device for example. The error itself was returned before.
    Failed,
}

impl StopReason {
    /// One word for it, as `akunu-cli` prints it in JSON.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::EndToken => "end",
            StopReason::StopText => "stop",
            StopReason::MaxTokens => "length",
            StopReason::Loop => "loop",
            StopReason::GrammarEnd => "grammar",
            StopReason::ContextFull => "context",
            StopReason::Cancelled => "cancelled",
            StopReason::Failed => "error",
        }
    }
}
