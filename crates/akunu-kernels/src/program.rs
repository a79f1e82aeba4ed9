//! Programs: what a model does, as operations on rows. How they are done is the device's business
//! ([`lower`](crate::lower)).
//!
//! An operation works on every row of a step, or on the rows whose logits are wanted ([`Op::Gather`] brings them
//! together). It names buffers and shapes, never a kernel. What differs from step to step (which rows there are, where
//! they stand, where their keys lie) is not in the program: it lies in [`StepMemory`].
//!
//! # Decoders and encoders
//!
//! The rows of a *decoder* are tokens of sequences that grow: their keys and values are kept in pages ([`Op::RopeStore`])
//! and seen by the rows after them ([`Op::Attend`]). The rows of an *encoder* are whole texts, one after the other
//! without a gap, each row of which sees all rows of its own text ([`Op::AttendRows`]): keys and values are rows of
//! matrices like everything else, and nothing is kept. `Row::position` and `Row::length` say which number of its text
//! a row is, and of how many.
//!
//! | | norm | positions | attention | feed-forward | at the end |
//! |---|---|---|---|---|---|
//! | Llama and its like | `Norm`, `AddNorm` | `RopeStore` | `Attend` | `Product`, `Gate` | `Gather`, logits |
//! | BERT | `LayerNorm` | `AddLearned`, by position and by kind | `AttendRows` | `Product`, `Gelu` | `Mean` or `Gather` |
//! | MPNet | `LayerNorm` | `AddLearned` | `AttendRows` with a `DistanceBias` | `Product`, `Gelu` | `Mean` |
//! | nomic-bert | `LayerNorm` | `Rope` | `AttendRows` | `Product`, `Gate` | `Mean` |
//! | ModernBERT | `LayerNorm` | `Rope` | `AttendRows`, of all rows or those nearby | `Product`, `Gate` | `Mean` or `Gather` |
//! | Whisper's encoder | `LayerNorm` | `AddLearned` | `AttendRows` | `Convolve`, `Product`, `Gelu` | `Product`, `Halves`: keys and values |
//! | Whisper's decoder | `LayerNorm` | `AddLearned` | `Attend`; `AttendRows` across | `Product`, `Gelu` | `Gather`, logits, `SpeechRules` |
//!
//! Every product may have a bias. A decoder without RoPE stores its keys by [`Op::RopeStore`] with divisors that are
//! infinite: a turn by no angle leaves every number as it is.

use akunu_types::{DType, KvFormat};

use crate::device::Buffer;
use crate::plan::{KernelCall, Slice};
use crate::step::{Counts, PageMap, SequenceSlots, StepMemory};
use crate::weight::Storage;

/// A matrix of weights: its place and its format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrix {
    /// The first byte.
    pub place: Slice,
    /// The format.
    pub dtype: DType,
    /// Outputs.
    pub rows: u32,
    /// The number of inputs.
    pub cols: u32,
    /// Where its parts lie, from `place` on.
    pub storage: Storage,
}

/// The heads of attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Query heads, a multiple of the others.
    pub n_heads: u32,
    /// Key and value heads.
    pub n_kv_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
}

/// The keys and values of one layer: (n_pages, n_kv_heads, page, head_dim) each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerCache {
    /// How they are stored.
    pub format: KvFormat,
    /// Keys, turned to their positions.
    pub k: Buffer,
    /// The pool of values.
    pub v: Buffer,
    /// Where the pages of a sequence are found.
    pub pages: PageMap,
}

/// Which elements of a head turn together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Pairs of neighbours: elements 2i and 2i + 1.
    Interleaved,
    /// An element of the first half and its counterpart in the second.
    Halves,
}

/// Rotary positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// What turns together.
    pub pairing: Pairing,
    /// Base of the frequencies.
    pub theta: f32,
    /// Linear scaling of positions.
    pub freq_scale: f32,
    /// What each pair's position is divided by, (head_dim / 2).
    pub divisors: Slice,
}

/// The norms of single heads of q and k.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadNorms {
    /// Weights for q, (head_dim).
    pub q: Slice,
    /// Weights for k, (head_dim).
    pub k: Slice,
    /// Added under the root.
    pub eps: f32,
}

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateFunction {
    /// `x * sigmoid(x)`.
    Silu,
    /// GELU by its tanh form.
    Gelu,
    /// GELU by the error function, exactly.
    GeluErf,
}

