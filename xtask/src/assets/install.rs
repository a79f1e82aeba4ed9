//! Bringing one asset into the folder of assets: fetch, check, unpack, rename.
//!
//! Everything happens in a temporary folder beside the final one, which is removed whatever happens;
//! the last step is a rename. So a folder under an asset's name is always complete, and a half-done
//! download is never resumed. A stamp file inside holds the hash of the asset's catalogue entry: the
//! same stamp means nothing to do.

use super::AssetError;
use super::catalogue::{Archive, Asset};
use super::digest::{sha256, sha256_of_file};
use super::fetch::Fetch;
use super::progress::Progress;
use super::unpack;
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

/// Makes sure that `root/<name>` holds the asset; with `force`, downloads it again in any case.
pub fn install(
    asset: &Asset,
    root: &Path,
    force: bool,
    fetcher: &dyn Fetch,
) -> Result<Installed, AssetError> {
    let folder = root.join(&asset.name);
    if !force && is_present(asset, &folder)? {
        return Ok(Installed::Present);
    }
    fs::create_dir_all(root).map_err(|source| AssetError::io(root, source))?;
    let staging = tempfile::Builder::new()
        .prefix(&format!(".{}-", asset.name))
        .tempdir_in(root)
        .map_err(|source| AssetError::io(root, source))?;

    let mut archives = Vec::with_capacity(asset.archives.len());
    for (n, archive) in asset.archives.iter().enumerate() {
        let downloads = staging.path().join(format!("archive-{n}"));
        archives.push(download(asset, archive, &downloads, fetcher)?);
    }
    let unpacked = staging.path().join("unpacked");
    for file in &asset.files {
        unpack::file(&archives, file, &unpacked)?;
    }
    for tree in &asset.trees {
        unpack::tree(&archives, tree, &unpacked)?;
    }
    write_stamp(asset, &unpacked)?;
    replace(&folder, &unpacked, &staging.path().join("old"))?;
    Ok(Installed::Fetched)
}

/// Downloads one archive and checks it; a wrong one is removed.
fn download(
    asset: &Asset,
    archive: &Archive,
    folder: &Path,
    fetcher: &dyn Fetch,
) -> Result<PathBuf, AssetError> {
    fs::create_dir_all(folder).map_err(|source| AssetError::io(folder, source))?;
    let progress = Progress::start(&asset.name, archive);
    let path = fetcher.fetch(archive, folder, &|bytes| progress.at(bytes))?;
    progress.finish();
    let sha256 = sha256_of_file(&path).map_err(|source| AssetError::io(&path, source))?;
    if sha256 == archive.sha256 {
        return Ok(path);
    }
    fs::remove_file(&path).map_err(|source| AssetError::io(&path, source))?;
    Err(AssetError::Corrupt {
        what: format!("the download of {archive}"),
        expected: format!("SHA-256 {}", archive.sha256),
        found: format!("SHA-256 {sha256}"),
    })
}

/// Whether the folder holds this very asset: by its stamp and the sizes of its files, or, for files
/// that were put there by hand, by their hashes.
fn is_present(asset: &Asset, folder: &Path) -> Result<bool, AssetError> {
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
    let right_hash = |file: &super::catalogue::File| {
        sha256_of_file(&folder.join(&file.path)).is_ok_and(|sha256| sha256 == file.sha256)
    };
    if !asset.trees.is_empty() || !asset.files.iter().all(right_hash) {
        return Ok(false);
    }
    write_stamp(asset, folder)?;
    Ok(true)
}

/// Puts `new` in the place of `folder`; what was there goes to `old`.
fn replace(folder: &Path, new: &Path, old: &Path) -> Result<(), AssetError> {
    if folder.exists() {
        fs::rename(folder, old).map_err(|source| AssetError::io(folder, source))?;
    }
    fs::rename(new, folder).map_err(|source| AssetError::io(folder, source))
}

fn write_stamp(asset: &Asset, folder: &Path) -> Result<(), AssetError> {
    let path = folder.join(STAMP);
    fs::write(&path, stamp_of(asset)).map_err(|source| AssetError::io(&path, source))
}

/// The hash of the asset's entry: it changes with any version, member or hash.
fn stamp_of(asset: &Asset) -> String {
    sha256(format!("{asset:?}").as_bytes())
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
