//! `transcribe` from the outside.

use crate::program::{akunu, assert_error, asset, smollm2};
use serde_json::Value;
use std::path::Path;

fn model() -> String {
    let weights = asset("whisper-tiny.en", "model.bin");
    let folder = Path::new(&weights).parent().unwrap();
    folder.to_str().unwrap().to_string()
}

/// Fails when a format is not what its readers expect, when words have no times, or when files are written elsewhere.
#[test]
fn a_recording_becomes_text_subtitles_and_json() {
    let (model, jfk) = (model(), asset("jfk", "jfk.wav"));
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().to_str().unwrap();
    let run = ["transcribe", "-m", &model, &jfk];
    let text = akunu(run);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.contains("ask not what your country"));

    let words = akunu([&run[..], &["--words", "--format", "json"]].concat());
    let json: Value = serde_json::from_str(&words.stdout).unwrap();
    assert_eq!(json["language"], "en");
    let first = &json["segments"][0]["words"][0];
    assert_eq!(first["word"], "And");
    assert!(first["end"].as_f64().unwrap() < 2.0);

    let srt = akunu([&run[..], &["--format", "srt", "--output", output]].concat());
    assert_eq!(srt.code, 0, "{}", srt.stderr);
    let written = std::fs::read_to_string(folder.path().join("jfk.srt")).unwrap();
    assert!(written.starts_with("1\n00:00:00,"), "{written}");
}

/// Fails when one of these is not refused, or not by a sentence that names it.
#[test]
fn what_cannot_be_transcribed_is_named() {
    let (model, jfk) = (model(), asset("jfk", "jfk.wav"));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    std::fs::write(
        path("notes.wav"),
        "These are notes, not sounds.".repeat(100),
    )
    .unwrap();
    std::fs::write(path("empty.mp3"), "").unwrap();
    let run =
        |file: &str, flags: &[&str]| akunu([&["transcribe", "-m", &model, file], flags].concat());
    assert_error(&run(&path("notes.wav"), &[]), "notes.wav");
    assert_error(&run(&path("empty.mp3"), &[]), "holds no sound");
    assert_error(&run(&path("none.mp3"), &[]), "none.mp3");
    assert_error(&run(&jfk, &["--language", "de"]), "only English");
    // A model is not even looked for, let alone fetched, for what is no recording; nor for one that is not the first.
    let first = akunu([
        "transcribe",
        "-m",
        "no-such-model",
        &jfk,
        &path("notes.wav"),
    ]);
    assert_error(&first, "notes.wav");
    let two = run(&jfk, &[&jfk, "--format", "srt"]);
    assert_error(&two, "--output");
    let same = run("a/talk.wav", &["b/talk.mp3", "--output", &path("out")]);
    assert_error(&same, "a/talk.wav and b/talk.mp3 would both be written to");
    let minilm = asset("minilm", "config.json");
    let minilm = Path::new(&minilm).parent().unwrap().to_str().unwrap();
    for (other, what) in [
        (smollm2().as_str(), "is a llama model, which writes text"),
        (minilm, "is a bert model, which makes embeddings"),
    ] {
        assert_error(&akunu(["transcribe", "-m", other, &jfk]), what);
    }
    for command in [&["generate", "-p"][..], &["embed"]] {
        let command = [command, &["x", "-m", &model]].concat();
        assert_error(&akunu(command), "is a Whisper, which transcribes speech");
    }
    let no_model = akunu(["transcribe", "-m", &path(""), &jfk]);
    assert_error(&no_model, "config.json");
}

/// Fails when `inspect` does not know a speech model.
#[test]
fn inspect_describes_a_speech_model() {
    let done = akunu(["inspect", &model()]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for fact in [
        "format          CTranslate2",
        "architecture    whisper, for English",
        "layers          4 of the encoder, 4 of the decoder",
    ] {
        assert!(done.stdout.contains(fact), "{}", done.stdout);
    }
    let json = akunu(["inspect", &model(), "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["description"]["mel_filters"], 80);
}
