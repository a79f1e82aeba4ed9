//! Attention over pages, and what is stored there.

use crate::attention::{HeadNorms, Heads, LayerCache};
use crate::buffer::Slice;
use crate::position::{Axes, Rope};

/// Normalises (where the model does so) and turns q and k, and stores k and v in the row's slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeStore {
    /// Queries, (rows, n_heads, head_dim); they turn in place.
    pub q: Slice,
    /// Keys, (rows, n_kv_heads, head_dim).
    pub k: Slice,
    /// Values, likewise.
    pub v: Slice,
    /// The heads.
    pub heads: Heads,
    /// Rotary positions.
    pub rope: Rope,
    /// Norms of single heads.
    pub norms: Option<HeadNorms>,
    /// What is subtracted from turned keys, (n_kv_heads, head_dim). A key with norms has none.
    pub centre: Option<Slice>,
    /// Where keys and values go.
    pub cache: LayerCache,
}

/// Turns every head of x in place, where the rows of images have positions on three axes: each pair turns by one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeAxes {
    /// (rows, n_heads, head_dim).
    pub x: Slice,
    /// Heads of a row.
    pub n_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Rotary positions, with pairs of halves ([`Pairing::Halves`](crate::Pairing::Halves)).
    pub rope: Rope,
    /// The axis of each pair.
    pub axes: Axes,
    /// The height and the width of each row, (rows, 2). Only those of images are read: a row of a token has one position on all axes.
    pub places: Slice,
}

/// Multiplies queries by `1 + temperature * ln(1 + position / period)`, where the division is that of whole numbers, and the elements of
/// a head that turn by a factor besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaleQueries {
    /// Queries, (rows, n_heads, head_dim).
    pub q: Slice,
    /// Query heads.
    pub n_heads: u32,
    /// Elements of a head.
    pub head_dim: u32,
    /// Those of them that turn, from the first on.
    pub turned_dim: u32,
    /// The factor of elements that turn.
    pub turned_factor: f32,
    /// How much the factor grows with the position; 0: not at all.
    pub temperature: f32,
    /// Positions with the same factor, at least 1.
    pub period: u32,
}

/// Attention of each row over the slots that it sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attend {
    /// Queries, (rows, n_heads, head_dim).
    pub q: Slice,
    /// (rows, n_heads, head_dim).
    pub to: Slice,
    /// The heads.
    pub heads: Heads,
    /// Keys and values.
    pub cache: LayerCache,
    /// Factor of the scores.
    pub scale: f32,
    /// Cap of the scores.
    pub softcap: Option<f32>,
    /// A score of each head that has no value and takes its share of the weights, (n_heads).
    pub sinks: Option<Slice>,
}

/// Drops slots of one sequence: those from `keep + shift` on move down to `keep`, `len` of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Keys and values of a layer.
    pub cache: LayerCache,
    /// The heads.
    pub heads: Heads,
    /// Rotary positions: keys are turned back.
    pub rope: Rope,
    /// What the keys are stored less of, (n_kv_heads, head_dim).
    pub centre: Option<Slice>,
    /// The sequence.
    pub sequence: u32,
    /// Slots that stay.
    pub keep: u32,
    /// Slots that are dropped.
    pub shift: u32,
    /// Slots that move.
    pub len: u32,
}
