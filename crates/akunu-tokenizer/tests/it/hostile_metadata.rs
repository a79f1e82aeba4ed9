//! Damaged and hostile vocabularies: each is an error that names the entry, none a panic.

use crate::support::{self, Entry, gguf};
use akunu_gguf::GgufFile;
use akunu_tokenizer::{EncodeOptions, Tokenizer};
use proptest::prelude::*;

type Make = fn() -> Entry<'static>;
type Entries<'a> = Vec<(&'a str, Entry<'a>)>;

/// A small byte-level BPE vocabulary that is right.
fn bpe<'a>() -> Entries<'a> {
    vec![
        ("tokenizer.ggml.model", Entry::Str("gpt2")),
        ("tokenizer.ggml.pre", Entry::Str("gpt-2")),
        (
            "tokenizer.ggml.tokens",
            Entry::Strings(vec!["<s>", "a", "b", "ab", "Ġ"]),
        ),
        (
            "tokenizer.ggml.token_type",
            Entry::I32s(vec![3, 1, 1, 1, 1]),
        ),
        ("tokenizer.ggml.merges", Entry::Strings(vec!["a b"])),
        ("tokenizer.ggml.bos_token_id", Entry::U32(0)),
    ]
}

/// A small SentencePiece vocabulary that is right.
fn spm<'a>() -> Entries<'a> {
    vec![
        ("tokenizer.ggml.model", Entry::Str("llama")),
        (
            "tokenizer.ggml.tokens",
            Entry::Strings(vec!["<unk>", "<s>", "▁", "a", "▁a"]),
        ),
        (
            "tokenizer.ggml.scores",
            Entry::F32s(vec![0.0, 0.0, -1.0, -2.0, -3.0]),
        ),
        (
            "tokenizer.ggml.token_type",
            Entry::I32s(vec![2, 3, 1, 1, 1]),
        ),
    ]
}

/// A small WordPiece vocabulary that is right.
fn wordpiece<'a>() -> Entries<'a> {
    let tokens = vec!["[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁he", "llo"];
    vec![
        ("tokenizer.ggml.model", Entry::Str("bert")),
        ("tokenizer.ggml.tokens", Entry::Strings(tokens)),
        (
            "tokenizer.ggml.token_type",
            Entry::I32s(vec![3, 3, 3, 3, 1, 1]),
        ),
    ]
}

/// Replaces one entry, or adds it.
fn with<'a>(mut entries: Entries<'a>, key: &'a str, value: Entry<'a>) -> Entries<'a> {
    entries.retain(|(name, _)| *name != key);
    entries.push((key, value));
    entries
}

fn without<'a>(mut entries: Entries<'a>, key: &str) -> Entries<'a> {
    entries.retain(|(name, _)| *name != key);
    entries
}

