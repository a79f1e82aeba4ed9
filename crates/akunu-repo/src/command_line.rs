//! The command line of a program with subcommands, and whether the documentation agrees with it.

#![allow(clippy::print_stderr, reason = "errors go to stderr")]

use crate::Failure;
use clap::Parser;
use clap::error::ErrorKind;
use std::process::ExitCode;

/// Reads the command line. On a mistake the program ends as clap ends it; an unknown command also gets the list of all.
#[must_use]
pub fn parse<C: Parser>() -> C {
    C::try_parse().unwrap_or_else(|mistake| {
        if mistake.kind() == ErrorKind::InvalidSubcommand {
            eprintln!("the commands are: {}\n", names::<C>().join(", "));
        }
        mistake.exit()
    })
}

/// Prints why a command failed, and returns the program's exit code.
#[must_use]
pub fn end(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

fn names<C: Parser>() -> Vec<String> {
    let command = C::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    names.map(str::to_string).collect()
}

/// For tests: commands that the documentation lacks, and those in it that the program refuses. A placeholder such as `N` is
/// not a number, and a mention within a sentence may leave out arguments.
///
/// # Panics
/// When the documentation cannot be read.
#[must_use]
pub fn undocumented<C: Parser>(program: &[&str]) -> Vec<String> {
    let commands = akunu_assets::documented(program);
    let mut wrong = Vec::new();
    for name in names::<C>() {
        let lists = |it: &akunu_assets::Documented| {
            it.is_line && it.place.starts_with("docs/commands.md") && it.arguments[0] == name
        };
        if !commands.iter().any(lists) {
            wrong.push(format!("{name} is not in docs/commands.md"));
        }
    }
    for command in commands {
        let words = ["program"].into_iter();
        let words = words.chain(command.arguments.iter().map(String::as_str));
        let Err(error) = C::try_parse_from(words) else {
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
    wrong
}
