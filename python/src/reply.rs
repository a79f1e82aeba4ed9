//! An answer as it comes.

use akunu::{StopReason, Token};
use pyo3::prelude::*;

use crate::stream::{Stream, Tell};

/// The result of an answer that has ended.
#[derive(Clone, Default)]
pub struct End {
    /// Why it ended; `None` if it was left.
    pub stop: Option<StopReason>,
    /// Its tokens, if `logprobs` was set.
    pub tokens: Vec<Likely>,
}

/// A token: its id, its text, its logarithmic probability, and the best tokens with theirs.
pub type Likely = (u32, String, f32, Vec<(u32, f32)>);

/// Where the pieces of an answer go to.
pub type TellText = Tell<String, End>;

/// Pieces of text, as a thread makes them.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Reply(pub Stream<String, End>);

#[pymethods]
impl Reply {
    /// The next piece, or `None` at the end.
    fn next_piece(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.0.next(py)
    }

    /// Why it ended.
    #[getter]
    fn stop(&self) -> Option<&'static str> {
        let end = self.0.end()?;
        Some(end.stop.unwrap_or(StopReason::Cancelled).name())
    }

    /// Its tokens after the end, if `logprobs` was set.
    #[getter]
    fn tokens(&self) -> Vec<Likely> {
        self.0.end().unwrap_or_default().tokens
    }

    /// Ends it, from any thread.
    fn cancel(&self) {
        self.0.cancel();
    }
}

/// A token, if it says how likely it was.
pub fn likely(token: &Token) -> Option<Likely> {
    let logprobs = token.logprobs.as_ref()?;
    Some((
        token.id,
        token.text.clone(),
        logprobs.chosen,
        logprobs.top.clone(),
    ))
}
