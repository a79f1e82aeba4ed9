//! `serve`: models over HTTP.

mod config;
mod log;
mod served;

use self::served::ServedArgs;
use super::Run;
use crate::failure::Failure;
use crate::guided::{self, LookupName};
use crate::input::{self, read_text};
use crate::interrupt::Interrupt;
use crate::models;
use crate::open_files;
use crate::terminal::{note, warn};
use akunu::{MAX_SEQUENCES, Mtp, TranscribeOptions};
use akunu_server::{Handle, Limits, Security, Server, ServerOptions};
use clap::Parser;
use log::LogFormat;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Serve models over HTTP: the protocols of OpenAI, Anthropic and Ollama, and a chat page
///
/// The first model is loaded at once, the others when a request names them. Requests are batched. After Ctrl-C no more
/// requests are accepted, and the running ones are completed; a second Ctrl-C ends the server at once.
#[derive(Parser)]
#[command(name = "serve")]
pub struct Serve {
    #[command(flatten)]
    served: ServedArgs,
    /// The address to listen on, or a name that has one; 0.0.0.0 allows requests from other machines
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = host)]
    host: Host,
    /// The port to listen on; 0 chooses a free one
    #[arg(long, value_name = "N", default_value_t = 8080)]
    port: u16,
    /// A key that every request must have; may be given several times
    #[arg(long, value_name = "KEY")]
    api_key: Vec<String>,
    /// A file with keys, one on each line
    #[arg(long, value_name = "FILE")]
    api_key_file: Option<PathBuf>,
    /// Allow requests from web pages of this origin, such as http://localhost:3000; may be given several times
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Another host name of this machine; may be given several times
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Number of answers of one model that are computed at once
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SEQUENCES)))]
    sequences: u32,
    /// Number of requests for one model that may wait; more are refused
    #[arg(long, value_name = "N", default_value_t = 64)]
    queue: u16,
    /// Length of a conversation in tokens [default: what the model was trained for, at most 4096]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    ctx: Option<u32>,
    /// Number of windows of a recording that a Whisper decodes together: faster for long recordings, but each is decoded
    /// without the text before
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=TranscribeOptions::MAX_BATCH as u64))]
    transcribe_batch: u64,
    /// Cut texts to embed that are longer than the model reads, unless a request says otherwise; they are refused by default
    #[arg(long)]
    truncate: bool,
    /// Unload a model that was not used for this long: 30s, 10m, 2h, or forever
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = keep)]
    keep: Keep,
    /// Guess tokens from what followed the same tokens before, in any request, and check several at once
    #[arg(long, value_enum, default_value = "auto")]
    lookup: LookupName,
    /// Guess tokens with a model's own block for multi-token prediction (MTP), if its file has one: auto for as many as save time,
    /// off, or a number of tokens
    #[arg(long, value_name = "auto|off|N", default_value = "auto", value_parser = guided::mtp)]
    mtp: Mtp,
    /// One line on stderr for each request
    #[arg(long, value_enum, value_name = "FORMAT")]
    log: Option<LogFormat>,
    /// Log prompts and answers too
    #[arg(long, requires = "log")]
    log_texts: bool,
}

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    address: IpAddr,
    /// What it was called, if not by its address.
    name: Option<String>,
}

/// An address, or a name that has one. Of several, the first of IPv4 is taken, as the default is.
fn host(text: &str) -> Result<Host, String> {
    if let Ok(address) = text.parse() {
        return Ok(Host {
            address,
            name: None,
        });
    }
    let found = (text, 0).to_socket_addrs();
    let found: Vec<IpAddr> = found.into_iter().flatten().map(|it| it.ip()).collect();
    let first = found.iter().find(|it| it.is_ipv4()).or(found.first());
    match first {
        Some(address) => Ok(Host {
            address: *address,
            name: Some(text.to_string()),
        }),
        None => Err("it must be an IP address, such as 127.0.0.1, or a name that has one".into()),
    }
}

/// How long a model stays loaded; `None` forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Keep(Option<Duration>);

/// A time such as `10m`.
fn keep(text: &str) -> Result<Keep, String> {
    if text == "forever" {
        return Ok(Keep(None));
    }
    let units = [("s", 1), ("m", 60), ("h", 3600)];
    let found = units.iter().find_map(|(unit, seconds)| {
        let n: u32 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(u64::from(n) * seconds))
    });
    match found {
        Some(time) => Ok(Keep(Some(time))),
        None => Err("it must be a time such as 30s, 10m or 2h, or forever".into()),
    }
}

