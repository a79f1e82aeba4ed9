//! Replacing a file as a whole.
//!
//! A new file gets an unguessable name in the folder of its target, is written and synced, and then takes the target's place: at
//! any moment the target is whole, old or new. Leftovers of a program that was killed are removed by the next one.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The ending of unfinished files.
const UNFINISHED: &str = ".akunu-part";

/// Replaces a file by one with these bytes.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    remove_leftovers(folder, Some(&name));
    let part = unguessable(folder, &name);
    let written = write_new(&part, bytes).and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // There may be none; the first error is the one to tell.
        let _ = fs::remove_file(&part);
    }
    written?;
    // The name itself is on the disk only when the folder is. Not every system lets a folder be opened.
    match File::open(folder) {
        Ok(folder) => folder.sync_all(),
        Err(_) => Ok(()),
    }
}

fn write_new(part: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(part)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// An unguessable file name.
fn unguessable(folder: &Path, name: &str) -> PathBuf {
    // The hasher of the standard library is keyed by the system's random numbers.
    let random = |n: u32| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(n);
        hasher.finish()
    };
    let (a, b, owner) = (random(0), random(1), std::process::id());
    folder.join(format!(".{name}.{a:016x}{b:016x}.{owner}{UNFINISHED}"))
}

/// Removes what programs that were killed left behind of this file, or of any.
pub(crate) fn remove_leftovers(folder: &Path, name: Option<&str>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let file = entry.file_name();
        let file = file.to_string_lossy();
        let owner = || {
            let (target, owner) = file
                .strip_prefix('.')?
                .strip_suffix(UNFINISHED)?
                .rsplit_once('.')?;
            let (target, _) = target.rsplit_once('.')?;
            let is_it = name.is_none_or(|name| name == target);
            is_it.then(|| owner.parse().ok()).flatten()
        };
        let owner = owner();
        if owner.is_some_and(|owner| is_gone(owner, &entry)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether the program that wrote a file has ended: the system says so or, where it does not, the file is old.
fn is_gone(owner: u32, entry: &fs::DirEntry) -> bool {
    const OLD: std::time::Duration = std::time::Duration::from_secs(60);
    let processes = Path::new("/proc");
    if processes.join("self").exists() {
        return !processes.join(owner.to_string()).exists();
    }
    let time = entry.metadata().and_then(|data| data.modified());
    time.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD))
}
