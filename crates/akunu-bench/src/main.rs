//! The project's commands that measure. One file a command; this one only reads the command line.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program: printing is its work"
)]

mod answers;
mod compare;
mod decoder;
mod gpu;
mod load;
mod median;
mod plots;
mod predict;
mod random_model;
mod report;
mod svg;
mod timing;

use akunu_repo::command_line;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo measure",
    bin_name = "cargo measure",
    about,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Ask a model easy questions with many seeds and long tasks, and judge its answers
    Answers(answers::Args),
    /// Measure Akunu and llama.cpp on the same files and cores, or on the same GPU
    Compare(compare::Args),
    /// Run every kernel and a model on an NVIDIA GPU, and print the table
    Gpu(gpu::Args),
    /// Ask a server many things at once, and measure how long each client waits
    Load(load::Args),
    /// Write all that a Mac's GPU shows about the kernels into one file
    MacReport(report::Args),
    /// Draw the plots of the documentation from its tables
    Plots(plots::Args),
    /// Predict tokens a second on Macs, from the bytes of the kernels and the speed of the memory, or from a report
    Predict(predict::Args),
    /// Write a GGUF file of a real model's shape, with random weights
    RandomModel(random_model::Args),
}

fn main() -> ExitCode {
    let done = match command_line::parse::<Cli>().command {
        Command::Answers(args) => answers::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Gpu(args) => gpu::run(&args),
        Command::Load(args) => load::run(&args),
        Command::MacReport(args) => report::run(&args),
        Command::Plots(args) => plots::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::RandomModel(args) => random_model::run(&args),
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
        let wrong = command_line::undocumented::<Cli>(&["cargo", "measure"]);
        assert_eq!(wrong, Vec::<String>::new());
    }
}
