//! The models in the folder of models, and removing them.

use crate::catalogue::Catalogue;
use crate::error::FetchError;
use crate::hub;
use crate::install::lock_of;
use crate::lock::Lock;
use crate::model::ModelName;
use crate::staging;
use crate::tool::{scratch_of, size_of};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of files that came from a hub: `hub/<owner>/<repository>/<path>`.
const HUB: &str = "hub";

/// A model in the folder, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name: of the catalogue, or `hf:owner/repository/file`.
    pub name: String,
    /// Its file; its folder, where that holds several or is not complete.
    pub path: PathBuf,
    /// Its size on the disk.
    pub bytes: u64,
    /// Whether it is complete; otherwise its download was interrupted and can be continued.
    pub is_complete: bool,
}

/// Everything in the folder of models, by name.
pub fn stored(root: &Path) -> Result<Vec<Stored>, FetchError> {
    let catalogue = Catalogue::embedded()?;
    let mut found = Vec::new();
    for (name, path) in entries(root)? {
        if name == HUB {
            let first = found.len();
            walk_hub(&path, "hf:", &mut found)?;
            for model in &mut found[first..] {
                if let Ok(file) = model.name.parse() {
                    model.name = catalogue.name_of(&file);
                }
            }
        } else if let Some(asset) = staging::asset_of(&name) {
            found.push(Stored::new(asset, &path, false));
        } else if path.is_dir() && !name.starts_with('.') {
            found.push(Stored::new(&name, &main_file(&path)?, true));
        }
    }
    found.sort_by(|a, b| (&a.name, b.is_complete).cmp(&(&b.name, a.is_complete)));
    Ok(found)
}

/// The name under which [`stored`] lists what a person calls `name`: the catalogue's for a file of a hub that has one.
pub fn listed_as(name: &str) -> Result<String, FetchError> {
    match name.parse() {
        Ok(ModelName::Hub(file)) => Ok(Catalogue::embedded()?.name_of(&file)),
        _ => Ok(name.to_string()),
    }
}

/// Removes the model with this name, complete or not, and returns the freed bytes.
pub fn remove(name: &str, root: &Path) -> Result<u64, FetchError> {
    let listed = listed_as(name)?;
    let lock_path = match name.parse() {
        Ok(ModelName::Hub(file)) => hub::lock_of(&file.path_below(&root.join(HUB))),
        _ => lock_of(root, name),
    };
    let lock = Lock::try_acquire(&lock_path)?;
    let lock = lock.ok_or_else(|| FetchError::Busy(name.to_string()))?;
    let mut freed = 0;
    let models = stored(root)?.into_iter();
    for model in models.filter(|model| model.name == listed) {
        freed += remove_one(&model, root)?;
    }
    drop(lock);
    remove_empty_above(&lock_path, root);
    Ok(freed)
}

fn remove_one(model: &Stored, root: &Path) -> Result<u64, FetchError> {
    let failed = |source| FetchError::io(&model.path, source);
    if model.path.starts_with(root.join(HUB)) {
        let freed = size_of(&model.path);
        fs::remove_file(&model.path).map_err(failed)?;
        // Only a process that was killed has left one.
        let _ = fs::remove_dir_all(scratch_of(&model.path));
        return Ok(freed);
    }
    let folder = if model.is_complete {
        root.join(&model.name)
    } else {
        root.join(staging::folder_name(&model.name))
    };
    let freed = size_of(&folder);
    fs::remove_dir_all(&folder).map_err(failed)?;
    Ok(freed)
}