impl Run for Serve {
    fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        log::start(self.log);
        let options = self.options()?;
        let is_open = !self.host.address.is_loopback() && options.security.keys.is_empty();
        let served = self.served.read()?;
        let (names, is_small) = (served.names(), served.is_small);
        let options = ServerOptions {
            default_model: served.default_model,
            ..options
        };
        let server = Server::bind(options, served.sources)?;
        if is_open {
            warn("everybody who reaches this address may ask; --api-key asks for a key");
        }
        writeln!(out, "serving {} on http://{}", names, server.address()?)?;
        out.flush()?;
        if is_small {
            note(models::LARGER_SERVED);
        }
        let interrupt = Interrupt::listen();
        let handle = server.handle();
        let watch = std::thread::Builder::new().name("interrupts".into());
        watch.spawn(move || end_when_asked(&interrupt, &handle))?;
        Ok(server.run()?)
    }
}

impl Serve {
    fn options(&self) -> Result<ServerOptions, Failure> {
        let mut keys = self.api_key.clone();
        if let Some(path) = &self.api_key_file {
            let text = read_text(path, input::KEYS)?;
            keys.extend(text.lines().map(|line| line.trim().to_string()));
        }
        keys.retain(|key| !key.is_empty());
        if keys.is_empty() && (self.api_key_file.is_some() || !self.api_key.is_empty()) {
            return Err(Failure::NoKeys);
        }
        Ok(ServerOptions {
            address: SocketAddr::new(self.host.address, self.port),
            sequences: self.sequences,
            queue: self.queue.into(),
            context: self.ctx,
            lookup: self.lookup.into(),
            mtp: self.mtp,
            transcribe_batch: self.transcribe_batch as usize,
            truncate: self.truncate,
            keep: self.keep.0,
            log_texts: self.log_texts,
            security: Security {
                keys,
                origins: self.allow_origin.clone(),
                // Whoever listens by a name is asked by it.
                hosts: self
                    .allow_host
                    .iter()
                    .chain(&self.host.name)
                    .cloned()
                    .collect(),
                ..Security::default()
            },
            limits: limits(open_files::raise_limit()),
            ..ServerOptions::default()
        })
    }
}

/// Files that a server has open besides connections: models that it loads, and its own.
const OTHER_FILES: u64 = 64;

/// As many connections as usual, or as the files allow that this process may have open.
fn limits(open_files: Option<u64>) -> Limits {
    let mut limits = Limits::default();
    if let Some(files) = open_files {
        let room = usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX);
        limits.connections = limits.connections.min(room.max(1));
    }
    limits
}

/// Ends the server at the first signal, and at once at the second.
fn end_when_asked(interrupt: &Interrupt, handle: &Handle) {
    let mut heard = 0;
    while heard < 2 {
        std::thread::sleep(Duration::from_millis(50));
        while heard < interrupt.times().min(2) {
            heard += 1;
            if heard == 1 {
                note("answering what was asked; Ctrl-C again ends at once");
            }
            handle.shut_down();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        let seconds = |n| Ok(Keep(Some(Duration::from_secs(n))));
        assert_eq!(keep("30s"), seconds(30));
        assert_eq!(keep("10m"), seconds(600));
        assert_eq!(keep("2h"), seconds(7200));
        assert_eq!(keep("forever"), Ok(Keep(None)));
        for wrong in ["", "10", "m", "-1s", "1.5h"] {
            assert!(keep(wrong).is_err(), "{wrong}");
        }
    }

    /// Breaks when a name cannot be listened on, or is not answered to.
    #[test]
    fn hosts_are_addresses_or_names() {
        let parsed = |text: &str| {
            let serve = Serve::try_parse_from(["serve", "--host", text]).ok()?;
            let options = serve.options().ok()?;
            Some((options.address.ip().to_string(), options.security.hosts))
        };
        let address = |text: &str| Some((text.to_string(), Vec::new()));
        assert_eq!(parsed("0.0.0.0"), address("0.0.0.0"));
        assert_eq!(parsed("::1"), address("::1"));
        let named = Some(("127.0.0.1".to_string(), vec!["localhost".to_string()]));
        assert_eq!(parsed("localhost"), named);
        // No name may end so.
        assert_eq!(parsed("no-such-name.invalid"), None);
        assert_eq!(parsed(""), None);
    }

    /// Breaks when the option does not reach the server, or when a batch that cannot be does.
    #[test]
    fn windows_of_a_batch_are_1_to_16() {
        let batch = |n: &str| Serve::try_parse_from(["serve", "--transcribe-batch", n]);
        let options = batch("16").map(|serve| serve.options());
        let options = options.ok().and_then(Result::ok).expect("parsed");
        assert_eq!(options.transcribe_batch, 16);
        assert!(batch("0").is_err() && batch("17").is_err());
    }

    /// Breaks when connections can take the files that a model is loaded from.
    #[test]
    fn connections_leave_files_to_models() {
        let usual = Limits::default().connections;
        assert_eq!(limits(None).connections, usual);
        assert_eq!(limits(Some(1 << 20)).connections, usual);
        assert_eq!(limits(Some(1024)).connections, 1024 - 64);
        assert_eq!(limits(Some(10)).connections, 1);
    }
}
