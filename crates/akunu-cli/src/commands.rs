//! The subcommands: one file each, one row of [`COMMANDS`] each.

mod bench;
mod chat;
mod completions;
mod devices;
mod embed;
mod generate;
mod imatrix;
mod inspect;
mod list;
mod perplexity;
mod pull;
mod quantize;
mod rerank;
mod rm;
mod serve;
mod tokenize;
mod transcribe;

use crate::failure::Failure;
use clap::{ArgMatches, Command, Parser};
use std::io::Write;

/// A subcommand: its arguments are its fields, its help is its doc comment.
trait Run: Parser {
    /// Does the work and writes the result, and only that, to `out`.
    fn run(self, out: &mut dyn Write) -> Result<(), Failure>;
}

/// One subcommand: how it is described to clap, and what it does.
struct Row {
    command: fn() -> Command,
    run: fn(&ArgMatches, &mut dyn Write) -> Result<(), Failure>,
}

const fn row<C: Run>() -> Row {
    Row {
        command: C::command,
        run: |matches, out| match C::from_arg_matches(matches) {
            Ok(command) => command.run(out),
            Err(usage) => usage.exit(),
        },
    }
}

/// Every subcommand, in the order of the help.
const COMMANDS: &[Row] = &[
    row::<chat::Chat>(),
    row::<generate::Generate>(),
    row::<serve::Serve>(),
    row::<embed::Embed>(),
    row::<rerank::Rerank>(),
    row::<transcribe::Transcribe>(),
    row::<perplexity::Perplexity>(),
    row::<bench::BenchCommand>(),
    row::<devices::Devices>(),
    row::<pull::Pull>(),
    row::<list::List>(),
    row::<rm::Remove>(),
    row::<inspect::Inspect>(),
    row::<quantize::Quantize>(),
    row::<imatrix::Imatrix>(),
    row::<tokenize::Tokenize>(),
    row::<completions::Completions>(),
];

/// The whole command line.
pub fn cli() -> Command {
    Command::new("akunu-cli")
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(COMMANDS.iter().map(|row| (row.command)()))
}

/// Whether the subcommand has a --ctx.
pub fn takes_context(matches: &ArgMatches) -> bool {
    // The matches cannot be asked: in a release build they say of any name only that it was not given.
    let asked = |row: &&Row| Some((row.command)().get_name()) == matches.subcommand_name();
    let command = COMMANDS.iter().find(asked).map(|row| (row.command)());
    command.is_some_and(|command| command.get_arguments().any(|arg| arg.get_id() == "ctx"))
}

/// Runs the subcommand that the arguments name.
pub fn run(matches: &ArgMatches, out: &mut dyn Write) -> Result<(), Failure> {
    for row in COMMANDS {
        if let Some(matches) = matches.subcommand_matches((row.command)().get_name()) {
            return (row.run)(matches, out);
        }
    }
    unreachable!("clap requires one of the subcommands")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    /// clap's own check: conflicting flags, positions out of order, and the like.
    #[test]
    fn the_command_line_is_consistent() {
        cli().debug_assert();
    }

    /// Fails on a subcommand, a flag or a value in the documentation that the program does not have. A mention within a
    /// sentence may leave out arguments, and a placeholder such as `N` is no number.
    #[test]
    fn the_commands_of_the_documentation_can_be_typed() {
        let commands = akunu_assets::documented(&["akunu-cli"]);
        assert!(commands.len() > 50, "only {} were found", commands.len());
        let mut wrong = Vec::new();
        for command in commands {
            let words = ["akunu-cli"].into_iter();
            let words = words.chain(command.arguments.iter().map(String::as_str));
            let Err(error) = cli().try_get_matches_from(words) else {
                continue;
            };
            let is_excused = match error.kind() {
                ErrorKind::ValueValidation | ErrorKind::InvalidValue => command.has_placeholder(),
                ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !command.is_line,
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
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

    /// Fails when a subcommand is missing in the list of all commands.
    #[test]
    fn the_list_of_commands_is_complete() {
        let mut listed = akunu_assets::documented(&["akunu-cli"]);
        listed.retain(|command| command.is_line && command.place.starts_with("docs/commands.md"));
        for row in COMMANDS {
            let command = (row.command)();
            let name = command.get_name();
            let is_listed = listed.iter().any(|listed| listed.arguments[0] == name);
            assert!(is_listed, "{name} is not in docs/commands.md");
        }
    }

    /// Fails, in a release build, when an error advises an option that the command does not have.
    #[test]
    fn commands_with_a_context_are_known() {
        let takes = |words: &[&str]| {
            let words = ["akunu-cli"].iter().chain(words);
            takes_context(&cli().try_get_matches_from(words).expect("a command"))
        };
        assert!(takes(&["chat"]) && takes(&["inspect", "x"]));
        assert!(!takes(&["bench"]) && !takes(&["list"]));
    }

    #[test]
    fn every_subcommand_says_what_it_does() {
        for row in COMMANDS {
            let command = (row.command)();
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
    }
}
