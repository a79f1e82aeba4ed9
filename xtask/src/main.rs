//! The project's own commands. One file a command; this one only reads the command line.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program: printing is its work"
)]

mod assets;
mod failure;
mod header;
mod parity;
mod process;
mod workspace;

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
    /// Write kernels/ShaderTypes.h from the Rust structs
    Header(header::Args),
    /// Compare the Rust structs with the header, by a C++ compiler
    Parity,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Assets(args) => assets::run(&args),
        Command::Header(args) => header::run(&args),
        Command::Parity => parity::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
