//! The tests of the engine that also run in the simulator, and so need clang.

#[path = "../support/mod.rs"]
mod support;

mod choice;
mod devices;
mod encoders;
mod recorded;
