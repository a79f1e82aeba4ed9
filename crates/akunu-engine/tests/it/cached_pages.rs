//! Pages and states in a folder: found again by another process, and never a reason for an answer to fail or to change.

use std::fs;
use std::path::{Path, PathBuf};

use akunu_engine::{CacheOptions, KvFormat, Model, ModelOptions, Session, SessionOptions};
use akunu_kernels::case::nmse;

use crate::support::TinyModel;
use crate::support::exact_cpu::exact_cpu;
use crate::support::fixture::Fixture;

/// Dense, with windows, with states and attention, with states alone.
const MODELS: [&str; 4] = ["llama3", "gemma3", "qwen35", "mamba2"];
const PROMPT: u32 = 330;

fn file(name: &str) -> TinyModel {
    TinyModel::of(&Fixture::read("transformers", name))
}

fn load(file: &TinyModel) -> Model {
    Model::load(&file.path, exact_cpu()).expect("a whole model")
}

/// A model that keeps its pages in a folder, as a new process would open it.
fn cached(file: &TinyModel, folder: &Path) -> Model {
    let model = load(file);
    model.use_cache(&options(folder));
    model
}

fn options(folder: &Path) -> CacheOptions {
    CacheOptions {
        folder: folder.to_path_buf(),
        ..CacheOptions::default()
    }
}

fn open(model: &Model) -> Session {
    let options = SessionOptions {
        context: Some(512),
        chunk: 96,
        ..SessionOptions::default()
    };
    model.session(options).expect("memory")
}

fn prompt(n: u32) -> Vec<u32> {
    (0..n).map(|i| (i * 29 + i / 7 * 3) % 256).collect()
}

/// Tokens that a session did not read itself, and its logits.
fn read(model: &Model) -> (usize, Vec<f32>) {
    let mut session = open(model);
    let fed = session.feed(&prompt(PROMPT)).expect("fits");
    (fed.reused, session.logits().expect("some"))
}

/// A folder with the pages of a prompt, and the logits after it.
fn written(file: &TinyModel, folder: &Path) -> Vec<f32> {
    let model = cached(file, folder);
    let (reused, logits) = read(&model);
    assert_eq!(reused, 0);
    model.finish_cache().expect("the device reads");
    assert_eq!(model.take_cache_fault(), None);
    logits
}

/// All files of a folder's models.
fn files(folder: &Path) -> Vec<PathBuf> {
    let of = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let mut all: Vec<PathBuf> = of(folder).iter().flat_map(|model| of(model)).collect();
    all.sort();
    all
}

/// Rows that are read in other pieces are rounded differently, which may put a key on the other side of a half: some 1e-8 each.
fn assert_alike(found: &[f32], wanted: &[f32], what: &str) {
    let error = nmse(found, wanted);
    assert!(error < 1e-7, "{what}: {error:e}");
}

#[test]
fn a_prompt_is_found_again_by_another_process() {
    for name in MODELS {
        let (file, folder) = (file(name), tempfile::tempdir().expect("a folder"));
        let wanted = written(&file, folder.path());
        let (reused, found) = read(&cached(&file, folder.path()));
        // The last page's end, or with states the last one that was kept.
        assert!((256..=320).contains(&reused), "{name}: {reused}");
        assert_alike(&found, &wanted, name);
    }
}

/// Its files hold conversations.
#[cfg(unix)]
#[test]
fn only_its_owner_may_read_a_folder() {
    use std::os::unix::fs::PermissionsExt;
    let (file, folder) = (file("llama3"), tempfile::tempdir().expect("a folder"));
    let folder = folder.path().join("made");
    written(&file, &folder);
    for made in [
        folder.clone(),
        files(&folder)[0].parent().expect("a model's").to_path_buf(),
    ] {
        let mode = fs::metadata(&made).expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", made.display());
    }
}

/// Several models and formats share a folder, and none takes another's pages.
#[test]
fn other_models_and_formats_find_nothing() {
    let (llama, folder) = (file("llama3"), tempfile::tempdir().expect("a folder"));
    let wanted = written(&llama, folder.path());
    assert_eq!(read(&cached(&file("mistral"), folder.path())).0, 0);
    let q8 = ModelOptions {
        kv: KvFormat::Q8,
        ..ModelOptions::default()
    };
    let model = Model::load_with(&llama.path, exact_cpu(), q8).expect("a whole model");
    model.use_cache(&options(folder.path()));
    assert_eq!(read(&model).0, 0);
    let (reused, found) = read(&cached(&llama, folder.path()));
    assert_eq!(reused, 320);
    assert_alike(&found, &wanted, "llama3");
}

