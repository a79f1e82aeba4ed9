//! The project's own commands. One file a command; this one only reads the command line.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program: printing is its work"
)]

mod answers;
mod assets;
mod book;
mod c_library;
mod check_macos;
mod clients;
mod compare;
mod debian;
mod debian_rust;
mod failure;
mod gpu;
mod header;
mod install;
mod instantiate;
mod kernels;
mod load;
mod median;
mod neon;
mod package;
mod parallel;
mod parity;
mod plots;
mod predict;
mod process;
mod python;
mod random_model;
mod rust_target;
mod schemas;
mod server;
mod shaders;
mod svg;
mod test;
mod tools;
mod workspace;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
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
    /// Ask a model easy questions with many seeds and long tasks, and judge its answers
    Answers(answers::Args),
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
    /// Measure Akunu and llama.cpp on the same files and cores, or on the same GPU
    Compare(compare::Args),
    /// Run every kernel and a model on an NVIDIA GPU, and print the table
    Gpu(gpu::Args),
    /// Write kernels/ShaderTypes.h from the Rust structs
    Header(header::Args),
    /// Install the tools that tests need, where they are missing or too old
    Install,
    /// Run every kernel in the simulator, compile it to PTX, and print the table
    Kernels(kernels::Args),
    /// Ask a server many things at once, and measure how long each client waits
    Load(load::Args),
    /// Run the tests of the CPU device on 64-bit ARM, or on an emulator of it
    Neon(neon::Args),
    /// Package every crate, and run its README's examples against the unpacked archives
    Package(package::Args),
    /// Compare the Rust structs with the header, by a C++ compiler
    Parity,
    /// Draw the plots of the documentation from its tables
    Plots(plots::Args),
    /// Predict tokens a second on Macs, from what kernels do and what memory delivers
    Predict(predict::Args),
    /// Build the Python package, install it into an environment of its own and test it
    Python,
    /// Write a GGUF file of a real model's shape, with random weights
    RandomModel(random_model::Args),
    /// Run JSON-Schema-Test-Suite and many schemas of real use through our grammars
    Schemas,
    /// Compile the kernels for the simulator, PTX or Metal
    Shaders(shaders::Args),
    /// Everything that must hold before a change is merged
    Test(test::Args),
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|mistake| refuse(&mistake));
    let done = match cli.command {
        Command::Answers(args) => answers::run(&args),
        Command::Assets(args) => assets::run(&args),
        Command::Book => book::run(),
        Command::CLibrary(args) => c_library::run(&args),
        Command::CheckMacos => check_macos::run(),
        Command::Clients(args) => clients::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Gpu(args) => gpu::run(&args),
        Command::Header(args) => header::run(&args),
        Command::Install => install::run(),
        Command::Kernels(args) => kernels::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Neon(args) => neon::run(&args),
        Command::Package(args) => package::run(&args),
        Command::Parity => parity::run(),
        Command::Plots(args) => plots::run(&args),
        Command::Predict(args) => predict::run(&args),
        Command::Python => python::run(),
        Command::RandomModel(args) => random_model::run(&args),
        Command::Schemas => schemas::run(),
        Command::Shaders(args) => shaders::run(&args),
        Command::Test(args) => test::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

/// Ends the program as clap does; a command that does not exist also gets the list of those that do.
fn refuse(mistake: &clap::Error) -> ! {
    if mistake.kind() == ErrorKind::InvalidSubcommand {
        let cli = Cli::command();
        let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
        eprintln!("the commands are: {}\n", names.join(", "));
    }
    mistake.exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when a command is missing in the list of all commands.
    #[test]
    fn the_list_of_commands_is_complete() {
        let mut listed = akunu_assets::documented(&["cargo", "xtask"]);
        listed.retain(|command| command.is_line && command.place.starts_with("docs/commands.md"));
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let is_listed = listed.iter().any(|listed| listed.arguments[0] == name);
            assert!(is_listed, "{name} is not in docs/commands.md");
        }
    }

    /// Fails on a command or a flag in the documentation that does not exist. A placeholder such as `N` is no number, and a
    /// mention within a sentence may leave out arguments.
    #[test]
    fn the_commands_of_the_documentation_can_be_typed() {
        let commands = akunu_assets::documented(&["cargo", "xtask"]);
        assert!(commands.len() > 30, "only {} were found", commands.len());
        let mut wrong = Vec::new();
        for command in commands {
            let words = ["xtask"].into_iter();
            let words = words.chain(command.arguments.iter().map(String::as_str));
            let Err(error) = Cli::try_parse_from(words) else {
                continue;
            };
            let is_excused = match error.kind() {
                ErrorKind::ValueValidation | ErrorKind::InvalidValue => command.has_placeholder(),
                ErrorKind::MissingRequiredArgument
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !command.is_line,
                ErrorKind::DisplayHelp => true,
                _ => false,
            };
            if !is_excused {
                let error = error.to_string();
                let why = error.lines().next().unwrap_or_default();
                wrong.push(format!("{}: {:?}: {why}", command.place, command.arguments));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
