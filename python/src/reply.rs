//! An answer as it comes.

use akunu::StopReason;
use pyo3::prelude::*;

use crate::stream::{Stream, Tell};

/// Where the pieces of an answer go to.
pub type TellText = Tell<String, Option<StopReason>>;

/// Pieces of text, as a thread makes them.
#[pyclass(module = "akunu._akunu", frozen)]
pub struct Reply(pub Stream<String, Option<StopReason>>);

#[pymethods]
impl Reply {
    /// The next piece, or `None` at the end.
    fn next_piece(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.0.next(py)
    }

    /// Why it ended.
    #[getter]
    fn stop(&self) -> Option<&'static str> {
        self.0.end().map(word)
    }

    /// Ends it, from any thread.
    fn cancel(&self) {
        self.0.cancel();
    }
}

fn word(reason: Option<StopReason>) -> &'static str {
    match reason {
        Some(StopReason::EndToken | StopReason::GrammarEnd) => "end",
        Some(StopReason::StopText) => "text",
        Some(StopReason::MaxTokens) => "max_tokens",
        Some(StopReason::Loop) => "loop",
        Some(StopReason::ContextFull) => "context_full",
        None | Some(StopReason::Cancelled | StopReason::Failed) => "cancelled",
        Some(_) => "other",
    }
}
