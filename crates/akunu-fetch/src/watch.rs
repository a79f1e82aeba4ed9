//! Progress of a download, and stopping it.

/// Hears of the downloads of one call, one after the other.
pub trait Watch {
    /// A download begins: what it is, and its size.
    fn begin(&self, what: &str, bytes: u64);

    /// This much has arrived.
    fn at(&self, bytes: u64);

    /// The download is over, well or not.
    fn end(&self);

    /// Something that is worth a line: that another process is waited for, or what is here already.
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
