//! From the rows whose logits are wanted to tokens.

use crate::buffer::Slice;
use crate::choice::{self, ChoiceMemory, Masks, ScoreMemory, TranscriptTokens};

/// `to[i] = from[outputs[i]]`. What else the rows hold is of no use from here on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gather {
    /// (rows, dim).
    pub from: Slice,
    /// (outputs, dim).
    pub to: Slice,
    /// Elements of a row.
    pub dim: u32,
}

/// `x = cap * tanh(x / cap)` for the outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softcap {
    /// (outputs, width).
    pub x: Slice,
    /// Elements of a row.
    pub width: u32,
    /// The largest absolute value of the result.
    pub cap: f32,
}

/// Forbids what may not follow in the transcripts of the outputs, by Whisper's rules of timestamps: their logits become
/// -inf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeechRules {
    /// (outputs, vocabulary).
    pub logits: Slice,
    /// Logits of a row.
    pub vocab_size: u32,
    /// A bit for each token that may be said, and then for each that may be said first, (2, vocabulary / 32) of u32.
    pub masks: Slice,
    /// Where the tokens that are no text are.
    pub tokens: TranscriptTokens,
}

/// Forbids the tokens that the masks of some outputs do not allow: their logits become -inf.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mask {
    /// (outputs, vocabulary).
    pub logits: Slice,
    /// Logits of a row.
    pub vocab_size: u32,
    /// The bits of the allowed tokens.
    pub masks: Masks,
}

/// Keeps the logits of the outputs as they are, for [`Op::Score`](crate::Op::Score).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeepLogits {
    /// (outputs, vocabulary).
    pub logits: Slice,
    /// (outputs, vocabulary).
    pub to: Slice,
    /// Logits of a row.
    pub vocab_size: u32,
}

/// Chooses a token for each output, for the next round and the history. A penalty changes the logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choose {
    /// The kind of choice.
    pub how: choice::Choose,
    /// (outputs, vocabulary).
    pub logits: Slice,
    /// Logits of a row.
    pub vocab_size: u32,
    /// Its other buffers.
    pub memory: ChoiceMemory,
}

/// Records how probable the chosen token of each output was, for rules that ask for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The kept logits and the record.
    pub memory: ScoreMemory,
    /// Logits of a row.
    pub vocab_size: u32,
}
