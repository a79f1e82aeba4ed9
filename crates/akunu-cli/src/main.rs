//! `akunu-cli`: arguments, printing, progress and exit codes. Nothing else in Akunu prints.
//!
//! Exit codes: 0 done, 1 an error in one sentence on stderr, 2 wrong usage, 130 interrupted by Ctrl-C,
//! 143 terminated.
#![forbid(unsafe_code)]

mod adapters;
mod cache;
mod chunks;
mod commands;
mod device;
mod failure;
mod floor;
mod guided;
mod input;
mod interrupt;
mod kept;
mod kv;
mod limit;
mod lines;
mod logprobs;
mod loops;
mod models;
mod open_files;
mod progress;
mod running;
mod sampling;
mod terminal;
mod typed_ahead;
mod units;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = commands::cli().get_matches();
    let mut out = BufWriter::new(io::stdout().lock());
    let done = commands::run(&matches, &mut out).and_then(|()| Ok(out.flush()?));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_closed_pipe() {
                let hint = failure.hint().filter(|_| commands::takes_context(&matches));
                let hint = hint.unwrap_or_default();
                // When stderr is closed too, the exit code is all that is left to say.
                let _ = writeln!(io::stderr(), "error: {failure}{hint}");
            }
            failure.exit_code()
        }
    }
}
