//! Files that commands write and read: links, devices, permissions, and files without end.

use crate::program::{akunu, assert_error, asset, finish, smollm2, tiny_model};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The commands that write a file of this name, without the chat.
fn writers(folder: &Path, output: &str) -> Vec<Vec<String>> {
    let minilm = PathBuf::from(asset("minilm", "config.json"));
    let (minilm, model) = (text(minilm.parent().unwrap()), smollm2());
    let tiny = tiny_model(folder);
    let words = folder.join("words.txt");
    fs::write(&words, "the cat sat on the mat and ".repeat(20)).unwrap();
    let imatrix = ["imatrix", "-m", &model, "-f", text(&words), "--ctx", "16"];
    let commands = [
        vec!["embed", "hi", "-m", minilm, "--npy", output],
        vec!["quantize", text(&tiny), output, "q4_0", "--force"],
        [&imatrix[..], &["--chunks", "1", "--force", "-o", output]].concat(),
    ];
    let owned = |words: Vec<&str>| words.into_iter().map(str::to_string).collect();
    commands.into_iter().map(owned).collect()
}

/// Fails when a command replaces something that is no file by a file.
#[test]
fn what_is_no_file_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listening = UnixListener::bind(&socket).unwrap();
    for command in writers(folder.path(), text(&socket)) {
        assert_error(&akunu(&command), "it is a device or a pipe");
        assert!(!fs::metadata(&socket).unwrap().is_file(), "{command:?}");
    }
}

/// Fails when a command replaces a link, or writes a file with other permissions than any new file has.
#[test]
fn links_are_followed_and_new_files_are_as_any() {
    let folder = tempfile::tempdir().unwrap();
    let (link, file) = (folder.path().join("link"), folder.path().join("file"));
    symlink("file", &link).unwrap();
    let usual = folder.path().join("usual");
    fs::write(&usual, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    for command in writers(folder.path(), text(&link)) {
        let done = akunu(&command);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(mode(&file), mode(&usual), "{command:?}");
        fs::remove_file(&file).unwrap();
    }
}

/// Fails when a command works first and then finds no place for the result, or names a file of its own.
#[test]
fn a_place_that_does_not_exist_is_told_first() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("none/out");
    for mut command in writers(folder.path(), text(&output)) {
        if command[0] == "imatrix" {
            command[4] = "missing.txt".to_string();
        }
        let done = akunu(&command);
        assert_error(&done, "none/out");
        assert!(!done.stderr.contains(".akunu-"), "{}", done.stderr);
    }
}

/// Fails when a file without end is read until there is no memory.
#[test]
fn files_without_end_are_refused() {
    let (model, endless) = (smollm2(), "/dev/zero");
    let generate = ["generate", "-m", &model, "-p", "x"];
    for (option, limit) in [("--grammar", "512.0 KiB"), ("--json-schema", "512.0 KiB")] {
        let done = akunu([&generate[..], &[option, endless]].concat());
        assert_error(&done, &format!("/dev/zero has more than {limit}"));
    }
    for (command, limit) in [
        (&["generate", "-m", &model, "-f", endless][..], "64.0 MiB"),
        (&["perplexity", "-m", &model, "-f", endless], "1.0 GiB"),
        (&["embed", "-f", endless], "1.0 GiB"),
        (&["serve", "--api-key-file", endless], "1.0 MiB"),
    ] {
        let done = akunu(command);
        assert_error(&done, &format!("/dev/zero has more than {limit}"));
    }
    let mut tokenize = crate::program::command(["tokenize", "-m", &model]);
    tokenize.stdin(fs::File::open(endless).unwrap());
    assert_error(
        &finish(&mut tokenize),
        "standard input has more than 1.0 GiB",
    );
    let folder = tempfile::tempdir().unwrap();
    let (tiny, out) = (tiny_model(folder.path()), folder.path().join("out.gguf"));
    let quantize = ["quantize", text(&tiny), text(&out), "q4_0"];
    let done = akunu([&quantize[..], &["--imatrix", endless]].concat());
    assert_error(&done, "/dev/zero: not a regular file");
}
