//! Test cases of kernels: inputs, and how far an executor may be from the twin.

#[cfg(feature = "testing")]
mod compare;
#[cfg(feature = "testing")]
mod error;
#[cfg(feature = "testing")]
mod inputs;
#[cfg(feature = "testing")]
mod on_device;
#[cfg(feature = "testing")]
mod outcome;
mod rng;
#[cfg(feature = "testing")]
mod sizes;
#[cfg(feature = "testing")]
mod tie;

#[cfg(feature = "testing")]
pub use compare::{Mismatch, compare, nmse};
#[cfg(feature = "testing")]
pub use error::{CaseError, Cause};
#[cfg(feature = "testing")]
pub use inputs::Case;
#[cfg(feature = "testing")]
pub use on_device::{Cases, run_exactly_on, run_on};
#[cfg(feature = "testing")]
pub use outcome::{CaseFailure, Outcome, failures_by_cause};
pub use rng::Rng;
#[cfg(feature = "testing")]
pub use sizes::{SIZES, Size};
#[cfg(feature = "testing")]
pub use tie::Choice;
