//! Test cases of kernels: inputs, and how far an executor may be from the twin.

#[cfg(feature = "testing")]
mod compare;
#[cfg(feature = "testing")]
mod inputs;
#[cfg(feature = "testing")]
mod on_device;
mod rng;
#[cfg(feature = "testing")]
mod sizes;

#[cfg(feature = "testing")]
pub use compare::{Mismatch, compare, nmse};
#[cfg(feature = "testing")]
pub use inputs::Case;
#[cfg(feature = "testing")]
pub use on_device::{CaseError, Cases, Outcome, run_exactly_on, run_on};
pub use rng::Rng;
#[cfg(feature = "testing")]
pub use sizes::{SIZES, Size};
