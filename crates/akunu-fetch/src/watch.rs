//! Progress of a download, and stopping it.

/// Receives the progress of the downloads of one call, one after the other.
pub trait Watch {
    /// A download begins: what it is, and its size.
    fn begin(&self, what: &str, bytes: u64);

    /// This much has arrived.
    fn at(&self, bytes: u64);

    /// The download has ended, successfully or not.
    fn end(&self);

    /// A note for the user: that it waits for another process, or what is already there.
    fn note(&self, _text: &str) {}

    /// Whether to give up.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A size for people, in decimal megabytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
