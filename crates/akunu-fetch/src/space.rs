//! Whether there is room for a download, before and after it failed.

use crate::error::FetchError;
use std::path::Path;

/// Bytes that may still be written where `path` lies; `None` where the system does not say.
pub fn free(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(path).ok()?;
        disk.f_bavail.checked_mul(disk.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

/// An error when `needed` bytes do not fit where `folder` lies.
pub fn require(what: &str, folder: &Path, needed: u64) -> Result<(), FetchError> {
    match free(folder) {
        Some(free) if free < needed => Err(full(what, folder, needed)),
        _ => Ok(()),
    }
}

/// The error that says what would be needed.
pub fn full(what: &str, folder: &Path, needed: u64) -> FetchError {
    FetchError::DiskFull {
        what: what.to_string(),
        folder: folder.display().to_string(),
        needed,
        free: free(folder),
    }
}

/// Whether a program's complaint is about a full disk.
pub fn is_told(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    let signs = ["no space left on device", "disk quota exceeded", "enospc"];
    signs.iter().any(|sign| said.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the size of a block or of the whole disk is taken for the free bytes.
    #[cfg(unix)]
    #[test]
    fn a_disk_has_some_room_but_not_for_everything() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        require("little", folder.path(), 1).expect("a byte fits");
        let refused = require("much", folder.path(), u64::MAX).expect_err("no disk is so large");
        let said = refused.to_string();
        let place = folder.path().display().to_string();
        assert!(said.contains("much") && said.contains(&place), "{said}");
        assert!(said.contains("18446744073709.6 MB"), "{said}");
    }

    #[test]
    fn programs_tell_it_in_several_ways() {
        assert!(is_told("ERROR: [Errno 28] No space left on device"));
        assert!(is_told("npm error code ENOSPC"));
        assert!(!is_told("ERROR: No matching distribution"));
    }
}
