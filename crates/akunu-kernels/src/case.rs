//! Test cases of kernels: inputs, and how far an executor may be from the twin.

mod compare;
mod inputs;
#[cfg(feature = "testing")]
mod on_device;
mod rng;
mod sizes;

pub use compare::{Mismatch, compare, nmse};
pub use inputs::Case;
#[cfg(feature = "testing")]
pub use on_device::{CaseError, Cases, Outcome, run_exactly_on, run_on};
pub use rng::Rng;
pub use sizes::{SIZES, Size};
