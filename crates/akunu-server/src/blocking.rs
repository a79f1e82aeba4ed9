//! Work that takes long enough to be noticed: the thread of HTTP writes the tokens of all clients, and must not wait.

use crate::error::ApiError;

/// Does some work on another thread.
pub(crate) async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    // What it logs belongs to the same request.
    let span = tracing::Span::current();
    let done = tokio::task::spawn_blocking(move || span.in_scope(work)).await;
    done.unwrap_or_else(|panicked| Err(ApiError::internal(&panicked)))
}
