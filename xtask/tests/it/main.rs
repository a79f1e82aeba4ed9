//! The tests of the project: what its crates may know of each other, and its commands.

mod architecture;
mod command_line;