fn load(entries: &Entries<'_>) -> Result<Tokenizer, String> {
    let file = GgufFile::parse(gguf(entries)).expect("the container itself is right");
    Tokenizer::from_gguf(file.metadata()).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(entries: Entries<'_>, words: &[&str]) {
    let error = load(&entries).expect_err("this vocabulary is wrong");
    for word in words {
        assert!(error.contains(word), "{error:?} does not say {word:?}");
    }
}

fn ids(tokenizer: &Tokenizer, text: &str, add_special: bool) -> Vec<u32> {
    let options = EncodeOptions {
        add_special,
        ..EncodeOptions::default()
    };
    tokenizer.encode(text, options)
}

#[test]
fn the_small_vocabularies_work() {
    let tokenizer = load(&bpe()).unwrap();
    assert_eq!(ids(&tokenizer, "ab a", true), [3, 4, 1]);
    assert_eq!(tokenizer.decode(&[3, 4, 1]), "ab a");

    let tokenizer = load(&spm()).unwrap();
    assert_eq!(ids(&tokenizer, "aa a", true), [1, 4, 3, 4]);
    assert_eq!(tokenizer.decode(&[1, 4, 3, 4]), "aa a");

    let tokenizer = load(&wordpiece()).unwrap();
    assert_eq!(ids(&tokenizer, "Hello he", true), [2, 4, 5, 4, 3]);
    assert_eq!(ids(&tokenizer, "Bye", false), [1]);
    assert_eq!(tokenizer.decode(&[4, 5, 4]), "hello he");
}

#[test]
fn bos_is_added_when_the_file_says_so() {
    let entries = with(bpe(), "tokenizer.ggml.add_bos_token", Entry::Bool(true));
    assert_eq!(ids(&load(&entries).unwrap(), "a", true), [0, 1]);
    let entries = with(spm(), "tokenizer.ggml.add_bos_token", Entry::Bool(false));
    assert_eq!(ids(&load(&entries).unwrap(), "a", true), [4]);
    let entries = with(spm(), "tokenizer.ggml.add_space_prefix", Entry::Bool(false));
    assert_eq!(ids(&load(&entries).unwrap(), "a", false), [3]);
}

#[test]
fn unknown_algorithms_are_named() {
    for name in ["rwkv", "plamo2", "no_vocab", ""] {
        let entries = with(bpe(), "tokenizer.ggml.model", Entry::Str(name));
        refused(entries, &[&format!("`{name}`"), "gpt2", "llama", "bert"]);
    }
    refused(
        without(bpe(), "tokenizer.ggml.model"),
        &["tokenizer.ggml.model"],
    );
}

#[test]
fn unknown_pre_tokenizers_are_named() {
    let entries = with(bpe(), "tokenizer.ggml.pre", Entry::Str("martian"));
    refused(entries, &["`martian`", "llama-bpe", "qwen2"]);
    load(&without(bpe(), "tokenizer.ggml.pre")).expect("a missing one is `default`");
}

#[test]
fn arrays_of_other_types_are_refused() {
    let wrong: &[(&str, Make)] = &[
        ("tokenizer.ggml.tokens", || Entry::I32s(vec![1; 5])),
        ("tokenizer.ggml.tokens", || Entry::Str("a")),
        ("tokenizer.ggml.token_type", || Entry::F32s(vec![1.0; 5])),
        ("tokenizer.ggml.token_type", || Entry::Strings(vec!["1"; 5])),
        ("tokenizer.ggml.merges", || Entry::F32s(vec![1.0])),
        ("tokenizer.ggml.merges", || Entry::Str("a b")),
        ("tokenizer.ggml.bos_token_id", || Entry::Str("0")),
        ("tokenizer.ggml.add_bos_token", || Entry::U32(1)),
    ];
    for (key, value) in wrong {
        refused(with(bpe(), key, value()), &[key]);
    }
    let strings = Entry::Strings(vec!["0"; 5]);
    refused(
        with(spm(), "tokenizer.ggml.scores", strings),
        &["tokenizer.ggml.scores"],
    );
}

#[test]
fn lengths_must_agree() {
    let key = "tokenizer.ggml.token_type";
    refused(with(bpe(), key, Entry::I32s(vec![1; 4])), &[key, "4", "5"]);
    let key = "tokenizer.ggml.scores";
    refused(
        with(spm(), key, Entry::F32s(vec![0.0; 6])),
        &[key, "6", "5"],
    );
}

#[test]
fn vocabularies_without_tokens_are_refused() {
    let empty = || Entry::Strings(Vec::new());
    refused(
        with(bpe(), "tokenizer.ggml.tokens", empty()),
        &["tokenizer.ggml.tokens", "0"],
    );
    refused(
        without(bpe(), "tokenizer.ggml.tokens"),
        &["tokenizer.ggml.tokens"],
    );
    refused(
        without(bpe(), "tokenizer.ggml.merges"),
        &["tokenizer.ggml.merges"],
    );
    refused(
        without(spm(), "tokenizer.ggml.scores"),
        &["tokenizer.ggml.scores"],
    );
}

#[test]
fn merges_must_name_known_tokens() {
    let merges = |merge| {
        with(
            bpe(),
            "tokenizer.ggml.merges",
            Entry::Strings(vec!["a b", merge]),
        )
    };
    refused(merges("a z"), &["entry 1", "\"a z\"", "\"z\""]);
    refused(merges("z a"), &["entry 1", "\"z\""]);
    // Both parts are tokens; what they make is not, and is longer than every token.
    refused(merges("ab ab"), &["entry 1", "\"abab\""]);
    for malformed in ["", "ab", "a ", " "] {
        refused(merges(malformed), &["entry 1", "two tokens and a space"]);
    }
}

#[test]
fn ids_must_be_inside_of_the_vocabulary() {
    for key in [
        "tokenizer.ggml.bos_token_id",
        "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.unknown_token_id",
        "tokenizer.ggml.padding_token_id",
    ] {
        refused(with(bpe(), key, Entry::U32(5)), &[key, "5"]);
        refused(with(bpe(), key, Entry::U32(u32::MAX)), &[key]);
    }
}

#[test]
fn tokens_must_differ_but_holes_may_repeat() {
    let key = "tokenizer.ggml.tokens";
    let twice = Entry::Strings(vec!["<s>", "a", "b", "ab", "a"]);
    refused(with(bpe(), key, twice), &["1", "4", "\"a\""]);
    let holes = Entry::Strings(vec!["", "a", "b", "ab", ""]);
    let entries = with(bpe(), key, holes);
    assert_eq!(ids(&load(&entries).unwrap(), "ab", false), [3]);
}

/// All special tokens are one automaton, whose memory is bounded.
#[test]
fn special_tokens_must_not_be_endless() {
    let long = "x".repeat((1 << 24) + 1);
    let tokens = Entry::Strings(vec![&long, "a", "b", "ab", "Ġ"]);
    refused(
        with(bpe(), "tokenizer.ggml.tokens", tokens),
        &["special tokens", "16777216"],
    );
    let long = "x".repeat(4097);
    let tokens = Entry::Strings(vec![&long, "a", "b", "ab", "Ġ"]);
    refused(
        with(bpe(), "tokenizer.ggml.tokens", tokens),
        &["token 0", "special token of 4097 bytes", "4096"],
    );
}

#[test]
fn scores_must_be_numbers() {
    let scores = Entry::F32s(vec![0.0, f32::NAN, 0.0, 0.0, 0.0]);
    refused(with(spm(), "tokenizer.ggml.scores", scores), &["token 1"]);
}

#[test]
fn flags_need_their_tokens() {
    let entries = without(bpe(), "tokenizer.ggml.bos_token_id");
    let entries = with(entries, "tokenizer.ggml.add_bos_token", Entry::Bool(true));
    refused(entries, &["tokenizer.ggml.bos_token_id"]);
    let entries = with(bpe(), "tokenizer.ggml.add_eos_token", Entry::Bool(true));
    refused(entries, &["tokenizer.ggml.eos_token_id"]);
    let no_unknown = Entry::Strings(vec!["x", "<s>", "▁", "a", "▁a"]);
    refused(
        with(spm(), "tokenizer.ggml.tokens", no_unknown),
        &["tokenizer.ggml.unknown_token_id"],
    );
}

/// Text that makes a tokenizer work hardest: long runs without a place to cut.
#[test]
fn long_runs_are_tokenized() {
    for entries in [bpe(), spm(), wordpiece()] {
        let tokenizer = load(&entries).unwrap();
        for run in ["a", "ab", " ", "\n", "é", "🦀"] {
            let text = run.repeat(50_000);
            let _ = ids(&tokenizer, &text, false);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any text at all, through every algorithm, with and without special tokens.
    #[test]
    fn encoding_never_panics(text: String, add_special: bool, parse_special: bool) {
        for entries in [bpe(), spm(), wordpiece()] {
            let tokenizer = load(&entries).unwrap();
            let ids = tokenizer.encode(&text, EncodeOptions { add_special, parse_special, ..EncodeOptions::default() });
            prop_assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
            let _ = tokenizer.decode(&ids);
        }
    }

    /// Any ids at all.
    #[test]
    fn decoding_never_panics(ids: Vec<u32>, near in prop::collection::vec(0u32..8, 0..20)) {
        let tokenizer = load(&spm()).unwrap();
        let mut stream = tokenizer.stream();
        for id in ids.iter().chain(&near) {
            let _ = stream.push(*id);
        }
        let _ = (stream.finish(), tokenizer.decode(&ids), tokenizer.decode(&near));
    }
}

/// With a token for every byte, every text comes back.
#[test]
fn byte_level_texts_come_back() {
    let path = support::asset("llama-cpp-vocabs", "ggml-vocab-gpt-2.gguf");
    let file = GgufFile::open(path).unwrap();
    let tokenizer = Tokenizer::from_gguf(file.metadata()).unwrap();
    proptest!(ProptestConfig::with_cases(256), |(text: String)| {
        prop_assert_eq!(tokenizer.decode(&ids(&tokenizer, &text, false)), text);
    });
}
