//! What a model runs with: the device, the pages of keys and values, the rows of a step and its scratch memory. One for
//! all sessions of the model.
//!
//! A sequence that takes part in a step has a *seat*: a row of the page tables, of the history and of the rules. Seats
//! are given when they are needed and taken from whoever was idle longest, so that idle sequences cost pages and nothing
//! else.

mod adapter_set;
mod adapters;
mod cached;
mod chain;
mod chaining;
mod guess;
mod host;
mod images;
mod kept_states;
mod kind;
mod long_rope;
mod memory;
mod noted;
mod observe;
mod pages;
mod programs;
mod sizes;
mod state;
mod state_faults;
mod states;
mod step;
mod told;

pub(crate) use self::chain::ChainId;
pub(crate) use self::guess::Guessing;
pub(crate) use self::host::StepMasks;
pub(crate) use self::kind::Kind;
pub use self::observe::{Chosen, Observed};
pub(crate) use self::sizes::{MAX_CHAIN, PAGE, PAGE_SHIFT, sequence_bytes};
pub(crate) use self::state::Runtime;
pub(crate) use self::states::RUN_STATES;
pub(crate) use self::step::OutputAt;
pub(crate) use self::told::Noted;
