//! Installing one asset: fetch, check, unpack, rename.
//!
//! The files grow in a folder of their own (see [`crate::staging`]); the last step is a rename. So a
//! folder under an asset's name is always complete. A stamp file inside holds a hash of what the catalogue
//! says of its content: the same stamp means nothing to do. A lock keeps two processes from fetching the
//! same asset: the second waits, and finds it there.

use crate::catalogue::Asset;
use crate::digest::{sha256, sha256_of_file};
use crate::error::FetchError;
use crate::lock::Lock;
use crate::registry::Source;
use crate::space;
use crate::staging::Staging;
use crate::unpack;
use crate::watch::Watch;
use std::fs;
use std::path::{Path, PathBuf};

const STAMP: &str = ".catalogue-entry.sha256";

/// What had to be done.
#[derive(Debug, PartialEq, Eq)]
pub enum Installed {
    /// It was there already.
    Present,
    /// It was downloaded.
    Fetched,
}

/// How to install: the source, who watches the progress, and whether to download again.
pub struct Order<'a> {
    /// Where the parts come from.
    pub source: &'a dyn Source,
    /// Receives the progress.
    pub watch: &'a dyn Watch,
    /// Download again what is there already.
    pub force: bool,
}

/// Installs the asset as `root/<name>`, unless it is there.
pub fn install(asset: &Asset, root: &Path, order: &Order) -> Result<Installed, FetchError> {
    let folder = root.join(&asset.name);
    if !order.force && is_present(asset, &folder)? {
        return Ok(Installed::Present);
    }
    fs::create_dir_all(root).map_err(|source| FetchError::io(root, source))?;
    let _lock = Lock::acquire(&lock_of(root, &asset.name), &asset.name, order.watch)?;
    // Another process may have brought it while we waited.
    if !order.force && is_present(asset, &folder)? {
        return Ok(Installed::Present);
    }
    let mut staging = Staging::open(asset, root, &stamp_of(asset))?;
    let filled = fill(asset, root, &mut staging, order);
    if let Err(error) = filled {
        let needed = staging.needed();
        // Why it failed matters more than what stays behind.
        let _ = staging.leave();
        if error.is_disk_full() {
            return Err(space::full(&asset.name, root, needed));
        }
        return Err(error);
    }
    staging.finish(&folder)?;
    Ok(Installed::Fetched)
}

/// The lock of an asset.
pub(crate) fn lock_of(root: &Path, name: &str) -> PathBuf {
    root.join(format!(".{name}.lock"))
}

/// Brings all files, from a hub or out of archives, and checks them.
fn fill(
    asset: &Asset,
    root: &Path,
    staging: &mut Staging,
    order: &Order,
) -> Result<(), FetchError> {
    space::require(&asset.name, root, staging.needed())?;
    if staging.n_archives() == 0 && files_from_hub(asset, staging, order)? {
        return write_stamp(asset, &staging.files());
    }
    let n_archives = asset.archives.len();
    if staging.n_archives() > 0 {
        let (name, n) = (&asset.name, staging.n_archives());
        order
            .watch
            .note(&format!("{name}: {n} of {n_archives} packages are here"));
    }
    let mut trees = vec![unpack::Counted::default(); asset.trees.len()];
    for n in staging.n_archives()..n_archives {
        let archive = download(asset, n, &staging.download()?, order)?;
        for (tree, counted) in asset.trees.iter().zip(&mut trees) {
            unpack::tree(&archive, tree, counted, &staging.files())?;
        }
        staging.take(&archive)?;
    }
    for (tree, counted) in asset.trees.iter().zip(&trees) {
        unpack::check_tree(tree, counted)?;
    }
    staging.check()?;
    write_stamp(asset, &staging.files())
}

/// Brings all files from a hub; `false` when one of them is not there.
fn files_from_hub(asset: &Asset, staging: &Staging, order: &Order) -> Result<bool, FetchError> {
    if !asset.trees.is_empty() {
        return Ok(false);
    }
    for file in &asset.files {
        let path = staging.hub().join(&file.path);
        if !order.source.file(file, &path, order.watch)? {
            staging.clear(&["hub"])?;
            return Ok(false);
        }
    }
    staging.take_from_hub()?;
    Ok(true)
}

/// Downloads one archive and checks it; a wrong one is removed.
fn download(asset: &Asset, n: usize, folder: &Path, order: &Order) -> Result<PathBuf, FetchError> {
    let archive = &asset.archives[n];
    let mut what = format!("{}: downloading {archive}", asset.name);
    if asset.archives.len() > 1 {
        what += &format!(", {} of {}", n + 1, asset.archives.len());
    }
    order.watch.begin(&what, archive.bytes);
    let fetched = order.source.archive(archive, folder, order.watch);
    order.watch.end();
    let path = fetched?;
    let sha256 = sha256_of_file(&path).map_err(|source| FetchError::io(&path, source))?;
    if sha256 == archive.sha256 {
        return Ok(path);
    }
    fs::remove_file(&path).map_err(|source| FetchError::io(&path, source))?;
    Err(FetchError::Corrupt {
        what: format!("the download of {archive}"),
        expected: format!("SHA-256 {}", archive.sha256),
        found: format!("SHA-256 {sha256}"),
    })
}

/// Whether the folder holds this very asset: by its stamp and the sizes of its files, or, for files
/// that were put there by hand, by their hashes.
fn is_present(asset: &Asset, folder: &Path) -> Result<bool, FetchError> {
    let right_size = |path: &Path, bytes| fs::metadata(path).is_ok_and(|m| m.len() == bytes);
    if !asset
        .files
        .iter()
        .all(|file| right_size(&folder.join(&file.path), file.bytes))
    {
        return Ok(false);
    }
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|stamp| stamp == stamp_of(asset)) {
        return Ok(true);
    }
    let right_hash = |file: &crate::catalogue::File| {
        sha256_of_file(&folder.join(&file.path)).is_ok_and(|sha256| sha256 == file.sha256)
    };
    if !asset.trees.is_empty() || !asset.files.iter().all(right_hash) {
        return Ok(false);
    }
    write_stamp(asset, folder)?;
    Ok(true)
}

fn write_stamp(asset: &Asset, folder: &Path) -> Result<(), FetchError> {
    let path = folder.join(STAMP);
    fs::write(&path, stamp_of(asset)).map_err(|source| FetchError::io(&path, source))
}

/// A hash of what makes the files: it changes with any version, member or hash, and not with a description.
fn stamp_of(asset: &Asset) -> String {
    let content = (&asset.archives, &asset.files, &asset.trees);
    sha256(format!("{content:?}").as_bytes())
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
