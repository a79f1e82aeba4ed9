//! The project's commands that check, install and generate; `akunu-bench` has those that measure. One file a command; this
//! one only reads the command line.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program: printing is its work"
)]

mod assets;
mod book;
mod c_library;
mod check_macos;
mod clients;
mod debian;
mod debian_rust;
mod features;
mod header;
mod install;
mod instantiate;
mod kernels;
mod neon;
mod package;
mod parallel;
mod parity;
mod python;
mod rust_target;
mod schemas;
mod shaders;
mod test;
mod tools;
mod zoo;

use akunu_repo::command_line;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch models, tokenizers and sounds into target/assets
    Assets(assets::Args),
    /// Make the documentation a book, in target/book
    Book,
    /// Build the C library, and lay it out for pkg-config
    CLibrary(c_library::Args),
    /// Type-check and lint the workspace for macOS, on a Mac or on Linux
    CheckMacos,
    /// Run official clients, llama.cpp's tests of its server and made-up requests against ours, and its page in Chromium
    Clients(clients::Args),
    /// Run the tests of each feature in Rust, C and Python, and mark in docs/library.md which have passed
    Features(features::Args),
    /// Write kernels/ShaderTypes.h from the Rust structs
    Header(header::Args),
    /// Install the tools that tests need, where they are missing or too old
    Install,
    /// Run every kernel in the simulator, compile it to PTX, and print the table
    Kernels(kernels::Args),
    /// Run the tests of the CPU device on 64-bit ARM, or on an emulator of it
    Neon(neon::Args),
    /// Package every crate, and run its README's examples against the unpacked archives
    Package(package::Args),
    /// Compare the Rust structs with the header, by a C++ compiler
    Parity,
    /// Build the Python package, install it into an environment of its own and test it
    Python,
    /// Run JSON-Schema-Test-Suite and many schemas of real use through our grammars
    Schemas,
    /// Compile the kernels for the simulator, PTX or Metal
    Shaders(shaders::Args),
    /// Everything that must hold before a change is merged
    Test(test::Args),
    /// Run small models of every architecture, with shapes that are drawn from a seed, against transformers
    Zoo(zoo::Args),
}

fn main() -> ExitCode {
    let done = match command_line::parse::<Cli>().command {
        Command::Assets(args) => assets::run(&args),
        Command::Book => book::run(),
        Command::CLibrary(args) => c_library::run(&args),
        Command::CheckMacos => check_macos::run(),
        Command::Clients(args) => clients::run(&args),
        Command::Features(args) => features::run(&args),
        Command::Header(args) => header::run(&args),
        Command::Install => install::run(),
        Command::Kernels(args) => kernels::run(&args),
        Command::Neon(args) => neon::run(&args),
        Command::Package(args) => package::run(&args),
        Command::Parity => parity::run(),
        Command::Python => python::run(),
        Command::Schemas => schemas::run(),
        Command::Shaders(args) => shaders::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Zoo(args) => zoo::run(&args),
    };
    command_line::end(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a command is missing in the list of all commands, and on a command or a flag in the documentation that
    /// does not exist.
    #[test]
    fn the_documentation_has_the_commands_as_they_are() {
        let wrong = command_line::undocumented::<Cli>(&["cargo", "xtask"]);
        assert_eq!(wrong, Vec::<String>::new());
    }
}
