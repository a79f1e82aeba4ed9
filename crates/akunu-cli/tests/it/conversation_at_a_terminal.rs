//! `chat` at a real terminal: a pseudo-terminal, which Python's standard library makes.

use crate::program::smollm2;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Runs a program in a pseudo-terminal of its own, and passes on what is typed and shown.
const BRIDGE: &str = "import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// A person at a terminal.
struct Terminal {
    bridge: Child,
    keys: ChildStdin,
    screen: ChildStdout,
    shown: String,
    /// Where the history of questions goes.
    _home: tempfile::TempDir,
}

impl Terminal {
    fn open(flags: &[&str]) -> Terminal {
        let home = tempfile::tempdir().unwrap();
        let mut bridge = Command::new("python3")
            .args(["-c", BRIDGE, env!("CARGO_BIN_EXE_akunu-cli")])
            .args(["chat", "-m", &smollm2(), "--temp", "0"])
            .args(flags)
            .env("TERM", "xterm")
            .env("HOME", home.path())
            .env("XDG_CACHE_HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Terminal {
            keys: bridge.stdin.take().unwrap(),
            screen: bridge.stdout.take().unwrap(),
            bridge,
            shown: String::new(),
            _home: home,
        }
    }

    fn type_keys(&mut self, keys: &str) {
        self.type_bytes(keys.as_bytes());
    }

    fn type_bytes(&mut self, bytes: &[u8]) {
        self.keys.write_all(bytes).unwrap();
        self.keys.flush().unwrap();
    }

    /// Looks at the screen until this is on it; returns what came before and forgets both.
    fn wait_for(&mut self, text: &str) -> String {
        loop {
            if let Some((before, after)) = self.shown.split_once(text) {
                let before = before.to_string();
                self.shown = after.to_string();
                return before;
            }
            let mut bytes = [0; 4096];
            let n = self.screen.read(&mut bytes).unwrap();
            assert!(n > 0, "no {text:?} in {:?}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
    }

    /// The exit code, once the program has left by itself.
    fn leave(mut self) -> i32 {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).unwrap();
        self.bridge.wait().unwrap().code().unwrap()
    }
}

/// The questions of a saved conversation.
fn questions(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let messages: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let asked = messages.iter().filter(|m| m["role"] == "user");
    asked
        .map(|m| m["content"].as_str().unwrap().to_string())
        .collect()
}

/// Lines that come at once, as from a paste without brackets, are all asked. The editor reads them in one
/// piece, of which it must not lose what follows the first line.
#[test]
fn lines_that_come_at_once_are_all_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let mut terminal = Terminal::open(&["-n", "2", "--ctx", "256"]);
    terminal.wait_for("> ");
    let save = format!("/save {}\r/quit\r", path.display());
    terminal.type_keys(&format!("one\rtwo\rthree\r{save}"));
    assert_eq!(terminal.leave(), 0);
    assert_eq!(questions(&path), ["one", "two", "three"]);
}

/// What is typed while the model loads and while it answers is kept for the prompts that follow, and is
/// not echoed into the answer.
#[test]
fn what_is_typed_meanwhile_is_asked_later_and_not_shown_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let mut terminal = Terminal::open(&["-n", "40", "--ctx", "512"]);
    terminal.type_keys("Tell me about a fox.\r");
    terminal.wait_for("> ");
    // The editor shows the line when its turn comes, and the answer begins on the next line.
    terminal.wait_for("about a fox.");
    terminal.wait_for("\n");
    terminal.wait_for(" ");
    terminal.type_keys("zebra\rquagga\r");
    let answer = terminal.wait_for("> ");
    assert!(!answer.contains("zebra"), "{answer}");
    let save = format!("/save {}\r{CTRL_D}", path.display());
    terminal.type_keys(&save);
    assert_eq!(terminal.leave(), 0);
    assert_eq!(
        questions(&path),
        ["Tell me about a fox.", "zebra", "quagga"]
    );
}

