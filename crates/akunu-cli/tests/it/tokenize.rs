//! `tokenize` from the outside.

use crate::program::{Finished, akunu, akunu_reads, assert_error, asset, smollm2};

/// Runs `tokenize` with this input.
fn tokenize(model: &str, flags: &[&str], input: &[u8]) -> Finished {
    let arguments = ["tokenize", "-m", model]
        .into_iter()
        .chain(flags.iter().copied());
    akunu_reads(arguments, input)
}

/// Scripts compare this line with other programs: not a character more.
#[test]
fn ids_are_one_line_and_decode_to_the_input() {
    let text = "def f(x):\n    return x  # naïve 日本語 🙂\n";
    let ids = tokenize(&smollm2(), &["--ids"], text.as_bytes());
    assert_eq!(ids.code, 0, "{}", ids.stderr);
    let words: Vec<&str> = ids.stdout.strip_suffix('\n').unwrap().split(' ').collect();
    assert!(words.len() > 10);
    assert!(
        words.iter().all(|word| word.parse::<u32>().is_ok()),
        "{}",
        ids.stdout
    );
    let back = tokenize(&smollm2(), &["--decode"], ids.stdout.as_bytes());
    assert_eq!(back.stdout, text);
}

#[test]
fn control_tokens_are_read_only_when_asked() {
    let count = |flags: &[&str]| {
        let done = tokenize(&smollm2(), flags, b"<|im_end|>");
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout.split_whitespace().count()
    };
    assert_eq!(count(&["--ids", "--parse-special"]), 1);
    assert!(count(&["--ids"]) > 1, "plain text may not end a turn");
}

#[test]
fn empty_input_is_an_empty_line() {
    let done = tokenize(&smollm2(), &["--ids"], b"");
    assert_eq!((done.code, done.stdout.as_str()), (0, "\n"));
}

#[test]
fn without_flags_each_token_is_shown() {
    let done = tokenize(&smollm2(), &[], b"Hello world");
    assert_eq!(done.code, 0, "{}", done.stderr);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", done.stdout);
    assert!(lines[1].ends_with("\t\" world\""), "{}", done.stdout);
}

/// [CLS] is 101 and [SEP] is 102 in BERT's vocabulary.
#[test]
fn a_folder_uses_its_tokenizer_json() {
    let json = asset("minilm", "tokenizer.json");
    let folder = std::path::Path::new(&json)
        .parent()
        .unwrap()
        .to_str()
        .unwrap();
    for model in [json.as_str(), folder] {
        let done = tokenize(model, &["--ids", "--add-special"], b"hello");
        assert_eq!(done.stdout, "101 7592 102\n", "{}", done.stderr);
    }
}

#[test]
fn bad_input_is_named() {
    assert_error(&tokenize(&smollm2(), &["--ids"], b"ab\xff"), "byte 2");
    assert_error(&tokenize(&smollm2(), &["--decode"], b"1 two 3"), "`two`");
    assert_error(&tokenize(&smollm2(), &["--decode"], b"49152"), "49151");
    assert_error(
        &tokenize("/no/such/model.gguf", &["--ids"], b"x"),
        "model.gguf",
    );
    assert_eq!(akunu(["tokenize", "--ids"]).code, 2, "a model is needed");
}

/// Fails when a control token is lost on the way to ids and back.
#[test]
fn control_tokens_are_decoded_too() {
    let text = "<|im_start|>hi there<|im_end|>\n caf\u{e9}";
    let flags = ["--ids", "--parse-special"];
    let ids = tokenize(&smollm2(), &flags, text.as_bytes());
    let back = tokenize(&smollm2(), &["--decode"], ids.stdout.as_bytes());
    assert_eq!(back.stdout, text);
}
