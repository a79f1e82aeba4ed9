//! `generate` and `chat` from the outside, with real models.
#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod program;

use program::{akunu, assert_error, asset, smollm2};
use serde_json::Value;

#[test]
fn generate_continues_a_text_and_tells_scripts_how() {
    let model = smollm2();
    let prompt = "The capital of France is";
    let run = akunu([
        "generate", "-m", &model, "-p", prompt, "-n", "2", "--ctx", "64", "--json",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["text"], " Paris.");
    assert_eq!(report["stop"], "length");
    assert_eq!(report["device"], "twin");
    assert_eq!(report["ids"].as_array().unwrap().len(), 2);
    assert_eq!(report["prompt_ids"].as_array().unwrap().len(), 5);
    assert!(report["timings"]["decode_tok_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn chat_answers_a_question() {
    let model = smollm2();
    let question = "What is the capital of France?";
    let run = akunu(["chat", question, "-m", &model, "-n", "12", "--ctx", "128"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("Paris"), "{}", run.stdout);
}

#[test]
fn what_cannot_run_is_said_in_one_sentence() {
    let model = smollm2();
    let generate = |flags: &[&str]| {
        let fixed = ["generate", "-m", &model, "-p", "Hello"];
        akunu(fixed.into_iter().chain(flags.iter().copied()))
    };
    assert_error(
        &generate(&["--ctx", "8", "--temp", "1", "--top-p", "7"]),
        "top-p is 7",
    );
    assert_error(&generate(&["--ctx", "0"]), "a context of 0 tokens");
    let long = "word ".repeat(50);
    let run = akunu(["generate", "-m", &model, "-p", &long, "--ctx", "8"]);
    assert_error(&run, "do not fit a context of 8");
    let gemma = asset("gemma3-270m", "gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    assert_error(
        &akunu(["chat", "Hello", "-m", &gemma]),
        "has no chat template",
    );
    let missing = akunu(["generate", "-m", "no-such-file.gguf", "-p", "Hello"]);
    assert_error(&missing, "no-such-file.gguf");
}
