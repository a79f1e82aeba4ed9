//! An answer as it comes, and why it ended.

use std::sync::{Mutex, MutexGuard, TryLockError};

use akunu::StopReason;

use crate::status::{AkunuStatus, Failure};

/// Why an answer ended. The words are those of Rust and Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum AkunuStop {
    /// The model ended the answer.
    End = 0,
    /// A stop text appeared.
    Stop = 1,
    /// The maximum number of tokens was reached.
    Length = 2,
    /// The context is full.
    Context = 3,
    /// The callback or another thread ended it.
    Cancelled = 4,
    /// A reason that this interface has no name for yet.
    Other = 5,
    /// The answer repeated itself.
    Loop = 6,
    /// The answer has the wanted form, and nothing may follow.
    Grammar = 7,
}

/// Why an answer ended that the caller heard to its end, or did not.
pub fn stop_of(reason: Option<StopReason>) -> AkunuStop {
    match reason {
        Some(StopReason::EndToken) => AkunuStop::End,
        Some(StopReason::GrammarEnd) => AkunuStop::Grammar,
        Some(StopReason::StopText) => AkunuStop::Stop,
        Some(StopReason::MaxTokens) => AkunuStop::Length,
        Some(StopReason::ContextFull) => AkunuStop::Context,
        Some(StopReason::Loop) => AkunuStop::Loop,
        // `None`: the callback has ended it. A failure is an error, and never comes here.
        None | Some(StopReason::Cancelled | StopReason::Failed) => AkunuStop::Cancelled,
        Some(_) => AkunuStop::Other,
    }
}

/// What a session or chat is, for one call at a time: also a callback that calls again is told that it is busy.
pub fn only<'a, T>(own: &'a Mutex<T>, name: &str) -> Result<MutexGuard<'a, T>, Failure> {
    match own.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            let text = format!("another call with this {name} has not ended yet");
            Err(Failure::new(AkunuStatus::Busy, text))
        }
    }
}
