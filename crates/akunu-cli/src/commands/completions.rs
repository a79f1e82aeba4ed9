//! `completions SHELL`: what the shell needs to complete our arguments.

use super::Run;
use crate::failure::Failure;
use clap::Parser;
use clap_complete::Shell;
use std::io::Write;

/// Print completions for a shell, to be sourced or installed
///
/// For bash, `source <(akunu-cli completions bash)` in ~/.bashrc. For zsh, write them to a file _akunu-cli
/// in a folder of $fpath. For fish, write them to ~/.config/fish/completions/akunu-cli.fish.
#[derive(Parser)]
#[command(name = "completions")]
pub struct Completions {
    /// Which shell
    shell: Shell,
}

impl Run for Completions {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut cli = super::cli();
        let name = cli.get_name().to_string();
        // Into memory first: the generator panics when the reader of its output goes away.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut cli, &name, &mut script);
        if self.shell == Shell::Bash {
            script = with_matching_labels(&String::from_utf8_lossy(&script), &name).into();
        }
        Ok(out.write_all(&script)?)
    }
}

/// The script for bash remembers a subcommand as `akunu__cli__subcmd__bench` and looks for it under
/// `akunu__subcmd__cli__subcmd__bench`: the generator takes the hyphen in our name for two commands. Here
/// the second becomes the first.
fn with_matching_labels(script: &str, name: &str) -> String {
    const SEPARATOR: &str = "__subcmd__";
    let label = |hyphen: &str| name.replace('-', hyphen) + SEPARATOR;
    script.replace(&label(SEPARATOR), &label("__"))
}
