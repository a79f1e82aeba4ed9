//! Taking files out of archives: zip (wheels) and tar.gz (source distributions, npm packages).

use crate::catalogue::{File, Tree};
use crate::digest::sha256_of_file;
use crate::error::FetchError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Component, Path};

/// How much of a file is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filled {
    /// Members that were appended.
    pub n_members: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Appends to a file those of its members that come next and lie in this archive.
pub fn append(
    archive: &Path,
    file: &File,
    filled: &mut Filled,
    folder: &Path,
) -> Result<(), FetchError> {
    let path = folder.join(&file.path);
    let mut out = open_at(&path, filled.bytes)?;
    while let Some(member) = file.members.get(filled.n_members) {
        let cap = file.bytes.saturating_sub(filled.bytes);
        let Some(bytes) = copy_member(archive, member, cap, &mut out)? else {
            break;
        };
        filled.n_members += 1;
        filled.bytes += bytes;
    }
    Ok(())
}

/// Whether a file has all its members, its size and its hash.
pub fn check(file: &File, filled: &Filled, folder: &Path) -> Result<(), FetchError> {
    if let Some(missing) = file.members.get(filled.n_members) {
        return Err(FetchError::NoMember(missing.clone()));
    }
    let path = folder.join(&file.path);
    let sha256 = sha256_of_file(&path).map_err(|source| FetchError::io(&path, source))?;
    let bytes = filled.bytes;
    if bytes != file.bytes || sha256 != file.sha256 {
        return Err(FetchError::Corrupt {
            what: file.path.clone(),
            expected: format!("{} bytes with SHA-256 {}", file.bytes, file.sha256),
            found: format!("{bytes} bytes with SHA-256 {sha256}"),
        });
    }
    Ok(())
}

/// How much of a folder was taken out so far.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    n_files: u64,
    bytes: u64,
}

/// Takes what an archive, a tar.gz, has of a folder, and counts it.
pub fn tree(
    archive: &Path,
    tree: &Tree,
    counted: &mut Counted,
    folder: &Path,
) -> Result<(), FetchError> {
    each_tar_member(archive, |name, reader| {
        let Some(rest) = name
            .strip_prefix(&tree.member)
            .filter(|rest| is_visible(rest))
        else {
            return Ok(());
        };
        let path = folder.join(inside(rest)?);
        let mut out = BufWriter::new(create(&path)?);
        let left = tree.bytes.saturating_sub(counted.bytes).saturating_add(1);
        let copied =
            io::copy(&mut reader.take(left), &mut out).and_then(|n| out.flush().map(|()| n));
        counted.bytes += copied.map_err(|source| FetchError::io(&path, source))?;
        counted.n_files += 1;
        Ok(())
    })
}

/// Whether a folder is whole.
pub fn check_tree(tree: &Tree, counted: &Counted) -> Result<(), FetchError> {
    let Counted { n_files, bytes } = *counted;
    if (n_files, bytes) == (tree.n_files, tree.bytes) {
        return Ok(());
    }
    Err(FetchError::Corrupt {
        what: tree.member.clone(),
        expected: format!("{} files of {} bytes", tree.n_files, tree.bytes),
        found: format!("{n_files} files of {bytes} bytes"),
    })
}

/// Appends a member to `out`, at most a byte more than `cap`, and returns its bytes; `None` when the
/// archive lacks it.
fn copy_member(
    archive: &Path,
    member: &str,
    cap: u64,
    out: &mut impl io::Write,
) -> Result<Option<u64>, FetchError> {
    let cap = cap.saturating_add(1);
    let failed = |source| FetchError::io(archive, source);
    if archive
        .extension()
        .is_some_and(|extension| extension == "whl")
    {
        let reader = BufReader::new(fs::File::open(archive).map_err(failed)?);
        let mut zip = zip::ZipArchive::new(reader).map_err(|e| failed(io::Error::other(e)))?;
        return match zip.by_name(member) {
            Ok(file) => io::copy(&mut file.take(cap), out).map_err(failed).map(Some),
            Err(zip::result::ZipError::FileNotFound) => Ok(None),
            Err(other) => Err(failed(io::Error::other(other))),
        };
    }
    let mut found = None;
    each_tar_member(archive, |name, reader| {
        if name == member && found.is_none() {
            found = Some(io::copy(&mut reader.take(cap), out).map_err(failed)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Calls `visit` with the name and the content of each file of a tar.gz.
fn each_tar_member(
    archive: &Path,
    mut visit: impl FnMut(&str, &mut dyn Read) -> Result<(), FetchError>,
) -> Result<(), FetchError> {
    let failed = |source| FetchError::io(archive, source);
    let gz = flate2::read::GzDecoder::new(fs::File::open(archive).map_err(failed)?);
    let mut tar = tar::Archive::new(BufReader::new(gz));
    for entry in tar.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let name = entry.path().map_err(failed)?.to_string_lossy().into_owned();
        if entry.header().entry_type().is_file() {
            visit(&name, &mut entry)?;
        }
    }
    Ok(())
}

/// Opens a file to write on from this byte; what lies behind it goes.
fn open_at(path: &Path, at: u64) -> Result<fs::File, FetchError> {
    if at == 0 {
        return create(path);
    }
    let failed = |source| FetchError::io(path, source);
    let mut file = fs::File::options().write(true).open(path).map_err(failed)?;
    file.set_len(at).map_err(failed)?;
    file.seek(io::SeekFrom::Start(at)).map_err(failed)?;
    Ok(file)
}

fn create(path: &Path) -> Result<fs::File, FetchError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| FetchError::io(folder, source))?;
    }
    fs::File::create(path).map_err(|source| FetchError::io(path, source))
}

fn is_visible(name: &str) -> bool {
    !name.is_empty()
        && !name
            .split('/')
            .any(|part| part.starts_with('.') && part != "..")
}

/// A relative path without `..`: an archive may not write outside its folder.
fn inside(name: &str) -> Result<&Path, FetchError> {
    let path = Path::new(name);
    if path
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        return Ok(path);
    }
    Err(FetchError::Escapes(name.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        assert!(inside("templates/x.jinja").is_ok());
        for bad in ["../x", "a/../../x", "/etc/x"] {
            let refused = inside(bad).expect_err("leaves the folder");
            assert!(refused.to_string().contains(bad), "{refused}");
        }
    }

    #[test]
    fn hidden_files_are_left_out() {
        assert!(is_visible("templates/x.jinja"));
        assert!(!is_visible(".editorconfig"));
        assert!(!is_visible("a/.hidden/b"));
        assert!(
            is_visible("../x"),
            "reaches the check that refuses it by name"
        );
    }
}
