//! Audio files, spectrograms and speech, from the outside.

mod files;
mod mel;
mod speech;
