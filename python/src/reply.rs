//! An answer as it comes.
//!
//! A thread computes it and hands each piece over as soon as somebody waits for it: it is never more than one piece ahead.
//! When nobody listens any more, it ends.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use akunu::{CancelFlag, EngineError, StopReason};
use pyo3::prelude::*;

use crate::failure::Error;

/// What a thread tells.
pub enum Told {
    /// The next piece of text.
    Piece(String),
    /// There is no more, for this reason.
    Ended(Option<StopReason>),
    /// It failed.
    Failed(String),
}

/// Pieces of text, as a thread makes them.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Reply {
    told: Mutex<Receiver<Told>>,
    stop: Mutex<Option<&'static str>>,
    cancel: CancelFlag,
}

impl Reply {
    /// The reply that `make` computes in a thread of its own.
    pub fn start(
        cancel: CancelFlag,
        make: impl FnOnce(&SyncSender<Told>) -> Result<Option<StopReason>, akunu::Error>
        + Send
        + 'static,
    ) -> PyResult<Reply> {
        let (tell, told) = sync_channel(0);
        let run = move || {
            let last = match make(&tell) {
                Ok(reason) => Told::Ended(reason),
                // While the question was read: nothing was answered, which is no error for who asked for it.
                Err(akunu::Error::Engine(EngineError::Cancelled { .. })) => Told::Ended(None),
                Err(error) => Told::Failed(error.to_string()),
            };
            // Nobody may listen any more.
            let _ = tell.send(last);
        };
        std::thread::Builder::new()
            .name("akunu reply".into())
            .spawn(run)?;
        Ok(Reply {
            told: Mutex::new(told),
            stop: Mutex::new(None),
            cancel,
        })
    }

    fn next(&self) -> Option<Told> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.recv().ok()
    }
}

#[pymethods]
impl Reply {
    /// The next piece, or `None` at the end.
    fn next_piece(&self, py: Python<'_>) -> PyResult<Option<String>> {
        match py.detach(|| self.next()) {
            Some(Told::Piece(piece)) => Ok(Some(piece)),
            Some(Told::Ended(reason)) => {
                let mut stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
                *stop = Some(word(reason));
                Ok(None)
            }
            Some(Told::Failed(text)) => Err(Error::new_err(text)),
            None => Ok(None),
        }
    }

    /// Why it ended.
    #[getter]
    fn stop(&self) -> Option<&'static str> {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends it, from any thread.
    fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

fn word(reason: Option<StopReason>) -> &'static str {
    match reason {
        Some(StopReason::EndToken | StopReason::GrammarEnd) => "end",
        Some(StopReason::StopText) => "text",
        Some(StopReason::MaxTokens) => "max_tokens",
        Some(StopReason::ContextFull) => "context_full",
        None | Some(StopReason::Cancelled | StopReason::Failed) => "cancelled",
    }
}