/// Ctrl-C stops the answer, and what was typed before it is asked; at an empty prompt it leaves.
#[test]
fn ctrl_c_stops_an_answer_and_leaves_at_an_empty_prompt() {
    let mut terminal = Terminal::open(&["-n", "100000", "--ctx", "8192"]);
    terminal.wait_for("> ");
    terminal.type_keys("/set temp 1.5\r");
    terminal.wait_for("max_tokens");
    terminal.wait_for("> ");
    terminal.type_keys("Count to a million.\r");
    terminal.wait_for("\n");
    terminal.wait_for(" ");
    terminal.type_keys(CTRL_C);
    terminal.wait_for("> ");
    terminal.type_keys(&format!("half a line{CTRL_C}"));
    terminal.wait_for("Ctrl-C again");
    terminal.wait_for("> ");
    terminal.type_keys(CTRL_C);
    assert_eq!(terminal.leave(), 0);
}

/// A prompt that takes long to read is ended by Ctrl-C as well, and the next question is answered.
#[test]
fn ctrl_c_stops_the_reading_of_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let mut terminal = Terminal::open(&["-n", "2", "--ctx", "16000", "-t", "1"]);
    terminal.wait_for("> ");
    let load = folder.path().join("long.json");
    let long = "a word and another ".repeat(3_500);
    let messages = serde_json::json!([{"role": "system", "content": long}]);
    std::fs::write(&load, messages.to_string()).unwrap();
    terminal.type_keys(&format!("/load {}\r", load.display()));
    terminal.wait_for("loaded from");
    terminal.wait_for("> ");
    terminal.type_keys("What was that?\r");
    terminal.wait_for("\n");
    std::thread::sleep(std::time::Duration::from_millis(100));
    terminal.type_keys(CTRL_C);
    terminal.wait_for("the question was not answered");
    terminal.wait_for("> ");
    terminal.type_keys("/system Be brief.\rHello\r");
    let save = format!("/save {}\r/quit\r", path.display());
    terminal.type_keys(&save);
    assert_eq!(terminal.leave(), 0);
    assert_eq!(questions(&path), ["Hello"]);
}

/// A file that exists is replaced only after a yes. A line that is neither yes nor no is asked.
#[test]
fn saving_asks_before_it_replaces_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    std::fs::write(&path, "[]").unwrap();
    let save = format!("/save {}\r", path.display());
    let mut terminal = Terminal::open(&["-n", "2", "--ctx", "256"]);
    terminal.wait_for("> ");
    terminal.type_keys(&save);
    terminal.wait_for("replace it?");
    terminal.type_keys("What is this?\r");
    terminal.wait_for("not saved");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[]");
    terminal.type_keys(&format!("{save}y\r/quit\r"));
    assert_eq!(terminal.leave(), 0);
    assert_eq!(questions(&path), ["What is this?"]);
}

/// Tab completes a command, and three quotation marks begin a question of several lines.
#[test]
fn commands_are_completed_and_questions_have_several_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let mut terminal = Terminal::open(&["-n", "2", "--ctx", "256"]);
    terminal.wait_for("> ");
    terminal.type_keys("\"\"\"one\rtwo\"\"\"\r");
    terminal.wait_for("> ");
    terminal.type_keys(&format!("/sa\t{}\r/qu\t\r", path.display()));
    assert_eq!(terminal.leave(), 0);
    assert_eq!(questions(&path), ["one\ntwo"]);
}

/// Fails when a byte that is no text ends the conversation, or something of its line is asked.
#[test]
fn a_line_that_is_no_text_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let mut terminal = Terminal::open(&["-n", "2", "--ctx", "256"]);
    terminal.wait_for("> ");
    terminal.type_bytes(b"one \xfftwo\r");
    terminal.wait_for("a byte that is not UTF-8 text");
    terminal.wait_for("> ");
    let save = format!("three\r/save {}\r/quit\r", path.display());
    terminal.type_keys(&save);
    assert_eq!(terminal.leave(), 0);
    assert_eq!(questions(&path), ["three"]);
}
