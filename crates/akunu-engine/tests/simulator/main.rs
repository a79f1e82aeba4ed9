//! The tests of the engine that also run in the simulator, and so need clang.

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/random_whisper.rs"]
mod random_whisper;

mod adapters;
mod choice;
mod devices;
mod encoders;
mod experts;
mod mlx;
mod recorded;
mod speech;
mod towers;
