//! One process at a time: a lock file beside what is being fetched.
//!
//! The system frees the lock when its holder dies, however it dies. Whoever held it removes the file, so
//! that nothing stays behind; whoever gets the lock of a file that was just removed tries again.

use crate::error::FetchError;
use crate::watch::Watch;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);

/// The right to fetch one thing, until it is dropped.
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Waits until no other process fetches `what`.
    pub fn acquire(path: &Path, what: &str, watch: &dyn Watch) -> Result<Lock, FetchError> {
        let mut has_told = false;
        loop {
            if let Some(lock) = Lock::try_acquire(path)? {
                return Ok(lock);
            }
            if !has_told {
                watch.note(&format!(
                    "another process is fetching {what}; waiting for it"
                ));
                has_told = true;
            }
            if watch.is_cancelled() {
                return Err(FetchError::Cancelled);
            }
            std::thread::sleep(POLL);
        }
    }

    /// The lock, or `None` when another process has it.
    pub fn try_acquire(path: &Path) -> Result<Option<Lock>, FetchError> {
        let failed = |source| FetchError::io(path, source);
        loop {
            let mut options = File::options();
            let file = options.create(true).truncate(false).write(true).open(path);
            let file = file.map_err(failed)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(None),
                // Some network file systems have no locks; there it is as if nobody else were there.
                Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
                    return Err(failed(error));
                }
                _ if is_at(&file, path) => {
                    let path = path.to_path_buf();
                    return Ok(Some(Lock { path, _file: file }));
                }
                _ => {}
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Elsewhere than on Unix nobody could tell that the file was removed: there it stays.
        if cfg!(unix) {
            // A lock file that stays harms nobody.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether the open file is still the one at this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn only_one_has_it_and_nothing_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(".model.lock");
        let first = Lock::try_acquire(&path).expect("a lock").expect("free");
        assert!(Lock::try_acquire(&path).expect("asked").is_none());
        drop(first);
        assert!(!path.exists());
        assert!(Lock::try_acquire(&path).expect("a lock").is_some());
    }

    /// Fails if two can hold it while it is removed and made again: the count would pass one.
    #[test]
    fn many_take_turns() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(".model.lock");
        let holders = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let Some(_lock) = Lock::try_acquire(&path).expect("asked") else {
                            continue;
                        };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        holders.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
