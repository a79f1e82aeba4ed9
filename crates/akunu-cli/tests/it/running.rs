//! `generate` from the outside, with real models.

use crate::program::{self, akunu, assert_error, assert_usage, asset, smollm2};
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

/// The same question to the fast device, as fast and as exactly as it can, and to the reference.
#[test]
fn the_reference_device_agrees() {
    let ids = |device: &str, more: &[&str]| {
        let prompt = "The capital of France is";
        let flags = ["-p", prompt, "-n", "2", "--json", "--device", device];
        let report = report(&[&flags, more].concat());
        assert_eq!(report["device"], device);
        report["ids"].clone()
    };
    let reference = ids("twin", &[]);
    assert_eq!(ids("cpu", &[]), reference);
    assert_eq!(ids("cpu", &["--exact"]), reference);
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
        (["--top-k", "-2"], "--top-k"),
        (["-n", "-2"], "-1 for no limit"),
        (["-n", "few"], "-1 for no limit"),
        (["--stop", ""], "--stop"),
        (["--min-p", "2"], "from 0 to 1"),
        (["--temp", "-1"], "0 or more"),
        (["--temp", "NaN"], "0 or more"),
        (["--repeat-penalty", "0"], "above 0"),
        (["--seed", "x"], "-1 for a random one"),
        (["--seed", "-2"], "-1 for a random one"),
        (["--ctx", "0"], "--ctx"),
        (["--ctx", "-5"], "-5 is not in 1.."),
        (["--top-k", "9999999999"], "from 0 to 4294967295"),
        (["--grammar", ""], "--grammar"),
        (["--json-schema", ""], "--json-schema"),
        (["--lora", ":0.5"], "there is no file"),
        (["--device", "tpu"], "auto, cpu, cuda, metal, sim, twin"),
        (["--device", "cuda:x"], "auto, cpu, cuda, metal, sim, twin"),
        (["--isa", "sse"], "avx512"),
    ];
    for (flags, names) in wrong {
        let fixed = ["generate", "-m", "no-such-file.gguf", "-p", "Hello"];
        assert_usage(&akunu(fixed.into_iter().chain(flags)), names);
    }
    assert_usage(
        &akunu(["generate", "-m", "x.gguf"]),
        "--prompt <TEXT>|--file <FILE>",
    );
    for option in ["--prompt-logprobs", "--choices"] {
        let lines = ["generate", "-p", "x", "--json-lines", option, "2"];
        assert_usage(&akunu(lines), "cannot be used with");
    }
    let both = ["generate", "-p", "x", "--json", "--json-lines"];
    assert_usage(&akunu(both), "cannot be used with");
}

#[test]
fn what_cannot_run_is_said_in_one_sentence() {
    let long = "word ".repeat(100);
    assert_error(&generate(&["-p", &long]), "do not fit a context of 64");
    assert_error(&generate(&["-f", "no-such-text.txt"]), "no-such-text.txt");
    assert_error(&generate(&["-p", ""]), "the prompt is empty");
    let guided = |option: &str, text: &str| generate(&["-p", "x", option, text]);
    let long = "no-rules-at-all ".repeat(1000);
    let done = guided("--grammar", &long);
    assert_error(&done, "…`, and it is not a grammar");
    assert!(done.stderr.len() < 300, "{}", done.stderr);
    let file = guided("--json-schema", "no-such.json");
    assert_error(&file, "there is no file `no-such.json`");
    for schema in ["false", "5"] {
        let done = guided("--json-schema", schema);
        assert_eq!(done.code, 1, "{}", done.stderr);
        assert!(!done.stderr.contains("no file"), "{}", done.stderr);
    }
    assert_error(&guided("--choice", "yes,,no"), "string 2 of the choice");
    assert_error(&generate(&["-p", "x", "--threads", "0"]), "0 threads");
    #[cfg(not(target_os = "macos"))]
    assert_error(
        &generate(&["-p", "x", "--device", "metal"]),
        "no Metal device",
    );
    #[cfg(not(feature = "cuda"))]
    assert_error(
        &generate(&["-p", "x", "--device", "cuda:1"]),
        "--features cuda",
    );
    // No machine has a hundred GPUs; this one may have none, and no driver.
    #[cfg(feature = "cuda")]
    assert_error(
        &generate(&["-p", "x", "--device", "cuda:99"]),
        "there is no cuda device",
    );
    #[cfg(not(feature = "sim"))]
    assert_error(&generate(&["-p", "x", "--device", "sim"]), "--features sim");
    let model = smollm2();
    let huge = ["generate", "-m", &model, "-p", "x", "--ctx", "16000000"];
    let huge = akunu(huge);
    assert_error(&huge, "16000000 tokens");
    assert!(huge.stderr.contains("--ctx N"), "{}", huge.stderr);
}