/// What chooses the entry of a learned table that a row takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnedBy {
    /// Its position; one beyond the table takes the last entry.
    Position,
    /// Whether it is of the second text of a pair: entry 0 or 1.
    Kind,
}

/// The keys that rows attend to in [`Op::AttendRows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKeys {
    /// All rows of the row's own text: keys and values are (rows, n_kv_heads, head_dim).
    OwnText,
    /// The rows of its own text that are not further away than this.
    Nearby {
        /// The largest distance, at least 1.
        reach: u32,
    },
    /// All positions of an encoder: keys and values are (n_sequences, n_keys, n_kv_heads, head_dim) halves
    /// ([`Op::Halves`]), and a row sees those of its sequence.
    Across {
        /// Positions of a sequence.
        n_keys: u32,
    },
}

/// What is added to a score by how far the query is behind the key: relative positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistanceBias {
    /// (n_heads, 2 * reach + 1): entry `reach + query - key`. Distances beyond `reach` have the entry of `reach`.
    pub table: Slice,
    /// The largest distance that has an entry of its own.
    pub reach: u32,
}

/// The windows of a signal that a convolution reads, which overlap if `stride` is less than a window.
///
/// With time-major input (time, channels), a window of `k` steps is `k * channels` numbers that lie side by side, and
/// the next one begins `step * channels` further on. So a convolution is a product, with weights
/// (outputs, k, channels). What lies beyond both ends of the signal is zeros that the host has put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// How many.
    pub count: u32,
    /// Numbers between the beginnings of two of them.
    pub stride: u32,
}

/// Which rows an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// All rows of the step.
    All,
    /// The rows whose logits are wanted, brought together by [`Op::Gather`].
    Outputs,
}

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
    /// The best logit of each part, (outputs, [`Op::candidates`]).
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
    /// For each output the mask that it has; a number beyond the capacity stands for none.
    pub rows: Buffer,
    /// How many masks there is room for.
    pub capacity: u32,
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

