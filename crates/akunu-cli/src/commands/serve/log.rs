//! The log of a server, on stderr.

use clap::ValueEnum;
use std::io;
use tracing_subscriber::filter::LevelFilter;

/// What `--log` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object on each line
    Json,
}

/// Writes what the server tells from now on; without a format, its warnings and failures only.
pub fn start(format: Option<LogFormat>) {
    let level = match format {
        Some(_) => LevelFilter::INFO,
        None => LevelFilter::WARN,
    };
    let lines = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false)
        .with_max_level(level);
    // Only one log can be started, and this is the only place that does.
    match format {
        None | Some(LogFormat::Text) => lines.with_ansi(false).init(),
        Some(LogFormat::Json) => lines
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .init(),
    }
}
