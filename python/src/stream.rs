//! What comes piece by piece.
//!
//! A thread computes it and hands each piece over as soon as somebody waits for it: it is never more than one piece ahead.
//! When nobody listens any more, it ends.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use akunu::{CancelFlag, EngineError};
use pyo3::prelude::*;

use crate::failure::Error;

enum Told<T, E> {
    Piece(T),
    Ended(E),
    Failed(String),
}

/// Where the thread hands its pieces to.
pub struct Tell<T, E>(SyncSender<Told<T, E>>);

impl<T, E> Tell<T, E> {
    /// Hands a piece over, when somebody waits for it; returns whether anybody listens.
    pub fn piece(&self, piece: T) -> bool {
        self.0.send(Told::Piece(piece)).is_ok()
    }
}

/// Pieces that a thread makes, and what it knows at their end.
pub struct Stream<T, E> {
    told: Mutex<Receiver<Told<T, E>>>,
    end: Mutex<Option<E>>,
    cancel: CancelFlag,
}

impl<T: Send + 'static, E: Clone + Default + Send + 'static> Stream<T, E> {
    /// The pieces that `make` computes in a thread of its own.
    pub fn start(
        cancel: CancelFlag,
        make: impl FnOnce(&Tell<T, E>) -> Result<E, akunu::Error> + Send + 'static,
    ) -> PyResult<Stream<T, E>> {
        let (tell, told) = sync_channel(0);
        let run = move || {
            let tell = Tell(tell);
            let last = match make(&tell) {
                Ok(end) => Told::Ended(end),
                // While the question was read: nothing was answered, which is no error for who asked for it.
                Err(akunu::Error::Engine(EngineError::Cancelled { .. })) => {
                    Told::Ended(E::default())
                }
                Err(error) => Told::Failed(error.to_string()),
            };
            // Nobody may listen any more.
            let _ = tell.0.send(last);
        };
        std::thread::Builder::new()
            .name("akunu stream".into())
            .spawn(run)?;
        Ok(Stream {
            told: Mutex::new(told),
            end: Mutex::new(None),
            cancel,
        })
    }

    /// The next piece, or `None` at the end. Other threads of Python run meanwhile.
    pub fn next(&self, py: Python<'_>) -> PyResult<Option<T>> {
        let next = || {
            let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            told.recv().ok()
        };
        match py.detach(next) {
            Some(Told::Piece(piece)) => Ok(Some(piece)),
            Some(Told::Ended(end)) => {
                *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
                Ok(None)
            }
            Some(Told::Failed(text)) => Err(Error::new_err(text)),
            None => Ok(None),
        }
    }

    /// What the thread said at the end; `None` before.
    pub fn end(&self) -> Option<E> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.clone()
    }

    /// Ends it, from any thread.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }
}

impl<T, E> Drop for Stream<T, E> {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
