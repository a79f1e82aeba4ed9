//! What a model does, one operation after the other, on rows.
//!
//! An operation works on every row of a step, or on the rows whose logits are wanted ([`Op::Gather`] brings them
//! together). It names buffers and shapes, never a kernel. What differs from step to step (which rows there are, where
//! they stand, where their keys lie) is not in the program: it lies in [`StepMemory`](crate::StepMemory).
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
//! | Qwen 3 MoE and its like | `Norm` | `RopeStore` | `Attend` | `Route`, `ExpertGate`, `ExpertDown`, `Weigh` | `Gather`, logits |
//! | BERT | `LayerNorm` | `AddLearned`, by position and by kind | `AttendRows` | `Product`, `Activate` | `Mean` or `Gather` |
//! | MPNet | `LayerNorm` | `AddLearned` | `AttendRows` with a `DistanceBias` | `Product`, `Activate` | `Mean` |
//! | nomic-bert | `LayerNorm` | `Rope` | `AttendRows` | `Product`, `Gate` | `Mean` |
//! | ModernBERT | `LayerNorm` | `Rope` | `AttendRows`, of all rows or those nearby | `Product`, `Gate` | `Mean` or `Gather` |
//! | Whisper's encoder | `LayerNorm` | `AddLearned` | `AttendRows` | `Convolve`, `Product`, `Activate` | `Product`, `Halves`: keys and values |
//! | SigLIP | `LayerNorm` | `AddLearned` | `AttendRows` | `Product`, `Activate` | `Weigh`: the mean of squares; `Product` |
//! | Qwen3-VL's tower | `LayerNorm` | `AddLearned`, `TurnHeads` | `AttendRows` | `Product`, `Activate` | `Product`, `Activate` |
//! | Whisper's decoder | `LayerNorm` | `AddLearned` | `Attend`; `AttendRows` across | `Product`, `Activate` | `Gather`, logits, `SpeechRules` |
//!
//! Rows of images have features in the place of embeddings ([`Op::Place`]); some models add further features after their first layers.
//!
//! Every product may have a bias. A decoder without RoPE stores its keys by [`Op::RopeStore`] with divisors that are
//! infinite: a turn by no angle leaves every number as it is.

mod cache;
mod elementwise;
mod experts;
mod input;
mod logits;
mod norm;
mod product;
mod state;
mod texts;

pub use self::cache::{Attend, RopeAxes, RopeStore, ScaleQueries, Shift};
pub use self::elementwise::{Activate, CopyPieces, Gate, Halves};
pub use self::experts::{
    ExpertDown, ExpertGate, ExpertMatrix, Gating, Route, Routing, Weigh, Weights,
};
pub use self::input::{AddLearned, Embed, Place};
pub use self::logits::{Choose, Gather, KeepLogits, Mask, Score, Softcap, SpeechRules};
pub use self::norm::{AddNorm, HeadNorm, LayerNorm, Norm};
pub use self::product::{Convolve, Product, ScaleRows};
pub use self::state::{
    ConvForm, DeltaRule, GateOrder, GatedNorm, HeadOrder, ShortConv, SplitHeads, Ssd, StatePool,
};
pub use self::texts::{AttendRows, Mean, Rope, TurnHeads};

/// An operation of a program, on rows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(
    missing_docs,
    reason = "each operation is described where its fields are"
)]
pub enum Op {
    Embed(Embed),
    Place(Place),
    Norm(Norm),
    AddNorm(AddNorm),
    HeadNorm(HeadNorm),
    LayerNorm(LayerNorm),
    AddLearned(AddLearned),
    Product(Product),
    ScaleRows(ScaleRows),
    Gate(Gate),
    Activate(Activate),
    Halves(Halves),
    CopyPieces(CopyPieces),
    Convolve(Convolve),
    Route(Route),
    ExpertGate(ExpertGate),
    ExpertDown(ExpertDown),
    Weigh(Weigh),
    ShortConv(ShortConv),
    DeltaRule(DeltaRule),
    Ssd(Ssd),
    GatedNorm(GatedNorm),
    SplitHeads(SplitHeads),
    Rope(Rope),
    TurnHeads(TurnHeads),
    RopeAxes(RopeAxes),
    RopeStore(RopeStore),
    ScaleQueries(ScaleQueries),
    Attend(Attend),
    AttendRows(AttendRows),
    Mean(Mean),
    Gather(Gather),
    Softcap(Softcap),
    SpeechRules(SpeechRules),
    Mask(Mask),
    KeepLogits(KeepLogits),
    Choose(Choose),
    Score(Score),
    /// Records the chosen tokens and moves every single to its next position.
    Advance,
    Shift(Shift),
}

impl Op {
    /// Logits of which a greedy choice keeps the best one first, at least.
    pub const CANDIDATE_LOGITS: u32 = 1024;

    /// Parts of a vocabulary of which a greedy choice keeps the best each, at most.
    pub fn candidates(vocab_size: u32) -> u32 {
        vocab_size.div_ceil(Op::CANDIDATE_LOGITS)
    }
}
