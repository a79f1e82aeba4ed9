//! The input of the first layer: the embeddings of tokens, learned positions, and the features of images.

use crate::buffer::Slice;
use crate::matrix::Matrix;
use crate::position::LearnedBy;

/// `to = scale * table[token]` for every row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embed {
    /// The table, (vocabulary, dim).
    pub table: Matrix,
    /// Factor of the embeddings.
    pub scale: Option<f32>,
    /// (rows, dim).
    pub to: Slice,
}

/// `x += table[entry]`: learned positions, or token types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AddLearned {
    /// What chooses the entry.
    pub by: LearnedBy,
    /// (n_entries, dim), in f32.
    pub table: Slice,
    /// Entries of the table.
    pub n_entries: u32,
    /// (rows, dim).
    pub x: Slice,
    /// Elements of a row.
    pub dim: u32,
}

/// `x = features`, or `x += features`, for the rows of images ([`Row::IMAGE`](akunu_types::params::Row::IMAGE)); all other rows
/// stay as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// (rows, dim). Only those of images are read.
    pub features: Slice,
    /// (rows, dim).
    pub x: Slice,
    /// Elements of a row.
    pub dim: u32,
    /// Whether features are added.
    pub add: bool,
}