/// More threads than cores wait for each other's turn: a machine with all of them hardly answers.
#[test]
fn threads_beyond_the_cores_are_not_started() {
    let run = generate(&["-p", "The capital of France is", "-n", "1", "-t", "999"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, " Paris\n"));
    let cores = std::thread::available_parallelism().unwrap();
    let wanted = format!("warning: 999 threads were asked for; {cores} are used");
    assert!(run.stderr.starts_with(&wanted), "{}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn a_prompt_may_come_from_standard_input() {
    let model = smollm2();
    let flags = ["generate", "-m", &model, "-f", "-", "-n", "1"];
    let run = program::akunu_reads(flags, b"The capital of France is");
    assert_eq!((run.code, run.stdout.as_str()), (0, " Paris\n"));
    assert_error(
        &program::akunu_reads(flags, b"caf\xe9"),
        "standard input: byte 3",
    );
}

/// Counting goes on and on. A context of 100 has a place for each token but the last one, which is chosen
/// when there is none left.
#[test]
fn without_a_limit_the_text_ends_with_the_context() {
    let model = smollm2();
    let prompt = "1, 2, 3, 4, 5, 6,";
    let fixed = ["generate", "-m", &model, "--ctx", "100", "-p", prompt];
    let run = akunu(fixed.into_iter().chain(["-n", "-1", "--json"]));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["stop"], "context", "{report}");
    let [n_prompt, n] = ["prompt_ids", "ids"].map(|key| report[key].as_array().unwrap().len());
    assert_eq!(n_prompt + n, 101);
}

#[test]
fn a_random_seed_is_told_and_can_be_given_again() {
    let flags = ["-p", "Once", "-n", "8", "--temp", "1.5", "--json", "--seed"];
    let first = generate(&[&flags[..], &["-1"]].concat());
    let found: Value = serde_json::from_str(&first.stdout).unwrap();
    let seed = found["seed"].as_u64().unwrap().to_string();
    assert_eq!(first.stderr, format!("seed {seed}\n"));
    assert_eq!(
        report(&[&flags[..], &[&seed]].concat())["ids"],
        found["ids"]
    );
    let second = report(&[&flags[..], &["-1"]].concat());
    assert_ne!(second["seed"], found["seed"], "they are drawn anew");
}

/// The text ends before whichever stop text comes first.
#[test]
fn stop_texts_end_the_answer() {
    let prompt = "1, 2, 3, 4, 5, 6,";
    let report = report(&[
        "-p", prompt, "-n", "30", "--stop", "zebra", "--stop", ", 9", "--json",
    ]);
    assert_eq!(
        (&report["text"], &report["stop"]),
        (&" 7, 8".into(), &"stop".into())
    );
}

/// Breaks when there is a largest number of candidates again, or when a single one is not the best.
#[test]
fn any_number_of_candidates_can_be_drawn_from() {
    let flags = ["-p", "Once", "-n", "4", "--temp", "1", "--json", "--top-k"];
    let many = generate(&[&flags[..], &["1000"]].concat());
    assert_eq!(many.code, 0, "{}", many.stderr);
    assert!(!many.stderr.contains("--top-k"), "{}", many.stderr);
    let one = report(&[&flags[..], &["1"]].concat());
    let best = report(&["-p", "Once", "-n", "4", "--temp", "0", "--json"]);
    assert_eq!(one["ids"], best["ids"]);
}

/// A model with a short memory of its own, which --ctx can make longer but not better.
#[test]
fn a_prompt_beyond_the_training_is_told() {
    let long = "word ".repeat(8200);
    let model = smollm2();
    let flags = [
        "generate", "-m", &model, "-p", &long, "-n", "1", "--ctx", "100",
    ];
    let run = akunu(flags);
    assert_eq!(run.code, 1);
    let wanted = "warning: the prompt has 8201 tokens, but the model was trained for 8192";
    assert!(run.stderr.starts_with(wanted), "{}", run.stderr);
}

