//! Sessions in files: saved, restored, and refused.

use std::path::PathBuf;

use crate::support::{TINY, TinyLlama};
use akunu_engine::{
    EngineError, GenerateOptions, KvFormat, Model, ModelOptions, Sampling, SavedSessionError,
    Session, SessionOptions,
};
use akunu_kernels::twin_device::TwinDevice;
use akunu_types::DType;
use sha2::{Digest, Sha256};

/// A ring of 12 slots: a window of 8 and a chunk of 4.
const WINDOWED: TinyLlama = TinyLlama {
    window: Some(8),
    ..TINY
};

fn load(model: TinyLlama) -> Model {
    let file = model.write();
    let device = Box::new(TwinDevice::new());
    Model::load(&file.path, device).expect("a whole model")
}

fn open(model: &Model, context: u32) -> Session {
    let options = SessionOptions {
        context: Some(context),
        chunk: 4,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

fn load_q8(model: TinyLlama) -> Model {
    let device = Box::new(TwinDevice::new());
    let options = ModelOptions {
        kv: KvFormat::Q8,
        ..ModelOptions::default()
    };
    Model::load_with(&model.write().path, device, options).expect("a whole model")
}

fn prompt(n: u32) -> Vec<u32> {
    (0..n).map(|i| i * 11 % 256).collect()
}

fn go_on(session: &mut Session, n: usize) -> Vec<u32> {
    let options = GenerateOptions {
        max_tokens: n,
        ignore_end: true,
        sampling: Sampling {
            temperature: 0.9,
            repetition_penalty: 1.1,
            seed: 5,
            ..Sampling::greedy()
        },
        ..Default::default()
    };
    let generation = session.generate(options).expect("fine");
    generation.map(|token| token.expect("runs").id).collect()
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("chat.session");
    (folder, path)
}

/// A position in the wrong slot, a key of the wrong head, a lost history or stale logits differ here.
#[test]
fn saved_and_restored_is_the_same_as_never_stopped() {
    let (_folder, path) = place();
    for model in [load(TINY), load(WINDOWED), load_q8(TINY), load_q8(WINDOWED)] {
        for n_before in [0, 5] {
            let mut session = open(&model, 60);
            session.feed(&prompt(21)).expect("fits");
            go_on(&mut session, n_before);
            session.save(&path).expect("disk");
            let mut other = open(&model, 60);
            other.feed(&[1, 2, 3]).expect("fits");
            other.restore(&path).expect("the same model");
            assert_eq!(other.tokens(), session.tokens());
            assert_eq!(go_on(&mut other, 9), go_on(&mut session, 9));
            assert_eq!(
                other.logits().expect("some"),
                session.logits().expect("some")
            );
        }
    }
}

/// The slots of a ring depend on the size of the session; the file does not.
#[test]
fn a_session_of_another_size_takes_it_over() {
    let (_folder, path) = place();
    for kind in [TINY, WINDOWED] {
        let model = load(kind);
        let mut session = open(&model, 60);
        session.feed(&prompt(30)).expect("fits");
        session.save(&path).expect("disk");
        let larger = SessionOptions {
            context: Some(200),
            chunk: 7,
            ..SessionOptions::default()
        };
        let mut larger = model.session(larger).expect("memory");
        larger.restore(&path).expect("it fits");
        assert_eq!(go_on(&mut larger, 6), go_on(&mut session, 6));
        let error = open(&model, 29).restore(&path).expect_err("30 tokens");
        let message = error.to_string();
        assert!(
            message.contains("30 tokens") && message.contains("29"),
            "{message}"
        );
    }
}

/// A restored ring has nothing before its window: a shorter beginning must be computed anew.
#[test]
fn a_restored_ring_is_not_returned_into() {
    let (_folder, path) = place();
    let model = load(WINDOWED);
    let mut session = open(&model, 60);
    session.feed(&prompt(30)).expect("fits");
    session.save(&path).expect("disk");
    let mut restored = open(&model, 60);
    restored.restore(&path).expect("the same model");
    let mut other = prompt(30);
    other[28] = 99;
    let fed = restored.feed(&other).expect("fits");
    assert_eq!((fed.reused, fed.processed), (0, 30));
    let mut fresh = open(&model, 60);
    fresh.feed(&other).expect("fits");
    assert_eq!(
        restored.logits().expect("some"),
        fresh.logits().expect("some")
    );
}

/// Numbers of one format are nothing in the other.
#[test]
fn a_session_of_another_format_is_refused() {
    let (_folder, path) = place();
    let (f16, q8) = (load(TINY), load_q8(TINY));
    for (model, other, formats) in [(&f16, &q8, ["f16", "q8"]), (&q8, &f16, ["q8", "f16"])] {
        let mut session = open(model, 60);
        session.feed(&prompt(10)).expect("fits");
        session.save(&path).expect("disk");
        let error = open(other, 60).restore(&path).expect_err("another format");
        let [found, wanted] = formats;
        let part = format!("values in {found}, and the model was loaded with {wanted}");
        assert!(error.to_string().contains(&part), "{error}");
    }
}

/// Keys in 8 bits are stored less what they have in common, which they were not once: a file from then is refused also where the
/// model wants 8 bits. What f16 means has not changed.
#[test]
fn eight_bits_of_an_earlier_version_are_refused() {
    assert_eq!(KvFormat::ALL.map(KvFormat::code), [0, 2]);
    let (_folder, path) = place();
    for (model, code) in [(load(TINY), 0), (load_q8(TINY), 1)] {
        let mut session = open(&model, 60);
        session.feed(&prompt(10)).expect("fits");
        session.save(&path).expect("disk");
        let mut bytes = std::fs::read(&path).expect("it was written");
        bytes[76..80].copy_from_slice(&u32::to_le_bytes(code));
        std::fs::write(&path, resealed(bytes)).expect("disk");
        let restored = open(&model, 60).restore(&path);
        match model.kv_format() {
            KvFormat::F16 => restored.expect("the same as ever"),
            KvFormat::Q8 => {
                let error = restored.expect_err("an earlier format");
                let is_clear = matches!(
                    error,
                    EngineError::SavedSession {
                        error: SavedSessionError::EarlierFormat,
                        ..
                    }
                );
                assert!(is_clear && error.to_string().contains("earlier"), "{error}");
            }
        }
    }
}

#[test]
fn only_written_positions_are_stored() {
    let (_folder, path) = place();
    let model = load(TINY);
    let mut session = open(&model, 200);
    session.save(&path).expect("an empty session");
    let empty = path.metadata().expect("a file").len();
    session.restore(&path).expect("an empty session");
    assert!(session.tokens().is_empty());
    session.feed(&prompt(10)).expect("fits");
    session.save(&path).expect("it replaces the first");
    // Ten tokens, ten keys and values of 64 halves in two layers.
    let bytes = 10 * 4 + 10 * 2 * 2 * 64 * 2;
    assert_eq!(path.metadata().expect("a file").len() - empty, bytes);
}

/// A file with a checksum that fits.
fn resealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 32;
    let checksum = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&checksum);
    bytes
}

