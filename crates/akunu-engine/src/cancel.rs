//! A flag that stops what another thread computes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stops a generation, or the reading of a prompt, from another thread.
///
/// ```no_run
/// use akunu_engine::{CancelFlag, GenerateOptions};
/// # fn example(session: &mut akunu_engine::Session) -> Result<(), akunu_engine::EngineError> {
/// let cancel = CancelFlag::default();
/// let options = GenerateOptions { cancel: cancel.clone(), ..GenerateOptions::default() };
/// std::thread::spawn(move || cancel.cancel());
/// for token in session.generate(options)? {
///     print!("{}", token?.text);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Asks the generation to stop: after the current submission it returns no further token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Makes the flag usable again.
    pub fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// The flag itself, to be set by a signal handler, for example.
    pub fn shared(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }

    /// Whether it was cancelled since the last reset.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
