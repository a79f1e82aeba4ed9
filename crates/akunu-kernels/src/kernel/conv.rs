//! Convolution: the front end of Whisper.

pub mod conv1d;