/// Removes the folders above a removed file that hold nothing else.
fn remove_empty_above(path: &Path, root: &Path) {
    let above = path.ancestors().skip(1);
    for folder in above.take_while(|folder| *folder != root) {
        // A folder that holds more stays.
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

impl Stored {
    fn new(name: &str, path: &Path, is_complete: bool) -> Stored {
        // A file may be a link to one that lies elsewhere.
        let bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
        let bytes = if path.is_dir() { size_of(path) } else { bytes };
        Stored {
            name: name.to_string(),
            path: path.to_path_buf(),
            bytes,
            is_complete,
        }
    }
}

/// The only visible file of a folder, or else the folder.
fn main_file(folder: &Path) -> Result<PathBuf, FetchError> {
    let mut visible = entries(folder)?;
    visible.retain(|(name, _)| !name.starts_with('.'));
    Ok(match &visible[..] {
        [(_, path)] if path.is_file() => path.clone(),
        _ => folder.to_path_buf(),
    })
}

/// Files below the hub's folder, complete or in part.
fn walk_hub(folder: &Path, above: &str, found: &mut Vec<Stored>) -> Result<(), FetchError> {
    for (name, path) in entries(folder)? {
        if path.is_dir() {
            walk_hub(&path, &format!("{above}{name}/"), found)?;
        } else if !name.starts_with('.') {
            let whole = hub::whole_of(&name);
            let full_name = format!("{above}{}", whole.unwrap_or(&name));
            found.push(Stored::new(&full_name, &path, whole.is_none()));
        }
    }
    Ok(())
}

/// Names and paths in a folder; nothing when there is no folder.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>, FetchError> {
    let failed = |source| FetchError::io(folder, source);
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(failed)?,
    };
    let pair = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.map_err(failed)?;
        Ok((
            entry.file_name().to_string_lossy().into_owned(),
            entry.path(),
        ))
    };
    listed.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a model of the catalogue, a part of another, and a file and a part of a hub.
    fn folder() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary folder");
        for (path, text) in [
            ("tiny/model.gguf", "12345"),
            ("tiny/.catalogue-entry.sha256", "stamp"),
            (".other.partial/files/model.gguf", "123"),
            (".other.lock", ""),
            ("hub/me/some/model.gguf", "1234567"),
            ("hub/me/some/deep/b.gguf.0123456789abcdef.part", "12"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        root
    }

    fn names(root: &Path) -> Vec<(String, u64, bool)> {
        let all = stored(root).expect("a folder").into_iter();
        all.map(|model| (model.name, model.bytes, model.is_complete))
            .collect()
    }

    #[test]
    fn everything_is_found_under_the_name_it_was_asked_for_by() {
        let root = folder();
        let expected = [
            ("hf:me/some/deep/b.gguf", 2, false),
            ("hf:me/some/model.gguf", 7, true),
            ("other", 3, false),
            ("tiny", 5, true),
        ];
        assert_eq!(
            names(root.path()),
            expected.map(|(name, bytes, whole)| (name.to_string(), bytes, whole))
        );
        assert!(names(&root.path().join("nowhere")).is_empty());
    }

    /// Fails if something else goes too, or if an empty folder stays.
    #[test]
    fn what_is_removed_is_gone_and_nothing_else() {
        let root = folder();
        let gone = |name: &str| remove(name, root.path()).expect("removed");
        assert_eq!(gone("tiny"), 10, "with its stamp");
        assert_eq!(gone("hf:me/some/deep/b.gguf"), 2);
        assert_eq!(names(root.path()).len(), 2);
        assert!(!root.path().join("hub/me/some/deep").exists());
        assert_eq!(gone("hf:me/some/model.gguf"), 7);
        assert_eq!(gone("other"), 3);
        let left = fs::read_dir(root.path()).expect("a folder").count();
        assert_eq!(left, 0, "no folder of the hub, no lock");
    }

    /// Fails if a model of a hub is listed or removed under one of its two names only.
    #[test]
    fn a_file_of_a_hub_has_the_catalogues_name_where_there_is_one() {
        let long = "hf:Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf";
        for name in ["qwen3-4b", long] {
            let root = folder();
            let whole = root
                .path()
                .join("hub/Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf");
            fs::create_dir_all(whole.parent().expect("a folder")).expect("made");
            fs::write(&whole, "123456").expect("written");
            let part = whole.with_file_name("Qwen3-4B-Q4_K_M.gguf.0123456789abcdef.part");
            fs::write(part, "12").expect("written");
            let listed = names(root.path());
            let is_listed = |bytes, whole| listed.contains(&("qwen3-4b".into(), bytes, whole));
            assert!(is_listed(6, true) && is_listed(2, false), "{listed:?}");
            assert_eq!(remove(name, root.path()).expect("removed"), 8);
            assert_eq!(names(root.path()).len(), 4, "nothing else");
            assert!(!root.path().join("hub/Qwen").exists());
        }
    }

    #[test]
    fn what_another_process_fetches_is_not_removed() {
        let root = folder();
        let _held = Lock::try_acquire(&root.path().join(".other.lock")).expect("a lock");
        let refused = remove("other", root.path()).expect_err("busy");
        assert!(
            refused.to_string().contains("is fetching other"),
            "{refused}"
        );
        assert_eq!(names(root.path()).len(), 4);
    }
}
