//! How tokens are chosen, and the memory that takes.

use crate::buffer::Buffer;

/// How tokens are chosen from logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choose {
    /// The most likely one, for all rows.
    Best,
    /// By the rule of each row's sequence.
    ByRule,
}

/// Memory of a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChoiceMemory {
    /// The best logit of each part, (outputs, [`Op::candidates`](crate::Op::candidates)).
    pub values: Buffer,
    /// Their tokens.
    pub ids: Buffer,
    /// Tokens with a bias, (n_sequences, bias_stride), of which a rule says how many there are.
    pub bias_tokens: Buffer,
    /// What is added to their logits.
    pub bias_values: Buffer,
    /// Biases of a sequence, at most.
    pub bias_stride: u32,
    /// Tokens at which a repetition ends: a bit each, (n_sequences, vocabulary / 32) words.
    pub breakers: Buffer,
    /// Mirostat's bound of each sequence, (n_sequences).
    pub mu: Buffer,
}

/// Where the log probabilities of chosen tokens go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreMemory {
    /// The logits as the model made them, (outputs, vocabulary).
    pub logits: Buffer,
    /// (max_steps, record_stride, 1 + max_best): of the token, and of the best ones.
    pub scores: Buffer,
    /// The best tokens, (max_steps, record_stride, max_best).
    pub best_tokens: Buffer,
    /// Rows of one step.
    pub record_stride: u32,
    /// Best tokens of a row, at most.
    pub max_best: u32,
}

/// Masks of tokens: a bit for each, 1 where it may be chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Masks {
    /// The bits, (capacity, vocabulary / 32 rounded up) of u32.
    pub bits: Buffer,
    /// For each output the mask that it has; a number beyond the capacity, such as [`Masks::NONE`], stands for none.
    pub rows: Buffer,
    /// How many masks there is room for.
    pub capacity: u32,
}

impl Masks {
    /// The number of no mask.
    pub const NONE: u32 = u32::MAX;
}

/// The tokens of a transcript: text below the end, other tokens, and times up to the end of the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranscriptTokens {
    /// Ends a transcript.
    pub end: u32,
    /// The first time.
    pub first_time: u32,
    /// Times among which the first token is.
    pub n_first_times: u32,
}
