//! The folder in which an asset grows: `.<name>.partial`, beside its final place.
//!
//! ```text
//! progress.json   what is in, written after each archive
//! files/          what will get the asset's name; members are appended as their archives arrive
//! hub/            files on their way from a hub
//! download/       the archive under way
//! ```
//!
//! An archive is removed as soon as its members are taken out, so that the disk holds the asset once,
//! and not its archives too. A process that was killed leaves the folder; the next one cuts the files
//! back to what `progress.json` vouches for and goes on with the next archive.

use crate::catalogue::{Archive, Asset};
use crate::error::FetchError;
use crate::tool::size_of;
use crate::unpack;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PROGRESS: &str = "progress.json";

/// The name of the folder in which this asset grows.
pub fn folder_name(asset: &str) -> String {
    format!(".{asset}.partial")
}

/// The asset whose folder has this name.
pub fn asset_of(folder_name: &str) -> Option<&str> {
    folder_name.strip_prefix('.')?.strip_suffix(".partial")
}

/// An asset that is not complete yet.
pub struct Staging<'a> {
    asset: &'a Asset,
    folder: PathBuf,
    done: Done,
}

/// What is in.
#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct Done {
    /// The stamp of the catalogue's entry: the archives of another entry are others.
    entry: String,
    /// Archives whose members were taken out.
    n_archives: usize,
    /// Each file's members and bytes that are in.
    files: Vec<unpack::Filled>,
}

impl Done {
    fn nothing(asset: &Asset, entry: &str) -> Done {
        Done {
            entry: entry.to_string(),
            n_archives: 0,
            files: vec![unpack::Filled::default(); asset.files.len()],
        }
    }
}

impl<'a> Staging<'a> {
    /// Goes on with what an earlier process left, if that is of use, or begins.
    pub fn open(asset: &'a Asset, root: &Path, entry: &str) -> Result<Staging<'a>, FetchError> {
        let folder = root.join(folder_name(&asset.name));
        let mut staging = Staging {
            asset,
            done: Done::nothing(asset, entry),
            folder,
        };
        match staging.left_by_another() {
            Some(done) => staging.done = done,
            // A hub's part has its hash in its name: it is of use whatever the rest is.
            None => staging.clear(&["files"])?,
        }
        staging.clear(&["download"])?;
        let files = staging.files();
        fs::create_dir_all(&files).map_err(|source| FetchError::io(&files, source))?;
        Ok(staging)
    }

    /// What `progress.json` vouches for, with the files cut back to it; `None` when it is of no use.
    fn left_by_another(&self) -> Option<Done> {
        let text = fs::read(self.folder.join(PROGRESS)).ok()?;
        let done: Done = serde_json::from_slice(&text).ok()?;
        // A folder's files are counted while they are unpacked, which cannot be gone on with.
        let fits = done.entry == self.done.entry
            && done.files.len() == self.asset.files.len()
            && self.asset.trees.is_empty();
        if !fits {
            return None;
        }
        for (file, filled) in self.asset.files.iter().zip(&done.files) {
            let path = self.files().join(&file.path);
            if filled.bytes > 0 && !cut(&path, filled.bytes).is_ok_and(|whole| whole) {
                return None;
            }
        }
        Some(done)
    }

    /// Where the asset's files grow.
    pub fn files(&self) -> PathBuf {
        self.folder.join("files")
    }

    /// Where files come from a hub.
    pub fn hub(&self) -> PathBuf {
        self.folder.join("hub")
    }

    /// An empty folder for an archive.
    pub fn download(&self) -> Result<PathBuf, FetchError> {
        self.clear(&["download"])?;
        let folder = self.folder.join("download/archive");
        fs::create_dir_all(&folder).map_err(|source| FetchError::io(&folder, source))?;
        Ok(folder)
    }

    /// Archives whose members are in.
    pub fn n_archives(&self) -> usize {
        self.done.n_archives
    }

    /// Bytes that are still needed: what is missing of the files, beside the largest archive to come; or
    /// that archive twice, because pip copies what it has downloaded.
    pub fn needed(&self) -> u64 {
        let filled: u64 = self.done.files.iter().map(|filled| filled.bytes).sum();
        let left = self.asset.archives.iter().skip(self.done.n_archives);
        let largest = left.map(|archive: &Archive| archive.bytes).max();
        let missing = self.asset.bytes().saturating_sub(filled);
        let largest = largest.unwrap_or(0);
        missing.max(largest).saturating_add(largest)
    }

    /// Takes the members out of the next archive, removes it, and writes that down.
    pub fn take(&mut self, archive: &Path) -> Result<(), FetchError> {
        let files = self.files();
        for (file, filled) in self.asset.files.iter().zip(&mut self.done.files) {
            unpack::append(archive, file, filled, &files)?;
        }
        self.done.n_archives += 1;
        self.write_progress()?;
        fs::remove_file(archive).map_err(|source| FetchError::io(archive, source))
    }

    fn write_progress(&self) -> Result<(), FetchError> {
        let (path, new) = (self.folder.join(PROGRESS), self.folder.join("progress.new"));
        let failed = |source| FetchError::io(&path, source);
        let text = serde_json::to_vec(&self.done).map_err(|e| failed(io::Error::other(e)))?;
        fs::write(&new, text).map_err(failed)?;
        fs::rename(&new, &path).map_err(failed)
    }

    /// Checks every file; what is wrong is removed with all that was downloaded for it.
    pub fn check(&self) -> Result<(), FetchError> {
        for (file, filled) in self.asset.files.iter().zip(&self.done.files) {
            let right = unpack::check(file, filled, &self.files());
            if right.is_err() {
                self.remove()?;
            }
            right?;
        }
        Ok(())
    }

    /// Takes over what came from a hub, which has checked it.
    pub fn take_from_hub(&self) -> Result<(), FetchError> {
        let (hub, files) = (self.hub(), self.files());
        self.clear(&["files"])?;
        fs::rename(&hub, &files).map_err(|source| FetchError::io(&hub, source))
    }

    /// Gives the files their place; what was there before goes.
    pub fn finish(self, place: &Path) -> Result<(), FetchError> {
        let failed = |source| FetchError::io(place, source);
        if place.exists() {
            fs::rename(place, self.folder.join("old")).map_err(failed)?;
        }
        fs::rename(self.files(), place).map_err(failed)?;
        self.remove()
    }

    /// After a failure: keeps what the next process can go on with, and nothing else.
    pub fn leave(self) -> Result<(), FetchError> {
        let goes_on = self.done.n_archives > 0 && self.asset.trees.is_empty();
        if goes_on || size_of(&self.hub()) > 0 {
            return self.clear(&["download", "old"]);
        }
        self.remove()
    }

    /// Removes the whole folder.
    pub fn remove(&self) -> Result<(), FetchError> {
        remove_folder(&self.folder)
    }

    /// Removes folders within.
    pub fn clear(&self, names: &[&str]) -> Result<(), FetchError> {
        let folders = names.iter().map(|name| self.folder.join(name));
        folders
            .into_iter()
            .try_for_each(|path| remove_folder(&path))
    }
}

/// Removes a folder, if it is there.
fn remove_folder(folder: &Path) -> Result<(), FetchError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FetchError::io(folder, error)),
        _ => Ok(()),
    }
}

/// Cuts a file back to this length; `false` when it is shorter.
fn cut(path: &Path, bytes: u64) -> io::Result<bool> {
    let file = fs::File::options().write(true).open(path)?;
    let is_whole = file.metadata()?.len() >= bytes;
    if is_whole {
        file.set_len(bytes)?;
    }
    Ok(is_whole)
}
