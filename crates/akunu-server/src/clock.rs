//! The time, and names that nothing else has.

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}

/// Names an object: a request, a chat completion, a message, a response.
pub(crate) fn new_id(prefix: &str) -> String {
    format!(
        "{prefix}{:08x}{:08x}",
        akunu::random_seed(),
        akunu::random_seed()
    )
}
