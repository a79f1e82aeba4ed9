//! `perplexity`, `bench` and `devices` from the outside. No test here asserts a time.

use crate::program::{self, akunu, assert_error, assert_usage, smollm2};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

fn json(arguments: &[&str]) -> Value {
    let run = akunu(arguments);
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// English is far more probable than the same words in another order, and both are in the range of
/// what such a model gives. Two chunks of 32: 15 tokens scored in each.
#[test]
fn a_text_is_less_surprising_than_its_words_shuffled() {
    let folder = tempfile::tempdir().unwrap();
    let text = "The sun is a star. It is the star nearest to the Earth, and the Earth goes around it \
                once a year. The moon goes around the Earth about once a month, and the light that \
                comes from it is the light of the sun. Without the sun there would be no life on the \
                Earth, because plants need its light to grow, and animals need plants to eat.";
    let mut words: Vec<&str> = text.split(' ').collect();
    words.sort_unstable_by_key(|word| word.bytes().map(u32::from).sum::<u32>() % 17);
    let perplexity = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        let model = smollm2();
        let flags = [
            "perplexity",
            "-m",
            &model,
            "-f",
            path,
            "--ctx",
            "32",
            "--json",
        ];
        json(&flags)
    };
    let plain = perplexity("plain.txt", text);
    assert_eq!(plain.get("scores"), None);
    assert_eq!(plain["chunks"], 2);
    assert_eq!(plain["scored"], 30);
    assert_eq!(
        (plain["ctx"].clone(), plain["device"].clone()),
        (32.into(), "cpu".into())
    );
    let value = |report: &Value| report["perplexity"].as_f64().unwrap();
    let shuffled = perplexity("shuffled.txt", &words.join(" "));
    assert!((2.0..40.0).contains(&value(&plain)), "{plain}");
    assert!(value(&shuffled) > 5.0 * value(&plain), "{shuffled} {plain}");
}

/// Fails when the scores are not those that the perplexity and its error are made of, or when the text says something else.
#[test]
fn the_scores_give_the_perplexity_and_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.txt");
    std::fs::write(&path, "One of 12 men saw a red fox, and it ran. ".repeat(4)).unwrap();
    let model = smollm2();
    let fixed = ["perplexity", "-m", &model, "--ctx", "16", "-f"];
    let fixed = [&fixed[..], &[path.to_str().unwrap()]].concat();
    let report = json(&[&fixed[..], &["--json", "--scores"]].concat());
    let scores = report["scores"].as_array().unwrap();
    let surprises: Vec<f64> = scores.iter().map(|log| -log.as_f64().unwrap()).collect();
    let n = surprises.len() as f64;
    assert_eq!(report["scored"], surprises.len());
    let mean = surprises.iter().sum::<f64>() / n;
    let squares: f64 = surprises.iter().map(|s| (s - mean).powi(2)).sum();
    let [perplexity, error] =
        ["perplexity", "standard_error"].map(|key| report[key].as_f64().unwrap());
    let expected = mean.exp() * (squares / (n - 1.0)).sqrt() / n.sqrt();
    assert!((perplexity / mean.exp() - 1.0).abs() < 1e-9, "{report}");
    assert!((error / expected - 1.0).abs() < 1e-9, "{report}");
    let text = akunu(&fixed).stdout;
    let wanted = format!("perplexity {perplexity:.4} ± {error:.4} ({n} tokens scored in ");
    assert!(text.starts_with(&wanted), "{text} instead of {wanted}");
    let without_json = akunu([&fixed[..], &["--scores"]].concat());
    assert_usage(&without_json, "--json");
}

#[test]
fn a_text_that_cannot_be_scored_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("short.txt");
    std::fs::write(&path, "Too short.").unwrap();
    let path = path.to_str().unwrap();
    let model = smollm2();
    let run = |flags: &[&str]| akunu([&["perplexity", "-m", &model], flags].concat());
    assert_error(&run(&["-f", path]), "less than one chunk of 512");
    assert_error(&run(&["-f", path, "--ctx", "2"]), "nothing to score");
    assert_error(&run(&["-f", "no-such.txt"]), "no-such.txt");
    let beyond = run(&["-f", path, "--ctx", "9000"]).stderr;
    let wanted = "warning: a chunk has 9000 tokens, but the model was trained for 8192";
    assert!(beyond.starts_with(wanted), "{beyond}");
    std::fs::write(path, b"\xff\xfe").unwrap();
    assert_error(&run(&["-f", path]), "short.txt: byte 0 is not UTF-8");
    assert_usage(&run(&[]), "--file");
}

