//! How a server is set up.

use std::net::SocketAddr;
use std::time::Duration;

use akunu::{Lookup, Mtp, TranscribeOptions};

/// How a server is set up.
///
/// Later versions may have further fields: end a value with `..ServerOptions::default()`.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where it listens; port 0 takes any that is free.
    pub address: SocketAddr,
    /// Sequences of one model that step together.
    pub sequences: u32,
    /// Sequences of one model that may wait for a place.
    pub queue: usize,
    /// Tokens of a sequence; `None` for what the model was trained for, at most 4096.
    pub context: Option<u32>,
    /// The model that answers requests which name none, or one that is not served; `None` for the first, and 404.
    pub default_model: Option<String>,
    /// Whether tokens are guessed from the text of a request and of those before it. Answers do not depend on it, but their
    /// speed does, by which a client that measures times can learn of others' texts.
    pub lookup: Lookup,
    /// Guesses of a model's own block for multi-token prediction; models without one answer without.
    pub mtp: Mtp,
    /// Windows of a recording that are decoded together, 1 to [`TranscribeOptions::MAX_BATCH`]. More than one is faster for
    /// long recordings, and each is decoded without the text before.
    pub transcribe_batch: usize,
    /// A model that has not been used for this long is unloaded, unless it is pinned; `None` keeps all, whatever happens.
    pub keep: Option<Duration>,
    /// Whether memory is short. Then models that have nothing to do are unloaded before their time; by default when less
    /// than a tenth of this machine's memory is available.
    pub memory_is_short: fn() -> bool,
    /// Whether texts to embed that are too long are cut, where a request does not say it; otherwise they are an error.
    pub truncate: bool,
    /// Whether prompts and answers are logged, for people who want to see what a program asks for.
    pub log_texts: bool,
    /// Who may ask.
    pub security: Security,
    /// How much may be asked.
    pub limits: Limits,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

/// Who may ask.
///
/// Later versions may have further fields: end a value with `..Security::default()`.
#[derive(Clone, Default)]
pub struct Security {
    /// A request must have one of these keys, where there are any.
    pub keys: Vec<String>,
    /// Web pages from elsewhere that may ask, as `https://host:port`.
    pub origins: Vec<String>,
    /// Names that this machine is called by, besides `localhost` and IP addresses.
    pub hosts: Vec<String>,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

/// Keys are not shown.
impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Security")
            .field("n_keys", &self.keys.len())
            .field("origins", &self.origins)
            .field("hosts", &self.hosts)
            .finish()
    }
}

/// How much may be asked.
///
/// Later versions may have further fields: end a value with `..Limits::default()`.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of a recording, with the other fields of its form.
    pub audio_bytes: usize,
    /// Recordings that are listened to or wait for it; each may be in memory.
    pub recordings: usize,
    /// Bytes of a request's path and headers, of which there may be 100.
    pub header_bytes: usize,
    /// How long the headers of a request may take, and then its body.
    pub reading: Duration,
    /// How long an answer may take, from the request to its last token.
    pub answering: Duration,
    /// Connections at once. The oldest one that has not asked, or not to the end, makes room for one more.
    pub connections: usize,
    /// Bytes of the conversations that responses can go on with; those that were not used for longest are forgotten.
    pub kept_bytes: usize,
    /// Tools of a request.
    pub tools: usize,
    /// Texts of a request for embeddings or a ranking.
    pub texts: usize,
    /// Texts and tokens that end an answer.
    pub stops: usize,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 8 << 20,
            audio_bytes: 25 << 20,
            recordings: 8,
            header_bytes: 64 << 10,
            reading: Duration::from_secs(30),
            answering: Duration::from_secs(3600),
            connections: 4096,
            kept_bytes: 64 << 20,
            tools: 128,
            texts: 2048,
            stops: 256,
            _more: (),
        }
    }
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            sequences: 8,
            queue: 64,
            context: None,
            default_model: None,
            lookup: Lookup::default(),
            mtp: Mtp::default(),
            transcribe_batch: TranscribeOptions::default().batch,
            keep: None,
            memory_is_short: crate::memory::is_short,
            truncate: false,
            log_texts: false,
            security: Security::default(),
            limits: Limits::default(),
            _more: (),
        }
    }
}