/// An operation of a program, on rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Op {
    /// `to = scale * table[token]` for every row.
    Embed {
        /// The table, (vocabulary, dim).
        table: Matrix,
        /// Factor of the embeddings.
        scale: Option<f32>,
        /// (rows, dim).
        to: Slice,
    },
    /// `to = weight * x / rms(x)`.
    Norm {
        /// Which rows.
        rows: Rows,
        /// (rows, dim).
        x: Slice,
        /// (dim).
        weight: Slice,
        /// (rows, dim).
        to: Slice,
        /// Elements of a row.
        dim: u32,
        /// Added under the root.
        eps: f32,
    },
    /// `to += weight * x / rms(x)`.
    AddNorm {
        /// (rows, dim).
        x: Slice,
        /// (dim).
        weight: Slice,
        /// (rows, dim).
        to: Slice,
        /// Elements of a row.
        dim: u32,
        /// Added under the root.
        eps: f32,
    },
    /// `to = weight * (x - mean(x)) / deviation(x) + bias`.
    LayerNorm {
        /// Which rows.
        rows: Rows,
        /// (rows, dim).
        x: Slice,
        /// (dim).
        weight: Slice,
        /// (dim).
        bias: Slice,
        /// (rows, dim).
        to: Slice,
        /// Elements of a row.
        dim: u32,
        /// Added under the root.
        eps: f32,
    },
    /// `x += table[entry]`: learned positions, or token types.
    AddLearned {
        /// What chooses the entry.
        by: LearnedBy,
        /// (n_entries, dim), in f32.
        table: Slice,
        /// Entries of the table.
        n_entries: u32,
        /// (rows, dim).
        x: Slice,
        /// Elements of a row.
        dim: u32,
    },
    /// `to = x · weightᵀ + bias`, or `to += …`.
    Product {
        /// Which rows.
        rows: Rows,
        /// The weight, (outputs, inputs).
        weight: Matrix,
        /// (rows, inputs).
        x: Slice,
        /// (rows, outputs).
        to: Slice,
        /// Whether it is added to what is there.
        add: bool,
        /// (outputs).
        bias: Option<Slice>,
        /// What it is in the model.
        label: &'static str,
    },
    /// `x *= factors[sequence]` for each row; a factor of 0 gives zeros. What an adapter adds to a product is scaled so.
    ScaleRows {
        /// Which rows.
        rows: Rows,
        /// (rows, width).
        x: Slice,
        /// Elements of a row.
        width: u32,
        /// The factor of each sequence, (n_sequences).
        factors: Slice,
    },
    /// `to = activation(gate) * up`.
    Gate {
        /// The activation function.
        activation: GateFunction,
        /// (rows, width). Nothing else reads it.
        gate: Slice,
        /// (rows, width). Nothing else reads it.
        up: Slice,
        /// (rows, width). Only products read it.
        to: Slice,
        /// Elements of a row.
        width: u32,
    },
    /// `x = gelu(x)`, exactly (by the error function).
    Gelu {
        /// Which rows.
        rows: Rows,
        /// (rows, width).
        x: Slice,
        /// Elements of a row.
        width: u32,
    },
    /// `to = x`, as halves.
    Halves {
        /// Which rows.
        rows: Rows,
        /// (rows, width).
        x: Slice,
        /// (rows, width), of f16.
        to: Slice,
        /// Elements of a row.
        width: u32,
    },
    /// `to[i] = weight · window i of x + bias`: see [`Windows`].
    Convolve {
        /// The weight, (outputs, numbers of a window).
        weight: Matrix,
        /// (outputs).
        bias: Slice,
        /// The signal.
        x: Slice,
        /// Its windows.
        windows: Windows,
        /// (windows, outputs).
        to: Slice,
    },
    /// Turns every head of x to its row's position, in place.
    Rope {
        /// (rows, n_heads, head_dim).
        x: Slice,
        /// Heads of a row.
        n_heads: u32,
        /// Elements of a head.
        head_dim: u32,
        /// Rotary positions.
        rope: Rope,
    },
    /// Normalises (where the model does so) and turns q and k, and stores k and v in the row's slot.
    RopeStore {
        /// Queries, (rows, n_heads, head_dim); they turn in place.
        q: Slice,
        /// Keys, (rows, n_kv_heads, head_dim).
        k: Slice,
        /// Values, likewise.
        v: Slice,
        /// The heads.
        heads: Heads,
        /// Rotary positions.
        rope: Rope,
        /// Norms of single heads.
        norms: Option<HeadNorms>,
        /// What is subtracted from turned keys, (n_kv_heads, head_dim). A key with norms has none.
        centre: Option<Slice>,
        /// Where keys and values go.
        cache: LayerCache,
    },
    /// Attention of each row over the slots that it sees.
    Attend {
        /// Queries, (rows, n_heads, head_dim).
        q: Slice,
        /// (rows, n_heads, head_dim).
        to: Slice,
        /// The heads.
        heads: Heads,
        /// Keys and values.
        cache: LayerCache,
        /// Factor of the scores.
        scale: f32,
        /// Cap of the scores.
        softcap: Option<f32>,
    },
    /// Attention of each row over rows of two matrices.
    AttendRows {
        /// Queries, (rows, n_heads, head_dim).
        q: Slice,
        /// Keys, as [`RowKeys`] says.
        k: Slice,
        /// Values, likewise.
        v: Slice,
        /// (rows, n_heads, head_dim).
        to: Slice,
        /// The heads.
        heads: Heads,
        /// Which keys a row sees.
        keys: RowKeys,
        /// Factor of the scores.
        scale: f32,
        /// What is added to the scaled scores; not for keys across.
        bias: Option<DistanceBias>,
    },
    /// `to[i] = mean of the rows of the text that row outputs[i] is of`.
    Mean {
        /// (rows, dim).
        from: Slice,
        /// (outputs, dim).
        to: Slice,
        /// Elements of a row.
        dim: u32,
    },
    /// `to[i] = from[outputs[i]]`. What else the rows hold is of no use from here on.
    Gather {
        /// (rows, dim).
        from: Slice,
        /// (outputs, dim).
        to: Slice,
        /// Elements of a row.
        dim: u32,
    },
    /// `x = cap * tanh(x / cap)` for the outputs.
    Softcap {
        /// (outputs, width).
        x: Slice,
        /// Elements of a row.
        width: u32,
        /// The largest absolute value of the result.
        cap: f32,
    },
    /// Forbids what may not follow in the transcripts of the outputs, by the rules of
    /// [`speech_rules`](crate::kernel::sampling::speech_rules): their logits become -inf.
    SpeechRules {
        /// (outputs, vocabulary).
        logits: Slice,
        /// Logits of a row.
        vocab_size: u32,
        /// A bit for each token that may be said, and then for each that may be said first, (2, vocabulary / 32) of u32.
        masks: Slice,
        /// Where the tokens that are no text are.
        tokens: TranscriptTokens,
    },
    /// Forbids the tokens that the masks of some outputs do not allow: their logits become -inf.
    Mask {
        /// (outputs, vocabulary).
        logits: Slice,
        /// Logits of a row.
        vocab_size: u32,
        /// The bits of the allowed tokens.
        masks: Masks,
    },
    /// Keeps the logits of the outputs as they are, for [`Op::Score`].
    KeepLogits {
        /// (outputs, vocabulary).
        logits: Slice,
        /// (outputs, vocabulary).
        to: Slice,
        /// Logits of a row.
        vocab_size: u32,
    },
    /// Chooses a token for each output, for the next round and the history. A penalty changes the logits.
    Choose {
        /// The kind of choice.
        how: Choose,
        /// (outputs, vocabulary).
        logits: Slice,
        /// Logits of a row.
        vocab_size: u32,
        /// Its other buffers.
        memory: ChoiceMemory,
    },
    /// Records how probable the chosen token of each output was, for rules that ask for it.
    Score {
        /// The kept logits and the record.
        memory: ScoreMemory,
        /// Logits of a row.
        vocab_size: u32,
    },
    /// Records the chosen tokens and moves every single to its next position.
    Advance,
    /// Drops slots of one sequence: those from `keep + shift` on move down to `keep`, `len` of them.
    Shift {
        /// Keys and values of a layer.
        cache: LayerCache,
        /// The heads.
        heads: Heads,
        /// Rotary positions: keys are turned back.
        rope: Rope,
        /// What the keys are stored less of, (n_kv_heads, head_dim).
        centre: Option<Slice>,
        /// The sequence.
        sequence: u32,
        /// Slots that stay.
        keep: u32,
        /// Slots that are dropped.
        shift: u32,
        /// Slots that move.
        len: u32,
    },
    /// A kernel of the table as it is, for tests of kernels.
    Kernel(KernelCall),
}

