//! `completions SHELL`: what the shell needs to complete our arguments.

use super::Run;
use crate::failure::Failure;
use clap::Parser;
use clap_complete::Shell;
use std::io::Write;

/// Print completions for a shell, to be sourced or put where it looks for them
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
        clap_complete::generate(self.shell, &mut cli, name, &mut script);
        Ok(out.write_all(&script)?)
    }
}
