//! Files that appear under their name when they are complete.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Links that are followed until a path counts as a circle of them; Linux follows as many.
const MAX_LINKS: usize = 40;

/// A file that is being written beside its place, and put there when it is complete.
///
/// A link is followed: the file that it leads to is replaced, and the link stays. A device, a pipe or a folder is not
/// replaced. The file keeps the permissions of the one that it replaces, or has those of any new file. Dropped before
/// [`WholeFile::finish`], it leaves nothing behind.
///
/// ```
/// use akunu_gguf::WholeFile;
/// use std::io::Write;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("numbers.txt");
/// let mut file = WholeFile::create(&path)?;
/// file.write_all(b"1 2 3")?;
/// assert!(!path.exists());
/// file.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"1 2 3");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WholeFile {
    out: BufWriter<NamedTempFile>,
    /// Where it belongs: no link.
    place: PathBuf,
}

impl WholeFile {
    /// Begins a file that will be at `path`.
    pub fn create(path: impl AsRef<Path>) -> io::Result<WholeFile> {
        let path = path.as_ref();
        let replaced = permissions_of_file(path)?;
        let place = followed(path)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".akunu-").suffix(".partial");
        // Not `tempfile_in`: its errors name the temporary file, and its files are for the owner only.
        let open = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let file: NamedTempFile<File> = builder.make_in(folder_of(&place), open)?;
        if let Some(permissions) = replaced {
            file.as_file().set_permissions(permissions)?;
        }
        Ok(WholeFile {
            out: BufWriter::new(file),
            place,
        })
    }

    /// Whether a file could be written at `path`, before the work that it is to hold.
    pub fn check(path: impl AsRef<Path>) -> io::Result<()> {
        WholeFile::create(path).map(drop)
    }

    /// Gives the complete file its name, in place of a file that had it before.
    pub fn finish(self) -> io::Result<()> {
        let file = self.out.into_inner().map_err(|error| error.into_error())?;
        file.as_file().sync_all()?;
        file.persist(&self.place).map_err(|error| error.error)?;
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The permissions of the file that is replaced, if there is one; an error if it is something else than a file.
fn permissions_of_file(path: &Path) -> io::Result<Option<Permissions>> {
    let Ok(about) = fs::metadata(path) else {
        return Ok(None);
    };
    if about.is_file() {
        return Ok(Some(about.permissions()));
    }
    let what = if about.is_dir() {
        "it is a folder; give the name of a file"
    } else {
        "it is a device or a pipe, which is not replaced; give the name of a file"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

/// The path that links lead to; what is there need not exist.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(to) => path = folder_of(&path).join(to),
            // It is no link, or not there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "its links lead in a circle",
    ))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let mut file = WholeFile::create(path)?;
        file.write_all(text.as_bytes())?;
        file.finish()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path)
            .expect("it is there")
            .permissions()
            .mode()
            & 0o777
    }

    /// Fails when a link is replaced instead of the file that it leads to, or one to nowhere makes no file.
    #[test]
    fn links_are_followed_and_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (inner, link) = (folder.path().join("inner"), folder.path().join("link"));
        let (file, second) = (inner.join("file"), inner.join("second"));
        fs::create_dir(&inner).unwrap();
        symlink("inner/second", &link).unwrap();
        symlink("file", &second).unwrap();
        for text in ["new", "again"] {
            write(&link, text).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert!(fs::symlink_metadata(&second).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 2);
        let circle = folder.path().join("circle");
        symlink("circle", &circle).unwrap();
        let error = write(&circle, "").unwrap_err();
        assert!(error.to_string().contains("circle"), "{error}");
    }

    /// Fails when something that is no file is replaced by one.
    #[test]
    fn what_is_no_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, link) = (folder.path().join("socket"), folder.path().join("link"));
        let _listening = UnixListener::bind(&socket).unwrap();
        symlink(&socket, &link).unwrap();
        for path in [&socket, &link] {
            let error = write(path, "x").unwrap_err();
            assert!(error.to_string().contains("a device or a pipe"), "{error}");
        }
        assert!(!fs::metadata(&socket).unwrap().is_file());
        let error = write(folder.path(), "x").unwrap_err();
        assert!(error.to_string().contains("it is a folder"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    /// Fails when a new file has other permissions than any new file, or a replaced one loses its own.
    #[test]
    fn permissions_are_those_of_any_file_or_of_the_replaced_one() {
        let folder = tempfile::tempdir().unwrap();
        let (usual, path) = (folder.path().join("usual"), folder.path().join("file"));
        fs::write(&usual, "").unwrap();
        write(&path, "new").unwrap();
        assert_eq!(mode(&path), mode(&usual));
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        write(&path, "replaced").unwrap();
        assert_eq!(mode(&path), 0o640);
    }

    /// Fails when an error names the temporary file, or a check leaves it behind.
    #[test]
    fn places_that_do_not_exist_are_told_before_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let error = WholeFile::check(folder.path().join("none/file")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!error.to_string().contains("akunu"), "{error}");
        WholeFile::check(folder.path().join("file")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
