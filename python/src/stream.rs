//! What comes piece by piece.
//!
//! A thread computes it, and hands a piece over only while a reader waits for one. When it is cancelled, or its last reader
//! is gone, the thread ends, wherever it waits.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use akunu::{CancelFlag, EngineError};
use pyo3::prelude::*;

use crate::failure::{Error, raise};

/// How often a reader that waits looks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// State shared by the thread and its readers.
struct Exchange<T, E> {
    state: Mutex<State<T, E>>,
    changed: Condvar,
    cancel: CancelFlag,
}

struct State<T, E> {
    /// Readers that wait for a piece.
    n_waiting: usize,
    /// A piece that was handed over and not taken yet.
    piece: Option<T>,
    /// The result of a thread that has ended.
    end: Option<E>,
    failure: Option<PyErr>,
    /// Whether the thread is still there.
    is_running: bool,
}

/// One answer to a reader.
enum Got<T> {
    Piece(T),
    Failed(PyErr),
    End,
    /// Nothing yet.
    Nothing,
}

impl<T, E> Exchange<T, E> {
    fn state(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cancel(&self) {
        self.cancel.cancel();
        // Whoever waits has seen the flag, or hears this.
        let _state = self.state();
        self.changed.notify_all();
    }

    /// Waits for a piece, for a while.
    fn next(&self) -> Got<T> {
        let mut state = self.state();
        state.n_waiting += 1;
        self.changed.notify_all();
        let is_idle = |state: &mut State<T, E>| state.piece.is_none() && state.is_running;
        let waited = self.changed.wait_timeout_while(state, LOOK, is_idle);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.n_waiting -= 1;
        if let Some(piece) = state.piece.take() {
            return Got::Piece(piece);
        }
        match (state.is_running, state.failure.take()) {
            (true, _) => Got::Nothing,
            (false, Some(error)) => Got::Failed(error),
            (false, None) => Got::End,
        }
    }
}

/// The text of a panic.
fn words(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
    words.unwrap_or("a fault of akunu").to_string()
}

/// Where the thread hands its pieces to.
pub struct Tell<T, E>(Arc<Exchange<T, E>>);

impl<T, E> Tell<T, E> {
    /// Waits until a reader waits for a piece; returns false once the stream is cancelled.
    pub fn is_wanted(&self) -> bool {
        let is_idle = |state: &mut State<T, E>| {
            let has_reader = state.n_waiting > 0 && state.piece.is_none();
            !has_reader && !self.0.cancel.is_set()
        };
        let _state = self.0.changed.wait_while(self.0.state(), is_idle);
        !self.0.cancel.is_set()
    }

    /// Hands a piece over.
    pub fn piece(&self, piece: T) {
        self.0.state().piece = Some(piece);
        self.0.changed.notify_all();
    }
}

impl<T, E> Drop for Tell<T, E> {
    /// The thread ends.
    fn drop(&mut self) {
        self.0.state().is_running = false;
        self.0.changed.notify_all();
    }
}

/// Pieces that a thread makes, and what it knows at their end.
pub struct Stream<T, E> {
    shared: Arc<Exchange<T, E>>,
    /// The process that the thread belongs to.
    process: u32,
}

impl<T: Send + 'static, E: Clone + Default + Send + 'static> Stream<T, E> {
    /// The pieces that `make` computes in a thread of its own.
    pub fn start(
        cancel: CancelFlag,
        make: impl FnOnce(&Tell<T, E>) -> Result<E, akunu::Error> + Send + 'static,
    ) -> PyResult<Stream<T, E>> {
        let shared = Arc::new(Exchange {
            state: Mutex::new(State {
                n_waiting: 0,
                piece: None,
                end: None,
                failure: None,
                is_running: true,
            }),
            changed: Condvar::new(),
            cancel,
        });
        let tell = Tell(Arc::clone(&shared));
        let run = move || {
            let made = catch_unwind(AssertUnwindSafe(|| make(&tell)));
            let mut state = tell.0.state();
            match made {
                Ok(Ok(end)) => state.end = Some(end),
                // While the question was read: nothing was answered, which is no error for who asked for it.
                Ok(Err(akunu::Error::Engine(EngineError::Cancelled { .. }))) => {
                    state.end = Some(E::default());
                }
                Ok(Err(error)) => state.failure = Some(raise(error)),
                Err(panic) => state.failure = Some(Error::new_err(words(&*panic))),
            }
        };
        std::thread::Builder::new()
            .name("akunu stream".into())
            .spawn(run)?;
        let process = std::process::id();
        Ok(Stream { shared, process })
    }

    /// The next piece, or `None` at the end. Other threads of Python run meanwhile.
    pub fn next(&self, py: Python<'_>) -> PyResult<Option<T>> {
        loop {
            match py.detach(|| self.shared.next()) {
                Got::Piece(piece) => return Ok(Some(piece)),
                Got::Failed(error) => return Err(error),
                Got::End => return Ok(None),
                Got::Nothing if self.process != std::process::id() => {
                    return Err(Error::new_err(
                        "this began before the process was forked, and goes on only in the parent: begin it again here",
                    ));
                }
                Got::Nothing => py.check_signals()?,
            }
        }
    }

    /// What the thread said at the end; `None` before.
    pub fn end(&self) -> Option<E> {
        self.shared.state().end.clone()
    }

    /// Ends it, from any thread.
    pub fn cancel(&self) {
        self.shared.cancel();
    }
}

impl<T, E> Drop for Stream<T, E> {
    fn drop(&mut self) {
        self.shared.cancel();
    }
}