/// Breaks when a damaged file is loaded, or when refusing it changes the session.
#[test]
fn what_is_no_session_of_this_model_is_refused() {
    let (_folder, path) = place();
    let model = load(TINY);
    let mut session = open(&model, 60);
    session.feed(&prompt(10)).expect("fits");
    session.save(&path).expect("disk");
    let good = std::fs::read(&path).expect("it was written");
    let with = |at: usize, word: u32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        bytes
    };
    let mut huge = with(80, u32::MAX);
    huge[84..88].copy_from_slice(&[0xff; 4]);
    let cases = [
        (Vec::new(), "not a saved session"),
        (b"GGUF".repeat(100), "not a saved session"),
        (with(8, 7), "version 7"),
        (with(12, 7), "another model"),
        (with(44, 7), "other adapters"),
        (with(76, 9), "unknown format, 9"),
        (with(76, 1), "q8 as an earlier version stored them"),
        (with(76, 2), "keys and values in q8"),
        (with(80, u32::MAX), "wanted"),
        (huge, "wanted"),
        (with(80, 9), "10 keys for 9 tokens"),
        (with(84, 8), "wanted"),
        (with(88, 99), "checksum"),
        (with(good.len() - 40, 7), "checksum"),
        (with(good.len() - 4, 7), "checksum"),
        (resealed(with(88, 256)), "token 256"),
        (good[..good.len() - 1].to_vec(), "wanted"),
        ([&good[..], &[0]].concat(), "wanted"),
        (good[..80].to_vec(), "not a saved session"),
    ];
    for (bytes, part) in cases {
        std::fs::write(&path, bytes).expect("disk");
        let message = session.restore(&path).expect_err(part).to_string();
        assert!(message.contains(part), "{part}: {message}");
        assert!(message.contains("chat.session"), "{message}");
        assert_eq!(session.tokens(), prompt(10));
    }
    std::fs::write(&path, good).expect("disk");
    session.restore(&path).expect("it was good");
}

#[test]
fn another_models_session_is_refused() {
    let (_folder, path) = place();
    let model = load(TINY);
    let mut session = open(&model, 60);
    session.feed(&prompt(10)).expect("fits");
    session.save(&path).expect("disk");
    let others = [
        WINDOWED,
        TinyLlama {
            dtype: DType::F16,
            ..TINY
        },
    ];
    for other in others {
        let model = load(other);
        let error = open(&model, 60).restore(&path).expect_err("other weights");
        assert!(
            matches!(
                error,
                EngineError::SavedSession {
                    error: SavedSessionError::OtherModel,
                    ..
                }
            ),
            "{error}"
        );
    }
    let again = load(TINY);
    open(&again, 60)
        .restore(&path)
        .expect("the same weights in another file");
}

#[test]
fn a_failed_save_leaves_the_old_file() {
    let (folder, path) = place();
    let model = load(TINY);
    let mut session = open(&model, 60);
    let error = session
        .save(folder.path().join("no/such/folder"))
        .expect_err("no folder");
    assert!(error.to_string().contains("no/such/folder"), "{error}");
    // A folder cannot be replaced by a file.
    std::fs::create_dir(&path).expect("a folder");
    session
        .save(&path)
        .expect_err("there is a folder of that name");
    let left: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .collect();
    assert_eq!(left.len(), 1, "no part file: {left:?}");
}
