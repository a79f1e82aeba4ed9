//! Chains: several rounds of one program in one submission, and what they have chosen.
//!
//! The record of choices is one for all sequences. Whoever begins another step while chains are unread reads them first and
//! keeps what they have chosen for their owner.

use akunu_program::Ticket;

use super::told::{Noted, Told};

/// Identifies a chain; no two chains of a model have the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChainId(pub(super) u64);

/// What a chain has chosen for one row.
pub(crate) struct RowChosen {
    /// The tokens.
    pub tokens: Vec<u32>,
    /// What was recorded about them.
    pub noted: Noted,
}

/// What a chain has chosen for every row.
pub(super) type Chosen = Vec<RowChosen>;

/// A chain that was started and has not been read.
pub(super) struct Chain {
    pub id: ChainId,
    pub ticket: Ticket,
    pub n_rows: usize,
    /// What is recorded about the tokens of each row.
    pub told: Vec<Told>,
    /// The place of its first round in the record.
    pub start: u32,
    pub n: u32,
}
