//! `chat` from the outside: one question, a piped conversation, its commands, and Ctrl-C.
#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod program;

use program::{Finished, akunu, asset, command, smollm2};
use std::io::{Read, Write};
use std::process::Stdio;

/// A conversation of these lines.
fn talk(model: &str, flags: &[&str], lines: &str) -> Finished {
    let arguments = ["chat", "-m", model].into_iter();
    let mut child = command(arguments.chain(flags.iter().copied()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(lines.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Finished {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_question_is_answered() {
    let model = smollm2();
    let question = "What is the capital of France?";
    let run = akunu(["chat", question, "-m", &model, "-n", "12", "--ctx", "128"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("Paris"), "{}", run.stdout);
    assert!(!run.stdout.contains('\u{1b}'), "no colour in a pipe");
}

/// The second question makes sense only with the first, the third only with /stats and blank lines
/// left out of the conversation.
#[test]
fn three_questions_in_one_conversation() {
    let lines = "What is the capital of France?\n\nAnd of Italy?\n/stats\nWhat is two plus two?\n";
    let run = talk(&smollm2(), &["-n", "24", "--ctx", "256"], lines);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for word in ["Paris", "Rome", "four"] {
        let said = run.stdout.to_lowercase();
        assert!(
            said.contains(&word.to_lowercase()),
            "{word}: {}",
            run.stdout
        );
    }
    assert!(run.stderr.contains("of 256 tokens"), "{}", run.stderr);
    assert!(!run.stdout.contains("<|im_end|>"), "{}", run.stdout);
}

/// What was saved and loaded is remembered; what was reset is not.
#[test]
fn a_conversation_is_saved_loaded_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.json");
    let path = path.to_str().unwrap();
    let first = format!("/system You are a pirate.\nSay yes.\n/save {path}\n");
    let run = talk(&smollm2(), &["-n", "4", "--ctx", "128"], &first);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let saved = std::fs::read_to_string(path).unwrap();
    let saved: serde_json::Value = serde_json::from_str(&saved).unwrap();
    let roles: Vec<&str> = saved
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant"]);
    assert_eq!(saved[0]["content"], "You are a pirate.");
    let again = folder.path().join("again.json");
    let again = again.to_str().unwrap();
    let second = format!("/load {path}\n/save {again}\n/reset\n/save {path}\n/quit\nNot asked.\n");
    let run = talk(&smollm2(), &["--ctx", "128"], &second);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let kept: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(again).unwrap()).unwrap();
    assert_eq!(kept, saved);
    let left: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(left.as_array().unwrap().len(), 1, "what it was told stays");
}

#[test]
fn mistakes_are_told_and_the_conversation_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.json");
    std::fs::write(&text, "no conversation").unwrap();
    let lines = format!(
        "/nonsense\n/load\n/load no-such-file.json\n/load {}\n/save {}/no/folder.json\n{}\n/help\n",
        text.display(),
        folder.path().display(),
        "word ".repeat(100),
    );
    let run = talk(&smollm2(), &["--ctx", "64"], &lines);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    for said in [
        "there is no /nonsense",
        "/load wants a FILE",
        "no-such-file.json: ",
        "holds no conversation",
        "folder.json cannot be written",
        "the context holds 64: /reset begins anew",
        "/system TEXT",
    ] {
        assert!(run.stderr.contains(said), "no {said:?} in {}", run.stderr);
    }
}

/// The base model has no template: that is said once, and it is asked in plain turns.
#[test]
fn a_model_without_a_template_is_asked_in_plain_turns() {
    let gemma = asset("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    let lines = "What is the capital of France?\nAnd of Italy?\n";
    let run = talk(&gemma, &["-n", "8", "--ctx", "128"], lines);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stderr.matches("no chat template").count(), 1);
    assert!(run.stdout.contains("Paris"), "{}", run.stdout);
    assert!(!run.stdout.contains("User:"), "{}", run.stdout);
}

/// Ctrl-C ends the answer; the next line is answered, and the end of input ends the program well.
#[cfg(unix)]
#[test]
fn ctrl_c_stops_the_answer_and_not_the_program() {
    let model = smollm2();
    let mut child = command(["chat", "-m", &model, "-n", "100000", "--ctx", "8192"])
        .args(["--temp", "1", "--system", "You count to a million."])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = child.stdin.take().unwrap();
    let mut answers = child.stdout.take().unwrap();
    let long = "Count from one to a million, one number a line, and do not stop.\n";
    questions.write_all(long.as_bytes()).unwrap();
    let mut heard = [0; 8];
    answers.read_exact(&mut heard).unwrap();
    let signalled = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signalled.unwrap().success());
    questions
        .write_all(b"/reset\n/system Answer.\nWhat is the capital of France?\n")
        .unwrap();
    drop(questions);
    let mut rest = String::new();
    answers.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(rest.contains("Paris"), "{rest}");
}
