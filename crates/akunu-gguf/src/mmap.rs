//! The bytes of one file, mapped instead of read.
//!
//! This is the only file of the crate with `unsafe` in it.
//!
//! # A file that changes while it is mapped
//!
//! A mapping shows the file as it is, not as it was. A file that another program truncates while a
//! model is open raises `SIGBUS` on the next read of a lost page, and one that is rewritten in place
//! yields other weights. Neither can be prevented from here without copying the file. Replace model
//! files by renaming a new one over the old, as [`crate::GgufWriter`] does: the open mapping then
//! keeps the old contents.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

/// The contents of a file, or bytes in memory that stand for one.
#[derive(Debug)]
pub struct FileBytes {
    path: PathBuf,
    storage: Storage,
}

#[derive(Debug)]
enum Storage {
    Mapped(memmap2::Mmap),
    Memory(Vec<u8>),
}

impl FileBytes {
    /// Maps a regular file. Its pages are read when they are first accessed.
    pub fn map(path: &Path) -> io::Result<FileBytes> {
        // Asked before opening: opening a named pipe would wait for a writer.
        let length = regular_file_length(path)?;
        let storage = if length == 0 {
            Storage::Memory(Vec::new())
        } else {
            Storage::Mapped(map_read_only(&File::open(path)?)?)
        };
        Ok(FileBytes {
            path: path.to_path_buf(),
            storage,
        })
    }

    /// Bytes in memory under a name that error messages can use.
    pub fn from_memory(name: impl Into<PathBuf>, bytes: Vec<u8>) -> FileBytes {
        FileBytes {
            path: name.into(),
            storage: Storage::Memory(bytes),
        }
    }

    /// Says that these bytes will hardly be read again: the process gives the pages back that a mapping has
    /// there. They can still be read; they then come from the file anew.
    pub fn forget(&self, range: Range<usize>) {
        #[cfg(unix)]
        if let Storage::Mapped(map) = &self.storage
            && range.start < range.end
            && range.end <= map.len()
        {
            give_pages_back(map, range);
        }
        #[cfg(not(unix))]
        let _ = range;
    }

    /// Where the bytes come from.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.storage {
            Storage::Mapped(map) => map,
            Storage::Memory(bytes) => bytes,
        }
    }
}

fn regular_file_length(path: &Path) -> io::Result<u64> {
    let about = std::fs::metadata(path)?;
    if about.is_file() {
        Ok(about.len())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ))
    }
}

fn map_read_only(file: &File) -> io::Result<memmap2::Mmap> {
    // SAFETY: `Mmap::map` asks that the file is neither modified nor truncated while it is mapped.
    // The mapping is read-only, so this process does not modify it; other programs are asked not to
    // by the module docs. Everything read from it is checked as untrusted input, so changed bytes can
    // give wrong numbers or an error, not a read outside of the mapping.
    unsafe { memmap2::Mmap::map(file) }
}

#[cfg(unix)]
fn give_pages_back(map: &memmap2::Mmap, range: Range<usize>) {
    let advice = memmap2::UncheckedAdvice::DontNeed;
    // SAFETY: of a read-only mapping of a file nothing is lost: pages that are looked at again are read from
    // the file again.
    let given = unsafe { map.unchecked_advise_range(advice, range.start, range.len()) };
    // It only saves memory: a system that refuses keeps the pages.
    drop(given);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_mapped_and_an_empty_one_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let full = folder.path().join("full");
        let empty = folder.path().join("empty");
        std::fs::write(&full, b"weights").unwrap();
        std::fs::write(&empty, b"").unwrap();
        assert_eq!(&*FileBytes::map(&full).unwrap(), b"weights");
        assert!(FileBytes::map(&empty).unwrap().is_empty());
    }

    /// Advice that lost the bytes would show as zeros here.
    #[test]
    fn forgotten_bytes_can_still_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mapped = FileBytes::map(&path).unwrap();
        assert_eq!(&*mapped, bytes);
        mapped.forget(5_000..90_000);
        mapped.forget(99_999..100_001);
        assert_eq!(&*mapped, bytes);
    }

    #[test]
    fn a_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = FileBytes::map(folder.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
