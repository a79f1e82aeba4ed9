//! The device of a GPU, without the GPU.
//!
//! All that is decided on the host stands here, in safe Rust, and runs on every machine: which buffer
//! is bound where, where barriers stand, how long a submission may be, what must stay alive until it
//! has ended. A [`Backend`] is what remains: a few calls, one line each. Metal implements it, and so
//! does the simulator, which records the calls (`Recorder`) and then executes them: the calls that
//! Metal gets are those that were tested. The recorder and its checks come with the feature `testing`.
//!
//! ```text
//! Plan ─ encode_part ─▶ Encoder ─┬─ Metal's compute encoder ─▶ command buffer ─▶ GPU
//!                                └─ Recorder ─▶ calls ─▶ hazard check ─▶ simulator
//! ```

mod backend;
mod buffers;
mod device;
mod dry_run;
mod encode;
mod flight;
mod keeper;
mod lean;
mod limits;
mod loaded;
mod pace;
mod pipelines;
mod residency;
mod windows;

pub use backend::{Backend, Limits};
pub use device::GpuDevice;
pub use encode::{Encoder, Resources, SubmissionPart, encode_part};
pub use keeper::{Keeper, PipelineStore};
pub use lean::Lean;
pub use limits::{is_driver_class, wirable_bytes};
pub use pipelines::{Compiled, Compiler};
pub use residency::{BEAT, Residency, WiredSet};
pub use windows::Windows;

#[cfg(feature = "testing")]
mod hazards;
#[cfg(feature = "testing")]
mod recorder;
#[cfg(feature = "testing")]
mod replay;

#[cfg(feature = "testing")]
pub use hazards::{UnorderedPair, unordered_pairs};
#[cfg(feature = "testing")]
pub use recorder::{Call, Numbered, Recorder};
#[cfg(feature = "testing")]
pub use replay::{Bound, ReplayError, ReplayedLaunch, Step, replay};
