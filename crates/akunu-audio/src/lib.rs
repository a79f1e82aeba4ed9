#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod filters;
mod mel;
mod reader;
mod resampler;
mod spectrum;
mod speech;

pub use error::{AudioError, AudioProblem};
pub use filters::{MAX_MELS, mel_filters};
pub use mel::{FRAMES_A_SECOND, HOP, MelStream, log_mel};
pub use reader::AudioReader;
pub use speech::{SpeechDetector, quietest};

/// Samples of a second, of everything that [`AudioReader`] gives.
pub const SAMPLE_RATE: u32 = 16_000;