/// A file that cannot be used gives a sentence, and its tokens are read again; the other files are used.
#[test]
fn damaged_files_are_told_and_not_used() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 5] = [
        ("it is damaged", |bytes| bytes[200] ^= 1),
        ("bytes where", |bytes| bytes.truncate(100)),
        ("bytes where", Vec::clear),
        ("another version", |bytes| bytes[8] = 99),
        ("another model", |bytes| bytes[20] ^= 1),
    ];
    for (name, why_at) in [("llama3", 2), ("qwen35", 0)] {
        let file = file(name);
        for (why, damage) in damages {
            let folder = tempfile::tempdir().expect("a folder");
            let wanted = written(&file, folder.path());
            let all = files(folder.path());
            let mut bytes = fs::read(&all[why_at]).expect("there");
            damage(&mut bytes);
            fs::write(&all[why_at], bytes).expect("written");
            let model = cached(&file, folder.path());
            let (reused, found) = read(&model);
            assert_alike(&found, &wanted, why);
            assert!(reused < 320 || name == "qwen35", "{name}: {reused}");
            if let Some(told) = model.take_cache_fault() {
                assert!(told.contains(why), "{told}");
                model.finish_cache().expect("the device reads");
                let (again, _) = read(&cached(&file, folder.path()));
                assert!(
                    again >= 256,
                    "{name}, {why}: {again} after it was written again"
                );
            } else {
                assert!(name == "qwen35", "{name}, {why}: no sentence");
            }
        }
    }
}

/// A folder that cannot be made, or that has gone.
#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let (file, folder) = (file("llama3"), tempfile::tempdir().expect("a folder"));
    let taken = folder.path().join("taken");
    fs::write(&taken, "a file").expect("written");
    let model = cached(&file, &taken);
    let told = model.take_cache_fault().expect("told");
    assert!(told.contains("cannot be written"), "{told}");
    assert_eq!(read(&model).0, 0);
    model.finish_cache().expect("nothing to do");
    let gone = folder.path().join("gone");
    let model = cached(&file, &gone);
    fs::remove_dir_all(&gone).expect("removed");
    read(&model);
    model.finish_cache().expect("the device reads");
    let told = model.take_cache_fault().expect("told");
    assert!(told.contains("nothing more is kept there"), "{told}");
    assert_eq!(model.take_cache_fault(), None, "only once");
}

/// Files of other processes count, too.
#[test]
fn a_folder_stays_below_its_size() {
    let (file, folder) = (file("llama3"), tempfile::tempdir().expect("a folder"));
    written(&file, folder.path());
    let size = |path: &PathBuf| fs::metadata(path).expect("there").len();
    let whole: u64 = files(folder.path()).iter().map(size).sum();
    let model = load(&file);
    model.use_cache(&CacheOptions {
        max_bytes: whole / 2,
        ..options(folder.path())
    });
    let mut session = open(&model);
    session.feed(&prompt(200)[7..]).expect("fits");
    model.finish_cache().expect("the device reads");
    let left: u64 = files(folder.path()).iter().map(size).sum();
    assert!(left > 0 && left <= whole / 2, "{left} of {whole}");
    assert_eq!(model.take_cache_fault(), None);
}

/// Two processes with one folder, and what a third has left that was killed.
#[test]
fn a_folder_may_be_shared() {
    let (file, folder) = (file("qwen35"), tempfile::tempdir().expect("a folder"));
    let models = [(); 2].map(|()| cached(&file, folder.path()));
    let wanted = read(&models[0]).1;
    assert_alike(&read(&models[1]).1, &wanted, "both");
    for model in &models {
        model.finish_cache().expect("the device reads");
    }
    let model_folder = files(folder.path())[0].parent().expect("one").to_path_buf();
    let left = model_folder.join(".0123.s.0123456789abcdef.4000000000.akunu-part");
    fs::write(&left, "half").expect("written");
    let (reused, found) = read(&cached(&file, folder.path()));
    assert!(reused >= 256, "{reused}");
    assert_alike(&found, &wanted, "a third");
    assert!(!left.exists(), "what was left behind goes");
}