impl Op {
    /// Parts of a vocabulary of which a greedy choice keeps the best each.
    pub fn candidates(vocab_size: u32) -> u32 {
        crate::lower::candidates(vocab_size)
    }
}

/// A program: operations in order.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The operations.
    pub ops: Vec<Op>,
    /// Where the rows lie; `None` for a program without rows.
    pub step: Option<StepMemory>,
    /// How many rows it has room for.
    pub room: Counts,
}

impl Program {
    /// A program of kernels alone, without rows.
    pub fn of_kernels(calls: Vec<KernelCall>) -> Program {
        Program {
            ops: calls.into_iter().map(Op::Kernel).collect(),
            ..Program::default()
        }
    }

    /// Where the keys and values that it reads are.
    pub fn pages(&self) -> Vec<PageMap> {
        let mut pages = Vec::new();
        for op in &self.ops {
            if let Op::RopeStore { cache, .. } | Op::Attend { cache, .. } | Op::Shift { cache, .. } =
                op
                && !pages.contains(&cache.pages)
            {
                pages.push(cache.pages);
            }
        }
        pages
    }

    /// The slots of a sequence that it moves, if it does.
    pub fn moved_slots(&self) -> Option<SequenceSlots> {
        self.ops.iter().find_map(|op| match *op {
            Op::Shift {
                sequence,
                keep,
                shift,
                len,
                ..
            } => Some(SequenceSlots {
                sequence,
                slots: keep..keep.saturating_add(shift).saturating_add(len),
            }),
            _ => None,
        })
    }

    /// Whether its rows attend to the other rows of their texts.
    pub fn reads_texts(&self) -> bool {
        self.ops.iter().any(|op| match op {
            Op::AttendRows { keys, .. } => !matches!(keys, RowKeys::Across { .. }),
            Op::Mean { .. } => true,
            _ => false,
        })
    }

    /// Whether it moves its rows to their next positions, so that it can run several times in one submission.
    pub fn advances(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Advance))
    }
}
