//! What the project's own commands (`cargo xtask` and `cargo measure`) share: the folders of the workspace, other
//! programs, fetched models, a server to ask, and the reasons why a command fails.
#![forbid(unsafe_code)]

pub mod assets;
pub mod cli;
pub mod command_line;
mod failure;
pub mod process;
pub mod server;
pub mod workspace;

pub use failure::{Failure, LACKING};
