//! The log of a server, on stderr.

use clap::ValueEnum;
use std::io;

/// What `--log` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object on each line
    Json,
}

/// Writes what the server tells from now on.
pub fn start(format: LogFormat) {
    let lines = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false)
        .with_max_level(tracing_subscriber::filter::LevelFilter::INFO);
    // Only one log can be started, and this is the only place that does.
    match format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .init(),
    }
}
