//! The commands of the documentation do what it says: they are run, in a folder with the files that it names.

use crate::program::{asset, smollm2, tiny_model};
use akunu_assets::Documented;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// Commands that are only parsed (by a test of the command line), and why: what a command has in it, and the reason.
const ONLY_PARSED: [(&str, &str); 15] = [
    ("--device metal", "needs a Mac"),
    (
        " serve",
        "serves until it is stopped; the tests of akunu-server start it",
    ),
    (
        "qwen2.5-coder-1.5b",
        "fetches 1.1 GB, or needs what was fetched",
    ),
    ("hf:owner", "fetches from Hugging Face"),
    ("ms-marco-MiniLM-L6-v2", "a model that the reader has"),
    ("--lora", "an adapter that the reader has"),
    ("--image", "a model and an image that the reader has"),
    ("talk.mp3", "fetches whisper-base"),
    ("*.mp3", "fetches whisper-base"),
    ("rede.m4a", "fetches whisper-base"),
    ("talk.wav --words", "fetches whisper-base"),
    (
        "imatrix",
        "half a minute in a build for tests; tests/it/imatrix.rs",
    ),
    (
        "quantize smollm2",
        "half a minute in a build for tests; tests/it/quantize.rs",
    ),
    (
        "quantize f16.gguf",
        "half a minute in a build for tests; tests/it/quantize.rs",
    ),
    ("perplexity -m", "needs what the commands before it wrote"),
];

/// The files that the pages name, and a home whose cache has the models of the tests.
fn reader() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["notes.txt", "question.txt", "texts.txt", "text"] {
        fs::write(path(name), "What is the capital of France?\n").unwrap();
    }
    fs::write(path("questions.txt"), "Hello\n/stats\nBye\n").unwrap();
    let schema =
        r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}"#;
    fs::write(path("country.json"), schema).unwrap();
    symlink(smollm2(), path("model.gguf")).unwrap();
    symlink(asset("jfk", "jfk.wav"), path("talk.wav")).unwrap();
    fs::rename(tiny_model(folder.path()), path("model-f16.gguf")).unwrap();
    let caches = if cfg!(target_os = "macos") {
        "Library/Caches/akunu/models"
    } else {
        ".cache/akunu/models"
    };
    fs::create_dir_all(path(caches)).unwrap();
    for model in ["smollm2", "minilm", "whisper-tiny.en"] {
        let stored = akunu_assets::path(model, "");
        symlink(stored, path(caches).join(model)).unwrap();
    }
    install(folder.path());
    folder
}

/// Puts the program on the reader's PATH, with a smaller model than the default and answers of at most 8 tokens, so that the test
/// takes seconds.
fn install(home: &Path) {
    let program = env!("CARGO_BIN_EXE_akunu-cli");
    let script = format!(
        r#"#!/bin/sh
case "$1 $*" in
    *" -m "*) ;;
    chat*|generate*|bench*) set -- "$@" -m smollm2 ;;
esac
case $1 in chat|generate) set -- "$@" -n 8 ;; esac
exec '{program}' "$@"
"#
    );
    fs::create_dir(home.join("bin")).unwrap();
    let path = home.join("bin/akunu-cli");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What is wrong with what the command did.
fn problem(home: &Path, command: &Documented) -> Option<String> {
    let line = command
        .line
        .replace("cargo run --release -p akunu-cli --", "akunu-cli");
    let done = Command::new("sh")
        .args(["-c", &line])
        .current_dir(home)
        .env("HOME", home)
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", home.join("bin").display()),
        )
        .env("HF_ENDPOINT", "http://127.0.0.1:1")
        .env_remove("XDG_CACHE_HOME")
        .stdin(Stdio::from(
            fs::File::open(home.join("question.txt")).unwrap(),
        ))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let is_right = if command.prints.is_empty() {
        done.status.success()
    } else {
        said.lines().eq(&command.prints)
    };
    (!is_right).then(|| format!("{}: {line}\n{said}", command.place))
}

/// Breaks when a documented command fails, prints another error than the page shows, or when a reason for not running one
/// has outlived its command.
#[test]
fn the_commands_of_the_documentation_run() {
    let is_typed = |command: &Documented| command.is_line && !command.has_placeholder();
    let commands = akunu_assets::documented(&["akunu-cli"]);
    let commands: Vec<Documented> = commands.into_iter().filter(is_typed).collect();
    for (part, _) in ONLY_PARSED {
        let is_there = commands.iter().any(|command| command.line.contains(part));
        assert!(is_there, "no command has {part:?} any longer");
    }
    let is_run = |command: &&Documented| {
        !ONLY_PARSED
            .iter()
            .any(|(part, _)| command.line.contains(part))
    };
    let mut runs: Vec<&Documented> = commands.iter().filter(is_run).collect();
    // Several pages begin with the same question.
    runs.sort_by_key(|run| &run.arguments);
    runs.dedup_by_key(|run| &run.arguments);
    assert!(runs.len() >= 24, "only {} are run", runs.len());
    let home = reader();
    let problems = runs.iter().filter_map(|run| problem(home.path(), run));
    let problems: Vec<String> = problems.collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
