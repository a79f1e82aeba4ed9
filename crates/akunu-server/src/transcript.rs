//! What was asked and answered, in the log of a server whose owner wants that.

use tracing::Span;

/// The answers of a request until they are logged, each when it has ended.
pub(crate) struct Transcript {
    /// The request. Its answers may come after its handler has returned, so the span is kept.
    span: Span,
    answers: Vec<String>,
}

impl Transcript {
    /// Logs a prompt; there will be as many answers.
    pub fn begin(prompt: &str, n_answers: usize) -> Transcript {
        let span = Span::current();
        span.in_scope(|| tracing::info!(prompt, "asked"));
        Transcript {
            span,
            answers: vec![String::new(); n_answers],
        }
    }

    /// An answer goes on.
    pub fn push(&mut self, choice: usize, text: &str) {
        self.answers[choice].push_str(text);
    }

    /// Logs an answer, with its thoughts and calls as the model wrote them.
    pub fn end(&mut self, choice: usize) {
        let answer = std::mem::take(&mut self.answers[choice]);
        self.span
            .in_scope(|| tracing::info!(choice, answer, "wrote"));
    }
}
