//! Signals in the middle of long work: it ends soon, and the exit code says by which signal.
//!
//! Each of these runs takes many seconds when nobody looks at the signal, and then ends with another code.

use crate::program::{akunu, assert_error, command, smollm2};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn begin(arguments: &[&str]) -> Child {
    let mut command = command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits until the model is loaded: from then on the process has read its weights, and listens.
fn wait_until_busy(child: &Child) {
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    for _ in 0..600 {
        std::thread::sleep(Duration::from_millis(50));
        if !Path::new("/proc").exists() {
            return std::thread::sleep(Duration::from_secs(3));
        }
        let text = std::fs::read_to_string(&status).unwrap();
        if text.contains("SigCgt:") && catches_sigint(&text) {
            // The flag is looked at between chunks, of which the first has begun by then or not.
            return std::thread::sleep(Duration::from_millis(200));
        }
    }
    panic!("it never began to listen");
}

/// Bit 1 of the mask of caught signals is SIGINT, which is signal 2.
fn catches_sigint(status: &str) -> bool {
    let line = status.lines().find(|line| line.starts_with("SigCgt:"));
    let mask = line.and_then(|line| line.split_whitespace().nth(1));
    let mask = u64::from_str_radix(mask.unwrap(), 16).unwrap();
    mask & 0b10 != 0
}

fn ended_by(name: &str, arguments: &[&str]) -> Output {
    let child = begin(arguments);
    wait_until_busy(&child);
    signal(&child, name);
    child.wait_with_output().unwrap()
}

fn assert_politely(done: &Output, code: i32) {
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(code), "{said}");
    assert!(said.contains("interrupted"), "{said}");
}

/// A text of so many words that reading it takes long.
fn long_text(folder: &Path) -> String {
    let path = folder.join("long.txt");
    std::fs::write(&path, "a word and another ".repeat(3_000)).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn a_long_prompt_is_not_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (model, text) = (smollm2(), long_text(folder.path()));
    let arguments = [
        "generate", "-m", &model, "-f", &text, "--ctx", "16000", "-t", "1",
    ];
    let done = ended_by("-INT", &arguments);
    assert_politely(&done, 130);
    assert!(done.stdout.is_empty());
}

#[test]
fn bench_ends_at_once() {
    let model = smollm2();
    let arguments = ["bench", "-m", &model, "-p", "16000", "-t", "1"];
    assert_politely(&ended_by("-INT", &arguments), 130);
    let writing = ["bench", "-m", &model, "-p", "0", "-n", "8000"];
    assert_politely(&ended_by("-TERM", &writing), 143);
    let together = [&writing[..], &["--batch", "2", "--no-warmup"]].concat();
    assert_politely(&ended_by("-TERM", &together), 143);
}

#[test]
fn perplexity_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (model, text) = (smollm2(), long_text(folder.path()));
    let whole = ["perplexity", "-m", &model, "-f", &text, "--ctx", "12000"];
    assert_politely(&ended_by("-TERM", &whole), 143);
    let chunks = ["perplexity", "-m", &model, "-f", &text];
    assert_politely(&ended_by("-INT", &chunks), 130);
}

/// The address that a server prints when it is ready.
fn address_of(server: &mut Child) -> String {
    let mut line = String::new();
    let mut out = BufReader::new(server.stdout.as_mut().unwrap());
    out.read_line(&mut line).unwrap();
    let address = line.trim_end().rsplit_once("http://").unwrap().1;
    address.to_string()
}

/// Breaks when a server does not answer at the address that it prints, cuts an answer off when it is told to end, or ends
/// with a code that says that something went wrong.
#[test]
fn a_server_answers_what_was_asked_and_ends() {
    let (answer, log) = ask_and_end(&["--log", "json"]);
    assert!(answer.contains("data: [DONE]"), "{answer}");
    assert!(log.contains("\"path\":\"/v1/completions\""), "{log}");
    assert!(!log.contains("secret"), "the log has no prompts: {log}");
}

