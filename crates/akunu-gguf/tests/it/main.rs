//! The tests of readers and writers, one module a subject.

#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod allocation;
mod containers;
#[cfg(target_os = "linux")]
mod forget_header;
mod imatrix;
mod quant_fixtures;
mod quant_properties;
