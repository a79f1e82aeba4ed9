//! How many files, and so connections, this process may have open.

/// Raises the limit to the most that the system allows this process; returns it, where there is one.
#[cfg(unix)]
pub fn raise() -> Option<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    // Some systems do not take their own figure; then the limit stays as it was.
    let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    Some(soft)
}

/// Systems without such a limit.
#[cfg(not(unix))]
pub fn raise() -> Option<u64> {
    None
}