/// One row for each test and number of threads; shapes only, since speeds are the machine's.
#[test]
fn bench_has_a_row_for_each_test() {
    let model = smollm2();
    let flags = [
        "-p", "8,4", "-n", "2", "--depth", "0,6", "-t", "1,999", "-r", "2",
    ];
    let fixed = ["bench", "-m", &model, "--skip-floor"];
    let report = json(&[&fixed[..], &flags, &["--json"]].concat());
    assert_eq!(report["parameters"], 134_515_008);
    let groups = report["groups"].as_array().unwrap();
    let threads: Vec<u64> = groups
        .iter()
        .map(|g| g["threads"].as_u64().unwrap())
        .collect();
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    assert_eq!(threads.first(), Some(&1));
    assert_eq!(threads.last(), Some(&cores), "999 are not started");
    for group in groups {
        let results = group["results"].as_array().unwrap();
        let names: Vec<&str> = results
            .iter()
            .map(|r| r["test"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["pp8", "pp4", "tg2", "tg2 @ d6"]);
        assert!(
            results
                .iter()
                .all(|r| r["samples"].as_array().unwrap().len() == 2)
        );
        assert!(
            results
                .iter()
                .all(|r| r["mean_tok_s"].as_f64().unwrap() > 0.0)
        );
        assert!(group["load_ms"].as_f64().unwrap() > 0.0);
    }
    let table = akunu([&fixed[..], &["-p", "0", "-n", "1", "-t", "1", "-r", "1"]].concat());
    assert_eq!(table.code, 0, "{}", table.stderr);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", table.stdout);
    assert!(lines[2].contains("| tg1 ") && lines[2].contains("134.5 M"));
    assert_usage(&akunu(["bench", "-r", "0"]), "1..");
    let nothing = akunu([&fixed[..], &["-p", "0", "-n", "0"]].concat());
    assert_error(&nothing, "nothing to measure");
    let huge = akunu([&fixed[..], &["-p", "4000000000", "-n", "0"]].concat());
    assert_error(&huge, "a context of 4000000000 tokens");
    assert!(!huge.stderr.contains("--ctx"), "bench has no such flag");
    assert_usage(&akunu(["bench", "-t", "two"]), "two");
}

/// Fails when a text is left out, when guesses change an answer, or when the answer by a schema is not measured.
#[test]
fn bench_answers_texts_with_and_without_guesses() {
    let model = smollm2();
    let flags = [
        "bench",
        "-m",
        &model,
        "--skip-floor",
        "-p",
        "0",
        "-n",
        "0",
        "-t",
        "1",
        "-r",
        "1",
    ];
    let report = json(&[&flags[..], &["--texts", "3", "--json"]].concat());
    let texts = report["groups"][0]["texts"].as_array().unwrap();
    let names: Vec<&str> = texts
        .iter()
        .map(|text| text["text"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["edit a file", "answer", "prose"]);
    for text in texts {
        assert_eq!(
            (&text["is_same"], &text["tokens"]),
            (&true.into(), &3.into())
        );
        assert!(text["tok_s_with"].as_f64().unwrap() > 0.0);
    }
    let form = &report["groups"][0]["form"];
    // What only one text allows comes beside the tokens that are chosen.
    assert_eq!(form["tokens_free"], 3, "{form}");
    for figure in ["tok_s_free", "tok_s_formed", "mask_us_p50", "mask_us_p99"] {
        assert!(form[figure].as_f64().unwrap() > 0.0, "{figure}: {form}");
    }
    assert_usage(&akunu(["bench", "--texts", "1"]), "2..");
}

/// The warning comes before the long work; the test does not wait for that.
#[test]
fn bench_warns_about_prompts_beyond_the_training() {
    let model = smollm2();
    let flags = [
        "bench",
        "-m",
        &model,
        "--skip-floor",
        "-p",
        "9000",
        "-n",
        "0",
    ];
    let mut child = program::command(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stderr = BufReader::new(child.stderr.take().unwrap()).read_line(&mut line);
    child.kill().unwrap();
    child.wait().unwrap();
    stderr.unwrap();
    let wanted = "warning: the largest test has 9000 tokens, but the model was trained for 8192";
    assert!(line.starts_with(wanted), "{line}");
}

/// Several sequences at once: a step writes a token of each, so that it takes as long as so many tokens.
#[test]
fn bench_has_a_row_for_each_number_of_sequences() {
    let model = smollm2();
    let fixed = ["bench", "-m", &model, "--skip-floor", "-p", "0", "-r", "1"];
    let flags = ["-n", "2", "--depth", "0,5", "--batch", "1,3", "--json"];
    let report = json(&[&fixed[..], &flags].concat());
    let results = report["groups"][0]["results"].as_array().unwrap();
    let names: Vec<&str> = results
        .iter()
        .map(|r| r["test"].as_str().unwrap())
        .collect();
    let wanted = [
        ("tg2", 1.0),
        ("tg2 @ b1", 1.0),
        ("tg2 @ b3", 3.0),
        ("tg2 @ d5", 1.0),
        ("tg2 @ d5 b1", 1.0),
        ("tg2 @ d5 b3", 3.0),
    ];
    assert_eq!(names, wanted.map(|(name, _)| name));
    for (result, (name, sequences)) in results.iter().zip(wanted) {
        let [speed, step] = ["mean_tok_s", "ms_a_step"].map(|key| result[key].as_f64().unwrap());
        let tokens_a_step = speed * step / 1e3;
        assert!((tokens_a_step - sequences).abs() < 1e-6, "{name}: {result}");
    }
    let table = akunu([&fixed[..], &["-n", "1", "--batch", "2"]].concat());
    assert_eq!(table.code, 0, "{}", table.stderr);
    assert!(table.stdout.contains("| tg1 @ b2 "), "{}", table.stdout);
    assert_usage(&akunu(["bench", "--batch", "257"]), "1..=256");
    assert_usage(&akunu(["bench", "--batch", "0"]), "1..=256");
}

/// Exactly one device is what auto takes, and it can be used.
#[test]
fn devices_say_what_auto_takes() {
    let devices = json(&["devices", "--json"]);
    let devices = devices.as_array().unwrap();
    let names: Vec<&str> = devices
        .iter()
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["cuda", "metal", "cpu", "sim", "twin"]);
    let auto: Vec<&Value> = devices.iter().filter(|d| d["auto"] == true).collect();
    assert_eq!(auto.len(), 1);
    assert_eq!(auto[0]["available"], true);
    assert_eq!(devices[2]["isa"][0], "scalar");
    let text = akunu(["devices"]).stdout;
    assert!(text.contains("* is what --device auto takes"), "{text}");
}
