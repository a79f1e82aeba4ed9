//! Bringing one asset into the folder of assets: fetch, check, unpack, rename.
//!
//! Everything happens in a temporary folder beside the final one, which is removed whatever happens;
//! the last step is a rename. So a folder under an asset's name is always complete, and a half-done
//! download is never resumed. A stamp file inside holds the hash of the asset's catalogue entry: the
//! same stamp means nothing to do.

use crate::catalogue::{Archive, Asset};
use crate::digest::{sha256, sha256_of_file};
use crate::error::FetchError;
use crate::registry::Source;
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

/// How to install: from where, told to whom, and whether in any case.
pub struct Order<'a> {
    /// Where the parts come from.
    pub source: &'a dyn Source,
    /// Who hears of it.
    pub watch: &'a dyn Watch,
    /// Download again what is there already.
    pub force: bool,
}

/// Makes sure that `root/<name>` holds the asset.
pub fn install(asset: &Asset, root: &Path, order: &Order) -> Result<Installed, FetchError> {
    let folder = root.join(&asset.name);
    if !order.force && is_present(asset, &folder)? {
        return Ok(Installed::Present);
    }
    fs::create_dir_all(root).map_err(|source| FetchError::io(root, source))?;
    let staging = tempfile::Builder::new()
        .prefix(&format!(".{}-", asset.name))
        .tempdir_in(root)
        .map_err(|source| FetchError::io(root, source))?;
    let unpacked = staging.path().join("unpacked");
    if !files_from_hub(asset, &unpacked, order)? {
        let mut archives = Vec::with_capacity(asset.archives.len());
        for (n, archive) in asset.archives.iter().enumerate() {
            let downloads = staging.path().join(format!("archive-{n}"));
            archives.push(download(asset, archive, &downloads, order)?);
        }
        for file in &asset.files {
            unpack::file(&archives, file, &unpacked)?;
        }
        for tree in &asset.trees {
            unpack::tree(&archives, tree, &unpacked)?;
        }
    }
    write_stamp(asset, &unpacked)?;
    replace(&folder, &unpacked, &staging.path().join("old"))?;
    Ok(Installed::Fetched)
}

/// Brings all files from a hub; `false` when one of them is not there.
fn files_from_hub(asset: &Asset, unpacked: &Path, order: &Order) -> Result<bool, FetchError> {
    if !asset.trees.is_empty() {
        return Ok(false);
    }
    for file in &asset.files {
        let path = unpacked.join(&file.path);
        if !order.source.file(file, &path, order.watch)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Downloads one archive and checks it; a wrong one is removed.
fn download(
    asset: &Asset,
    archive: &Archive,
    folder: &Path,
    order: &Order,
) -> Result<PathBuf, FetchError> {
    fs::create_dir_all(folder).map_err(|source| FetchError::io(folder, source))?;
    let what = format!("{}: downloading {archive}", asset.name);
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

/// Puts `new` in the place of `folder`; what was there goes to `old`.
fn replace(folder: &Path, new: &Path, old: &Path) -> Result<(), FetchError> {
    if folder.exists() {
        fs::rename(folder, old).map_err(|source| FetchError::io(folder, source))?;
    }
    fs::rename(new, folder).map_err(|source| FetchError::io(folder, source))
}

fn write_stamp(asset: &Asset, folder: &Path) -> Result<(), FetchError> {
    let path = folder.join(STAMP);
    fs::write(&path, stamp_of(asset)).map_err(|source| FetchError::io(&path, source))
}

/// The hash of the asset's entry: it changes with any version, member or hash.
fn stamp_of(asset: &Asset) -> String {
    sha256(format!("{asset:?}").as_bytes())
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
