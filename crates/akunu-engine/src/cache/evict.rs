//! Making room in a folder: the files that were not used longest go first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A file of the cache.
struct Found {
    used: SystemTime,
    bytes: u64,
    path: PathBuf,
}

/// Bytes of all files in the folders of all models.
pub(super) fn total(folder: &Path) -> u64 {
    files(folder).iter().map(|file| file.bytes).sum()
}

/// Removes files until they have at most so many bytes; returns how many are left. Files that another program removes at the same
/// time are gone, too.
pub(super) fn evict(folder: &Path, most: u64) -> u64 {
    let mut files = files(folder);
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    files.sort_by_key(|file| file.used);
    for file in files {
        if total <= most {
            break;
        }
        let is_gone = fs::remove_file(&file.path).is_ok() || !file.path.exists();
        total -= if is_gone { file.bytes } else { 0 };
    }
    total
}

/// All files of folders that are a cache's.
fn files(folder: &Path) -> Vec<Found> {
    let of_folder = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let is_ours = |name: &str| {
        let (name, end) = name.split_once('.').unwrap_or_default();
        let is_hex = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex && (end == "s" || end.parse::<u32>().is_ok())
    };
    let mut found = Vec::new();
    for model in of_folder(folder) {
        for file in of_folder(&model.path()) {
            let Ok(data) = file.metadata() else { continue };
            if data.is_file() && is_ours(&file.file_name().to_string_lossy()) {
                found.push(Found {
                    used: data.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    bytes: data.len(),
                    path: file.path(),
                });
            }
        }
    }
    found
}
