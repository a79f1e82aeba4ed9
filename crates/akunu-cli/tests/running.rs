//! `generate` from the outside, with real models.
#![allow(clippy::unwrap_used, reason = "a test that meets an error fails")]

mod program;

use program::{akunu, assert_error, assert_usage, asset, smollm2};
use serde_json::Value;

fn generate(flags: &[&str]) -> program::Finished {
    let model = smollm2();
    let fixed = ["generate", "-m", &model, "--ctx", "64"];
    akunu(fixed.into_iter().chain(flags.iter().copied()))
}

fn report(flags: &[&str]) -> Value {
    let run = generate(flags);
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// The shape is a promise to scripts: a name that changes breaks them.
#[test]
fn generate_continues_a_text_and_tells_scripts_how() {
    let report = report(&["-p", "The capital of France is", "-n", "2", "--json"]);
    assert_eq!(report["text"], " Paris.");
    assert_eq!(report["stop"], "length");
    assert_eq!(report["device"], "cpu");
    assert_eq!(report["model"], smollm2());
    assert_eq!(report["ids"].as_array().unwrap().len(), 2);
    assert_eq!(report["prompt_ids"].as_array().unwrap().len(), 5);
    for name in [
        "load_ms",
        "prefill_ms",
        "prefill_tok_s",
        "first_token_ms",
        "decode_ms",
        "decode_tok_s",
    ] {
        assert!(report["timings"][name].as_f64().unwrap() > 0.0, "{name}");
    }
}

/// A file is read as it is; control tokens in it are tokens: this one ends a turn.
#[test]
fn a_prompt_may_come_from_a_file_with_control_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prompt.txt");
    std::fs::write(&path, "<|im_end|>").unwrap();
    let path = path.to_str().unwrap();
    let report = report(&["-f", path, "-n", "1", "--json"]);
    assert_eq!(report["prompt_ids"], serde_json::json!([2]));
}

#[test]
fn a_seed_repeats_and_another_one_does_not() {
    let drawn = |seed: &str| {
        let flags = ["-p", "Once", "-n", "8", "--temp", "1.5", "--json", "--seed"];
        report(&[&flags[..], &[seed]].concat())["ids"].clone()
    };
    assert_eq!(drawn("7"), drawn("7"));
    assert_ne!(drawn("7"), drawn("8"));
}

/// The same question to the fast device and to the reference.
#[test]
fn the_reference_device_agrees() {
    let ids = |device: &str| {
        let prompt = "The capital of France is";
        let flags = ["-p", prompt, "-n", "2", "--json", "--device", device];
        let report = report(&flags);
        assert_eq!(report["device"], device);
        report["ids"].clone()
    };
    assert_eq!(ids("cpu"), ids("twin"));
}

/// The Metal kernels themselves, from the texts inside the program.
#[cfg(feature = "sim")]
#[test]
fn the_simulator_agrees() {
    let home = tempfile::tempdir().unwrap();
    let model = smollm2();
    let run = |device: &str| {
        let flags = [
            "-p", "The", "-n", "1", "--ctx", "8", "--json", "--device", device,
        ];
        let fixed = ["generate", "-m", &model];
        let mut command = program::command(fixed.into_iter().chain(flags));
        command
            .env("XDG_CACHE_HOME", home.path())
            .env("HOME", home.path());
        let run = program::finish(&mut command);
        assert_eq!(run.code, 0, "{}", run.stderr);
        serde_json::from_str::<Value>(&run.stdout).unwrap()["ids"].clone()
    };
    assert_eq!(run("sim"), run("twin"));
}

#[test]
fn wrong_usage_is_told_before_anything_is_loaded() {
    let wrong = [
        (["--top-p", "7"], "above 0 and at most 1"),
        (["--top-k", "257"], "0..=256"),
        (["--min-p", "2"], "from 0 to 1"),
        (["--temp", "-1"], "0 or more"),
        (["--temp", "NaN"], "0 or more"),
        (["--repeat-penalty", "0"], "above 0"),
        (["--seed", "x"], "--seed"),
        (["--ctx", "0"], "--ctx"),
        (["--device", "tpu"], "auto, cpu, metal, sim, twin"),
        (["--isa", "sse"], "avx512"),
    ];
    for (flags, names) in wrong {
        let fixed = ["generate", "-m", "no-such-file.gguf", "-p", "Hello"];
        assert_usage(&akunu(fixed.into_iter().chain(flags)), names);
    }
    assert_usage(&akunu(["generate", "-m", "x.gguf"]), "--prompt");
}

#[test]
fn what_cannot_run_is_said_in_one_sentence() {
    let long = "word ".repeat(100);
    assert_error(&generate(&["-p", &long]), "do not fit a context of 64");
    assert_error(&generate(&["-f", "no-such-text.txt"]), "no-such-text.txt");
    assert_error(&generate(&["-p", ""]), "nothing to go on from");
    assert_error(&generate(&["-p", "x", "--threads", "0"]), "0 threads");
    #[cfg(not(target_os = "macos"))]
    assert_error(
        &generate(&["-p", "x", "--device", "metal"]),
        "no Metal device",
    );
    #[cfg(not(feature = "sim"))]
    assert_error(&generate(&["-p", "x", "--device", "sim"]), "--features sim");
    let model = smollm2();
    let huge = ["generate", "-m", &model, "-p", "x", "--ctx", "16000000"];
    assert_error(&akunu(huge), "16000000 tokens");
}

#[test]
fn files_that_are_no_models_are_named() {
    let missing = akunu(["generate", "-m", "no-such-file.gguf", "-p", "Hello"]);
    assert_error(&missing, "no-such-file.gguf");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let whole = std::fs::read(smollm2()).unwrap();
    std::fs::write(path("short.gguf"), &whole[..5_000_000]).unwrap();
    std::fs::write(path("text.gguf"), b"hello world, this is no model").unwrap();
    for name in ["short.gguf", "text.gguf"] {
        assert_error(&akunu(["generate", "-m", &path(name), "-p", "x"]), name);
    }
    let bert = asset("minilm", "minilm", "config.json");
    let bert = std::path::Path::new(&bert).parent().unwrap();
    let bert = akunu(["generate", "-m", bert.to_str().unwrap(), "-p", "x"]);
    assert_error(&bert, "do not generate text");
    let mut header = akunu_gguf::GgufHeader::new();
    header.set("general.architecture", "mamba9");
    header.create(path("arch.gguf")).unwrap().finish().unwrap();
    let unknown = akunu(["generate", "-m", &path("arch.gguf"), "-p", "x"]);
    assert_error(&unknown, "mamba9");
    assert!(unknown.stderr.contains("llama"), "{}", unknown.stderr);
}