/// The names are a promise to scripts. Each line is an object by itself, and all text together is that
/// of the whole answer.
#[test]
fn json_lines_are_the_tokens_as_they_come() {
    let flags = ["-p", "A smiling face: 😀😃", "-n", "12"];
    let whole = report(&[&flags[..], &["--json"]].concat());
    let run = generate(&[&flags[..], &["--json-lines"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines = run.stdout.lines();
    let mut lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = lines.pop().unwrap();
    let ids: Vec<&Value> = lines.iter().map(|line| &line["id"]).collect();
    let ids: Vec<&Value> = ids.into_iter().filter(|id| !id.is_null()).collect();
    assert_eq!(
        ids,
        whole["ids"].as_array().unwrap().iter().collect::<Vec<_>>()
    );
    let text: String = lines
        .iter()
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, whole["text"]);
    assert_eq!((&end["stop"], &end["n"]), (&whole["stop"], &12.into()));
    assert_eq!(
        end["n_prompt"],
        whole["prompt_ids"].as_array().unwrap().len()
    );
    assert_eq!((&end["seed"], &end["device"]), (&0.into(), &"cpu".into()));
    assert!(end["timings"]["decode_tok_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn files_that_are_no_models_are_named() {
    let missing = akunu(["generate", "-m", "no-such-file.gguf", "-p", "Hello"]);
    assert_error(&missing, "no-such-file.gguf: cannot be opened");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let whole = std::fs::read(smollm2()).unwrap();
    std::fs::write(path("short.gguf"), &whole[..5_000_000]).unwrap();
    std::fs::write(path("text.gguf"), b"hello world, this is no model").unwrap();
    std::fs::write(path("shorter.gguf"), &whole[..100]).unwrap();
    std::fs::write(path("empty.gguf"), b"").unwrap();
    let bytes = format!("has 5000000 bytes of {}", whole.len());
    for (name, why) in [
        ("short.gguf", bytes.as_str()),
        ("shorter.gguf", "the download is incomplete"),
        ("empty.gguf", "the file is empty"),
        ("text.gguf", "begins with \"hell\""),
    ] {
        let run = akunu(["generate", "-m", &path(name), "-p", "x"]);
        assert_error(&run, name);
        assert!(run.stderr.contains(why), "no {why:?} in {}", run.stderr);
    }
    let weights = asset("minilm", "model.safetensors");
    assert_error(
        &akunu(["generate", "-m", &weights, "-p", "x"]),
        "give the folder",
    );
    let config = asset("minilm", "config.json");
    assert_error(
        &akunu(["generate", "-m", &config, "-p", "x"]),
        "give the folder",
    );
    let mut vocabulary = akunu_gguf::GgufHeader::new();
    vocabulary.set("general.architecture", "llama");
    vocabulary.set("tokenizer.ggml.tokens", &["a", "b"][..]);
    vocabulary
        .create(path("vocab.gguf"))
        .unwrap()
        .finish()
        .unwrap();
    let vocabulary = akunu(["generate", "-m", &path("vocab.gguf"), "-p", "x"]);
    assert_error(&vocabulary, "a vocabulary and no weights");
    let inspected = akunu(["inspect", &path("vocab.gguf")]).stdout;
    assert!(
        inspected.contains("none: the file has no tensors"),
        "{inspected}"
    );
    let bert = asset("minilm", "config.json");
    let bert = std::path::Path::new(&bert).parent().unwrap();
    let bert = akunu(["generate", "-m", bert.to_str().unwrap(), "-p", "x"]);
    assert_error(&bert, "do not generate text");
    let mut header = akunu_gguf::GgufHeader::new();
    header.set("general.architecture", "mamba9");
    header.create(path("arch.gguf")).unwrap().finish().unwrap();
    let unknown = akunu(["generate", "-m", &path("arch.gguf"), "-p", "x"]);
    assert_error(&unknown, "mamba9");
    assert!(unknown.stderr.contains("llama"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("nomic-bert"), "{}", unknown.stderr);
}

/// Fails when the grammar's options do not reach the engine, or when a file is taken for its name.
#[test]
fn answers_follow_a_grammar_from_the_command_line() {
    let schema = r#"{"type": "object", "properties": {"capital": {"type": "string", "maxLength": 9}},
        "required": ["capital"], "additionalProperties": false}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schema.json");
    std::fs::write(&path, schema).unwrap();
    let path = path.to_str().unwrap();
    let asked = ["-p", "The capital of France as JSON:", "-n", "40", "--json"];
    let with = |flags: &[&str]| report(&[&asked[..], flags].concat());
    let by_text = with(&["--json-schema", schema]);
    let answer: Value = serde_json::from_str(by_text["text"].as_str().unwrap()).unwrap();
    assert!(answer["capital"].is_string(), "{by_text}");
    assert_eq!(by_text["stop"], "grammar");
    assert_eq!(with(&["--json-schema", path])["ids"], by_text["ids"]);
    let model = smollm2();
    let piped = ["generate", "-m", &model, "--json-schema", "-"];
    let piped = program::command(piped.into_iter().chain(asked))
        .stdin(std::fs::File::open(path).unwrap())
        .output()
        .unwrap();
    let piped: Value = serde_json::from_slice(&piped.stdout).unwrap();
    assert_eq!(piped["stop"], "grammar", "{piped}");
    let date = with(&["--regex", "[0-9]{4}"]);
    assert_eq!(date["text"].as_str().unwrap().len(), 4);
    let choice = with(&["--choice", "Rome,Paris"]);
    let choice = choice["text"].as_str().unwrap();
    assert!(["Rome", "Paris"].contains(&choice), "{choice}");
    let lark = with(&["--grammar", "start: \"x\" /[0-9]+/ \"y\""]);
    assert!(lark["text"].as_str().unwrap().starts_with('x'));
}

/// Fails when something else than what was asked for is generated, or when nobody is told where the mistake is.
#[test]
fn grammars_that_cannot_be_used_are_errors() {
    let wrong = |flags: &[&str], said: &str| {
        let run = generate(&[&["-p", "x", "-n", "3"], flags].concat());
        assert_error(&run, said);
    };
    wrong(&["--json-schema", "{\"type\": \"strin\"}"], "strin");
    wrong(&["--json-schema", "missing.json"], "missing.json");
    wrong(&["--grammar", "start: other"], "other");
    wrong(&["--regex", "(a"], "unclosed group");
    let gemma = asset("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    wrong(&["--draft", &gemma], "vocabulary");
}

/// Fails when guesses change an answer, or when scripts are not told of them.
#[test]
fn guesses_change_nothing_and_are_counted() {
    let asked = [
        "-p",
        "one two three four one two three four one two",
        "-n",
        "20",
        "--json",
    ];
    let with = |lookup: &str| report(&[&asked[..], &["--lookup", lookup]].concat());
    let (on, off) = (with("on"), with("off"));
    assert_eq!(on["ids"], off["ids"]);
    assert_eq!(with("auto")["ids"], off["ids"]);
    assert!(on["speculation"]["drafted"].as_u64().unwrap() > 0, "{on}");
    assert_eq!(off["speculation"]["drafted"], 0);
    let model = smollm2();
    let draft = ["--lookup", "off", "--draft", &model, "--draft-tokens", "3"];
    let drafted = report(&[&asked[..], &draft].concat());
    assert_eq!(drafted["ids"], off["ids"]);
    let by_position = &drafted["speculation"]["drafted_by_position"];
    assert_eq!(by_position.as_array().map(Vec::len), Some(3), "{drafted}");
    let alone = generate(&["-p", "x", "--draft-tokens", "3"]);
    assert_usage(&alone, "--draft <MODEL>");
}

/// Fails when a model that has no block for multi-token prediction does not say so, or when a wrong number is taken.
#[test]
fn guesses_of_a_block_that_is_not_there_are_errors() {
    let with = |mtp: &str| generate(&["-p", "x", "-n", "3", "--mtp", mtp]);
    assert_error(&with("2"), "no block for multi-token prediction");
    for wrong in ["0", "32", "on"] {
        assert_usage(
            &with(wrong),
            "auto, off, or a number of tokens from 1 to 31",
        );
    }
    let same = ["auto", "off"].map(|mtp| report(&["-p", "x", "-n", "3", "--json", "--mtp", mtp]));
    assert_eq!(same[0]["ids"], same[1]["ids"]);
}
