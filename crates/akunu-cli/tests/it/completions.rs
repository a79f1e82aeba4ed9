//! The completion scripts, in the shells themselves.
//!
//! bash is everywhere and must always do. zsh and fish are asked where they are installed; where they
//! are not, the text of their scripts is looked at instead.

use crate::program::{akunu, assert_usage};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A word before the cursor, and a flag or value that must be offered there.
const OFFERED: &[(&str, &str)] = &[
    ("akunu-cli ge", "generate"),
    ("akunu-cli bench --dep", "--depth"),
    ("akunu-cli chat --sys", "--system"),
    ("akunu-cli generate --json-l", "--json-lines"),
    ("akunu-cli inspect --tens", "--tensors"),
    ("akunu-cli perplexity --dev", "--device"),
    ("akunu-cli tokenize --par", "--parse-special"),
    ("akunu-cli generate --device tw", "twin"),
];

/// Writes the script for a shell to a file.
fn script(shell: &str, folder: &Path, name: &str) -> PathBuf {
    let done = akunu(["completions", shell]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let path = folder.join(name);
    std::fs::write(&path, done.stdout).unwrap();
    path
}

fn is_installed(shell: &str) -> bool {
    let mut command = Command::new(shell);
    command.arg("--version").stdout(Stdio::null());
    command.status().is_ok()
}

/// Runs a program of a shell and returns what it prints.
fn run(shell: &str, flags: &[&str], program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(shell);
    command.args(flags).arg("-c").arg(program);
    // What follows the program is $0 and then the arguments; fish has no $0.
    let name = (shell != "fish").then_some("test");
    command.args(name).args(arguments).stdin(Stdio::null());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Calls the function that the script registers as bash would: with the words so far and the last one.
#[test]
fn bash_completes_commands_flags_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let script = script("bash", folder.path(), "akunu-cli.bash");
    let program = r#"
        source "$1"
        registered=$(complete -p akunu-cli)
        [[ $registered =~ -F\ ([^ ]+) ]] || exit 9
        read -ra COMP_WORDS <<< "$2"
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        "${BASH_REMATCH[1]}" akunu-cli "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    // The script for fish offers no values of arguments without a flag.
    let values = [("akunu-cli completions fi", "fish")];
    for (line, wanted) in OFFERED.iter().chain(&values) {
        let flags = ["--norc", "--noprofile"];
        let said = run("bash", &flags, program, &[script.to_str().unwrap(), line]);
        assert_eq!(said.trim(), *wanted, "after `{line}`");
    }
}

/// Types each line, a tab and a newline into a real zsh: the command that runs then is a function which
/// writes down its arguments.
#[test]
fn zsh_completes_commands_flags_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let script = script("zsh", folder.path(), "_akunu-cli");
    if !is_installed("zsh") {
        let text = std::fs::read_to_string(&script).unwrap();
        assert!(text.starts_with("#compdef akunu-cli\n"), "{text}");
        for (_, wanted) in OFFERED {
            assert!(text.contains(wanted), "no {wanted}");
        }
        return;
    }
    let program = r#"
        zmodload zsh/zpty
        zpty terminal zsh -f -i
        zpty -w terminal "fpath=($1 \$fpath); autoload -U compinit; compinit -u -d $1/dump"
        zpty -w terminal "akunu-cli() { print -r -- \$* >> $1/typed }"
        for line in "${@:2}"; do zpty -w terminal "$line"$'\t'; done
        zpty -w terminal exit
        while zpty -r terminal shown; do :; done
        cat $1/typed
    "#;
    let mut arguments = vec![folder.path().to_str().unwrap()];
    arguments.extend(OFFERED.iter().map(|(line, _)| *line));
    let said = run("zsh", &["-f"], program, &arguments);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), OFFERED.len(), "{said:?}");
    for ((line, wanted), said) in OFFERED.iter().zip(said) {
        assert!(said.trim().ends_with(wanted), "after `{line}`: {said}");
    }
}

#[test]
fn fish_completes_commands_flags_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let script = script("fish", folder.path(), "akunu-cli.fish");
    if !is_installed("fish") {
        let text = std::fs::read_to_string(&script).unwrap();
        for (_, wanted) in OFFERED {
            assert!(text.contains(wanted.trim_start_matches('-')), "no {wanted}");
        }
        return;
    }
    for (line, wanted) in OFFERED {
        let program = "source $argv[1]; complete -C $argv[2]";
        let arguments = [script.to_str().unwrap(), line];
        let said = run("fish", &["--no-config"], program, &arguments);
        let word = said.split_whitespace().next();
        assert_eq!(word, Some(*wanted), "after `{line}`: {said}");
    }
}

#[test]
fn other_shells_have_scripts_too() {
    for shell in ["elvish", "powershell"] {
        let done = akunu(["completions", shell]);
        assert_eq!(done.code, 0);
        assert!(done.stdout.contains("--json-lines"), "{shell}");
    }
    assert_usage(&akunu(["completions", "cmd.exe"]), "bash");
}
