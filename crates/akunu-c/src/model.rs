//! A model: opened once, used from any thread.

use std::ffi::c_char;

use akunu::{EncodeOptions, Model};

use crate::border::{self, Room};
use crate::handles::{self, Thing};
use crate::options::{self, AkunuOptions};
use crate::status::{AkunuStatus, call};

/// A model on a device. It can be used from several threads at once.
pub struct AkunuModel(());

impl Thing for Model {
    type Opaque = AkunuModel;
    const NAME: &'static str = "model";
}

/// Opens a GGUF file, or a folder with config.json and safetensors; akunu_model_free frees it. The options may be null; it
/// uses device, threads and kv.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_model_open(
    path: *const c_char,
    options: *const AkunuOptions,
    out: *mut *mut AkunuModel,
) -> AkunuStatus {
    call(|| {
        border::check(out, "out")?;
        let path = border::text(path, "path")?;
        let values = options::read(options)?;
        let device = values.device();
        let opened = device.and_then(|device| Model::open_with(&path, device, values.model()));
        border::write(out, handles::give(opened?), "out")
    })
}

/// Sets a smaller model with the same vocabulary whose guesses make answers faster and do not change them. It may be freed
/// afterwards. Null means none.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_options_set_draft(
    options: *mut AkunuOptions,
    draft: *const AkunuModel,
) -> AkunuStatus {
    call(|| {
        let draft = match draft.is_null() {
            true => None,
            false => Some(handles::get::<Model>(draft)?),
        };
        options::set_draft(options, draft)
    })
}

/// Frees a model. Its sessions and chats stay usable, and keep its memory as long as they live. Null is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_model_free(model: *mut AkunuModel) -> AkunuStatus {
    call(|| handles::take::<Model>(model))
}

/// Stores what the model runs on, and a NUL: "cpu: CPU, avx512". `length` always gets the length without the NUL; with
/// `to` null and `capacity` 0 only that is stored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_model_device(
    model: *const AkunuModel,
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
        let (name, description) = handles::get::<Model>(model)?.device();
        room.fill_text(&format!("{name}: {description}"))
    })
}

/// Stores the token ids of a text. `add_special` adds the tokens that the model expects around a text, such as one for the
/// beginning. Text such as "<|im_end|>" is read as its characters, never as a control token. `length` always gets the number
/// of ids; with `to` null and `capacity` 0 only that is stored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_tokenize(
    model: *const AkunuModel,
    text: *const c_char,
    add_special: bool,
    to: *mut u32,
    capacity: usize,
    length: *mut usize,
) -> AkunuStatus {
    let room = Room {
        to,
        capacity,
        length,
    };
    call(|| {
        let model = handles::get::<Model>(model)?;
        let text = border::text(text, "text")?;
        let options = EncodeOptions {
            add_special,
            ..EncodeOptions::default()
        };
        room.fill(&model.tokenizer().encode(&text, options))
    })
}

/// Stores the text of some token ids, without control tokens, and a NUL. `length` always gets the length without the NUL; with
/// `to` null and `capacity` 0 only that is stored.
#[unsafe(no_mangle)]
pub extern "C" fn akunu_detokenize(
    model: *const AkunuModel,
    ids: *const u32,
    n_ids: usize,
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
        let model = handles::get::<Model>(model)?;
        let ids = border::list(ids, n_ids, "ids")?;
        room.fill_text(&model.tokenizer().decode(&ids))
    })
}