/// Breaks when the log lacks what was asked or answered although that is wanted, or does not say in which request.
#[test]
fn a_log_has_texts_when_asked_for() {
    let (answer, log) = ask_and_end(&["--log", "json", "--log-texts"]);
    let tokens = answer.lines().filter_map(|line| {
        let event = line.strip_prefix("data: ")?;
        let event: serde_json::Value = serde_json::from_str(event).ok()?;
        Some(event["choices"][0]["text"].as_str()?.to_string())
    });
    let answer: String = tokens.collect();
    assert!(!answer.is_empty());
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let lines: Vec<serde_json::Value> = lines.collect();
    let of = |field: &str| lines.iter().find(|line| line[field].is_string()).unwrap();
    assert_eq!(of("prompt")["prompt"], "My secret is");
    assert_eq!(of("answer")["answer"], answer);
    assert!(of("prompt")["span"]["id"].is_string(), "{log}");
    assert_eq!(of("prompt")["span"]["id"], of("answer")["span"]["id"]);
}

/// Starts a server, asks for a stream, ends the server while it answers, and returns the answer and the log.
fn ask_and_end(args: &[&str]) -> (String, String) {
    let model = smollm2();
    let mut server = begin(&[&["serve", "-m", &model, "--port", "0"], args].concat());
    let address = address_of(&mut server);
    let body =
        r#"{"prompt": "My secret is", "max_tokens": 40, "ignore_eos": true, "stream": true}"#;
    let mut stream = TcpStream::connect(&address).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /v1/completions HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = BufReader::new(stream);
    answer.read_line(&mut String::new()).unwrap();
    signal(&server, "-TERM");
    let mut rest = String::new();
    answer.read_to_string(&mut rest).unwrap();
    let done = server.wait_with_output().unwrap();
    let log = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{log}");
    (rest, log)
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let model = smollm2();
    let refused = akunu(["serve", "-m", &model, "--port", &port]);
    assert_error(&refused, &format!("cannot listen on 127.0.0.1:{port}"));
    assert_error(
        &akunu(["serve", "-m", &model, "--api-key", ""]),
        "--api-key",
    );
    let pinned = akunu(["serve", "-m", &model, "--pin", "other", "--port", "0"]);
    assert_error(&pinned, "--pin other: no model of this name is served");
    let twice = akunu(["serve", "-m", &model, "-m", &model, "--port", "0"]);
    assert_error(&twice, "two models are called");
}

/// Breaks when a model that cannot be read is noticed by the first client that asks for it, and not when the server starts.
#[test]
fn every_model_is_looked_at_before_a_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let model = smollm2();
    let begins_with = |path: &str| {
        let mut bytes = std::fs::read(&model).unwrap();
        bytes.truncate(3_000_000);
        let path = folder.path().join(path);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    };
    let missing = folder.path().join("nofile.gguf");
    let missing = missing.to_str().unwrap();
    let whisper = folder.path().join("whisper");
    std::fs::create_dir(&whisper).unwrap();
    begins_with("whisper/model.bin");
    for (second, names) in [
        (missing, "nofile.gguf"),
        (&begins_with("cut.gguf"), "cut.gguf"),
        (whisper.to_str().unwrap(), "model.bin"),
    ] {
        let refused = akunu(["serve", "-m", &model, "-m", second, "--port", "0"]);
        assert_error(&refused, names);
    }
}

/// Breaks when nobody can find out why a request failed, since no log was asked for.
#[test]
#[cfg(unix)]
fn failures_are_told_without_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let model = smollm2();
    let second = folder.path().join("second.gguf");
    std::os::unix::fs::symlink(&model, &second).unwrap();
    let name = second.to_str().unwrap();
    let mut server = begin(&["serve", "-m", &model, "-m", name, "--port", "0"]);
    let address = address_of(&mut server);
    std::fs::remove_file(&second).unwrap();
    let body = r#"{"model": "second", "prompt": "My secret is"}"#;
    let mut stream = TcpStream::connect(&address).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /v1/completions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    assert!(!answer.contains("second.gguf"), "{answer}");
    signal(&server, "-TERM");
    let done = server.wait_with_output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    let failures: Vec<&str> = told.lines().filter(|line| line.contains("ERROR")).collect();
    assert!(
        matches!(failures[..], [one] if one.contains("second.gguf")),
        "{told}"
    );
    assert!(!told.contains("secret"), "{told}");
}
