//! Damaged and hostile `tokenizer.json` files: each is an error that names the file, none a panic.

use akunu_tokenizer::{EncodeOptions, Tokenizer, TokenizerConfig};
use proptest::prelude::*;
use std::path::Path;
use std::time::{Duration, Instant};

/// Far above what any of these takes, with libraries that are not optimised and other tests beside it.
const SOON: Duration = Duration::from_secs(30);

/// A small byte-level BPE file that is right.
const GOOD: &str = r#"{
  "version": "1.0",
  "added_tokens": [{"id": 3, "content": "<s>", "single_word": false, "lstrip": false,
                    "rstrip": false, "normalized": false, "special": true}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
  "post_processor": null,
  "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
}"#;

fn load(json: &str) -> Result<Tokenizer, String> {
    let config = TokenizerConfig::default();
    let loaded = Tokenizer::from_json(json.as_bytes(), &config, Path::new("x/tokenizer.json"));
    loaded.map_err(|error| error.to_string())
}

#[track_caller]
fn refused(json: &str) {
    let error = load(json).expect_err("this file is wrong");
    assert!(error.starts_with("x/tokenizer.json: "), "{error}");
}

#[test]
fn the_small_file_works() {
    let tokenizer = load(GOOD).unwrap();
    let encode = |parse_special| {
        let options = EncodeOptions {
            add_special: false,
            parse_special,
        };
        tokenizer.encode("ab<s>", options)
    };
    assert_eq!(encode(true), [2, 3]);
    assert_eq!(encode(false), [2], "the other characters have no tokens");
    assert_eq!(tokenizer.decode(&[2, 3, 0]), "aba");
}

/// A byte that is no UTF-8, in a part of the file that nobody reads.
#[test]
fn a_byte_that_is_no_text_is_refused() {
    let (head, tail) = GOOD.split_at(GOOD.find("1.0").unwrap());
    let bytes = [head.as_bytes(), b"\xff", tail.as_bytes()].concat();
    let config = TokenizerConfig::default();
    let loaded = Tokenizer::from_json(&bytes, &config, Path::new("x/tokenizer.json"));
    let error = loaded.expect_err("not UTF-8").to_string();
    assert!(error.starts_with("x/tokenizer.json: "), "{error}");
}

#[test]
fn damaged_files_are_refused() {
    refused("");
    refused("{}");
    refused("[1, 2]");
    refused(&GOOD.replace("\"a b\"", "\"a z\""));
    refused(&GOOD.replace("\"a b\"", "\"ab ab\""));
    refused(&GOOD.replace("\"a b\"", "7"));
    refused(&GOOD.replace("\"ab\": 2", "\"ab\": -2"));
    refused(&GOOD.replace("\"ab\": 2", "\"ab\": 4294967295"));
    refused(&GOOD.replace("\"ab\": 2", "\"ab\": 1"));
    refused(&GOOD.replace("\"ab\": 2", "\"ab\": 16000000"));
    refused(&GOOD.replace("\"id\": 3", "\"id\": 16000000"));
    refused(&GOOD.replace(
        "\"post_processor\": null",
        r#""post_processor": {"type": "BertProcessing", "sep": ["x", 9], "cls": ["a", 0]}"#,
    ));
    refused(&GOOD.replace("\"type\": \"BPE\"", "\"type\": \"Martian\""));
    refused(&GOOD.replace(
        "\"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true}",
        "\"decoder\": {\"type\": \"Fuse\"}",
    ));
    refused(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
}

/// The small file with another `field`, which was `null`.
fn with(field: &str, value: &str) -> String {
    let (was, is) = (
        format!("\"{field}\": null"),
        format!("\"{field}\": {value}"),
    );
    assert!(GOOD.contains(&was));
    GOOD.replace(&was, &is)
}

#[track_caller]
fn refused_for(json: &str, reason: &str) {
    let error = load(json).expect_err(reason);
    assert!(error.contains(reason), "{error}");
}

fn sequence(kind: &str, step: &str, n: usize) -> String {
    let steps = vec![step; n].join(",");
    format!(r#"{{"type": "Sequence", "{kind}": [{steps}]}}"#)
}

/// Without a limit the first of these makes a text of one letter into 128 MiB, and the others take as much.
#[test]
fn normalizers_that_make_texts_long_are_refused() {
    let replace = |pattern: &str, content: &str| {
        format!(r#"{{"type": "Replace", "pattern": {pattern}, "content": "{content}"}}"#)
    };
    let steps = |step: &str, n: usize| with("normalizer", &sequence("normalizers", step, n));
    let double = replace(r#"{"String": "a"}"#, "aa");
    refused_for(&steps(&double, 27), "`normalizer`");
    load(&steps(&double, 10)).expect("1024 times");
    refused_for(&steps(&double, 11), "2048 times longer");
    let long = "b".repeat(1_000_000);
    let replaced = replace(r#"{"String": "a"}"#, &long);
    refused_for(&steps(&replaced, 1), "1000000 times longer");
    let between = replace(r#"{"Regex": "x*"}"#, &long);
    refused_for(&steps(&between, 1), "1000001 times longer");
    let prepend = format!(r#"{{"type": "Prepend", "prepend": "{long}"}}"#);
    refused_for(&steps(&prepend, 1), "1000001 times longer");
    refused_for(&steps(r#"{"type": "NFKD"}"#, 3), "1331 times longer");
    refused_for(
        &steps(r#"{"type": "StripAccents"}"#, 64),
        "more than 64 steps",
    );
    let shrink = replace(r#"{"Regex": " {2,}"}"#, " ");
    load(&steps(&shrink, 60)).expect("a text does not grow");
}

#[test]
fn pre_tokenizers_of_many_steps_are_refused() {
    let null = GOOD.replace(
        r#""pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true}"#,
        r#""pre_tokenizer": null"#,
    );
    let steps = |step: &str, n: usize| {
        let steps = sequence("pretokenizers", step, n);
        null.replace(
            r#""pre_tokenizer": null"#,
            &format!(r#""pre_tokenizer": {steps}"#),
        )
    };
    let digits = r#"{"type": "Digits", "individual_digits": true}"#;
    load(&steps(digits, 63)).expect("64 steps with the sequence");
    for n in [64, 200_000] {
        refused_for(&steps(digits, n), "`pre_tokenizer` of more than 64 steps");
    }
    let metaspace = r#"{"type": "Metaspace", "replacement": "x"}"#;
    load(&steps(metaspace, 4)).expect("four of them");
    refused_for(&steps(metaspace, 5), "`pre_tokenizer` with more than 4");
}

/// Without a limit this takes a gigabyte.
#[test]
fn many_ids_around_a_text_are_refused() {
    let template = |n_uses: usize, n_ids: usize| {
        let uses = r#"{"SpecialToken": {"id": "s", "type_id": 0}},"#.repeat(n_uses);
        let ids = vec!["3"; n_ids].join(",");
        let template = format!(
            r#"{{"type": "TemplateProcessing", "single": [{uses} {{"Sequence": {{"id": "A", "type_id": 0}}}}], "pair": [],
                "special_tokens": {{"s": {{"id": "s", "ids": [{ids}], "tokens": []}}}}}}"#
        );
        with("post_processor", &template)
    };
    load(&template(8, 8)).expect("64 ids");
    refused_for(
        &template(13, 5),
        "`post_processor.single` with more than 64 ids",
    );
    refused_for(
        &template(8_000, 30_000),
        "`post_processor.single` with more than 64 ids",
    );
}

/// A name in the file may not steer the terminal that shows the error, nor fill it.
#[test]
fn errors_are_one_short_line() {
    let kind = format!(r"\u001b[2J{}", "x".repeat(100_000));
    let error = load(&GOOD.replace("\"type\": \"BPE\"", &format!("\"type\": \"{kind}\"")));
    let error = error.expect_err("no such model");
    assert!(error.contains(r"\u{1b}[2J"), "{error}");
    assert!(!error.contains(char::is_control), "{error:?}");
    assert!(error.len() < 1000, "{} bytes", error.len());
}

/// Tokens `t0`, `t1` and so on.
fn with_added_tokens(n: usize, normalized: bool) -> String {
    let added: Vec<String> = (0..n)
        .map(|at| {
            let id = at + 3;
            format!(r#"{{"id": {id}, "content": "t{at}", "normalized": {normalized}, "special": false, "single_word": false,
                    "lstrip": false, "rstrip": false}}"#)
        })
        .collect();
    let (head, tail) = GOOD.split_at(GOOD.find("\"normalizer\"").unwrap());
    let head = &head[..head.find('[').unwrap()];
    format!("{head}[{}], {tail}", added.join(","))
}

/// Breaks when the time to load grows with the square of the number of tokens: that would be minutes.
#[test]
fn many_added_tokens_are_loaded_soon() {
    for normalized in [false, true] {
        let json = with_added_tokens(100_000, normalized);
        let start = Instant::now();
        let tokenizer = load(&json).unwrap();
        let ids = tokenizer.encode("t99999t7", EncodeOptions::default());
        assert_eq!(ids, [100_002, 10]);
        assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
    }
}

#[test]
fn added_tokens_must_not_be_endless() {
    let content =
        |text: &str| GOOD.replace("\"content\": \"<s>\"", &format!("\"content\": \"{text}\""));
    load(&content(&"x".repeat(4096))).expect("the longest that is accepted");
    refused_for(&content(&"x".repeat(4097)), "the id 3 in `added_tokens`");
    // Short in the file, and long as the normalizer spells them.
    let (head, tail) = with_added_tokens(4_000, true)
        .split_once("t3999")
        .map(|(a, b)| (a.to_string(), b.to_string()))
        .unwrap();
    let long = head + &"t".repeat(4_000) + &tail;
    let grown = |times: usize| {
        let content = "y".repeat(times);
        let normalizer = format!(
            r#""normalizer": {{"type": "Replace", "pattern": {{"String": "z"}}, "content": "{content}"}}"#
        );
        long.replace("\"normalizer\": null", &normalizer)
    };
    load(&grown(100)).expect("no more than 4 MiB");
    refused_for(&grown(1_000), "more than 4194304 bytes of `added_tokens`");
}

#[test]
fn files_that_are_not_there_are_named() {
    let error = Tokenizer::from_file("no/such/tokenizer.json").unwrap_err();
    assert!(
        error.to_string().starts_with("no/such/tokenizer.json"),
        "{error}"
    );
}

#[test]
fn configurations_are_read_from_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        TokenizerConfig::from_folder(&folder).unwrap(),
        TokenizerConfig::default()
    );
    let json = r#"{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template":
        [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"}]}"#;
    std::fs::write(folder.path().join("tokenizer_config.json"), json).unwrap();
    let config = TokenizerConfig::from_folder(&folder).unwrap();
    assert_eq!(config.bos_token.as_deref(), Some("<s>"));
    assert_eq!(config.eos_token.as_deref(), Some("</s>"));
    assert_eq!(config.chat_template.as_deref(), Some("d"));
    std::fs::write(folder.path().join("chat_template.jinja"), "file").unwrap();
    let config = TokenizerConfig::from_folder(&folder).unwrap();
    assert_eq!(config.chat_template.as_deref(), Some("file"));
    std::fs::write(folder.path().join("tokenizer_config.json"), "{").unwrap();
    TokenizerConfig::from_folder(&folder).unwrap_err();
}

/// A small file of Unigram with the parts that the package takes on trust.
fn unigram() -> String {
    // A trie of 256 units, one of which ends the key `a`, and the replacement `b`.
    let mut charsmap = vec![0u8; 4 + 1024];
    charsmap[1] = 4;
    let mut unit = |place: usize, unit: u32| {
        charsmap[4 + 4 * place..][..4].copy_from_slice(&unit.to_le_bytes())
    };
    unit(usize::from(b'a'), u32::from(b'a') | 1 << 8 | 1 << 10);
    unit(usize::from(b'a') ^ 1, 1 << 31);
    charsmap.extend(b"b\0");
    let charsmap = base64::encode(charsmap);
    format!(
        r#"{{"version": "1.0", "added_tokens": [{{"id": 0, "content": "<unk>", "single_word": false, "lstrip": false,
            "rstrip": true, "normalized": true, "special": true}}],
        "normalizer": {{"type": "Sequence", "normalizers": [{{"type": "Strip", "strip_left": true, "strip_right": true}},
            {{"type": "Replace", "pattern": {{"Regex": " {{2,}}"}}, "content": " "}},
            {{"type": "Precompiled", "precompiled_charsmap": "{charsmap}"}}]}},
        "pre_tokenizer": {{"type": "Sequence", "pretokenizers": [{{"type": "WhitespaceSplit"}},
            {{"type": "FixedLength", "length": 5}},
            {{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}}]}},
        "post_processor": {{"type": "TemplateProcessing", "single": [{{"SpecialToken": {{"id": "s", "type_id": 0}}}},
            {{"Sequence": {{"id": "A", "type_id": 0}}}}], "pair": [], "special_tokens":
            {{"s": {{"id": "s", "ids": [1], "tokens": ["s"]}}}}}},
        "decoder": {{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}},
        "model": {{"type": "Unigram", "unk_id": 0, "byte_fallback": true,
            "vocab": [["<unk>", 0.0], ["▁b", -1.5], ["b", -2.0], ["▁", -3.0]]}}}}"#
    )
}

#[test]
fn the_small_file_of_unigram_works() {
    let tokenizer = load(&unigram()).unwrap();
    assert_eq!(
        tokenizer.encode(" ab  x", EncodeOptions::default()),
        [1, 2, 3, 0]
    );
}

/// Without the check the package reads past the end of the text, and panics.
#[test]
fn patterns_that_match_nothing_must_not_insert_before_a_step_that_changes_characters() {
    let pattern = |pattern: &str| {
        unigram().replace(r#""Regex": " {2,}""#, &format!(r#""Regex": "{pattern}""#))
    };
    for empty in [
        "|{2,}",
        " {0,}",
        "^",
        "x*",
        "(?=a)",
        "(?=a)|b",
        " ?",
        r"\\b",
        r"(?<=\\))",
    ] {
        refused_for(
            &pattern(empty),
            "matches an empty text, and a step \"Precompiled\"",
        );
    }
    let encode = |json: &str| {
        load(json)
            .unwrap()
            .encode("ab a<s> <unk>  aé", EncodeOptions::default())
    };
    for not_empty in ["(?<=a) ", "a(?!b)", r"(?<=(a|[)])) +", r"\\((?=a)"] {
        encode(&pattern(not_empty));
    }
    let hat = r#"{"type": "Replace", "pattern": {"Regex": "^"}, "content": "a"}"#;
    refused_for(&with("normalizer", hat), "a step \"ByteLevel\"");
    let nothing = hat.replace(r#""content": "a""#, r#""content": """#);
    encode(&with("normalizer", &nothing));
    let with_steps = |steps: &str| {
        let json = unigram();
        let (head, tail) = json.split_at(json.find(r#"[{"type": "Strip""#).unwrap());
        let tail = &tail[tail.find(r#""pre_tokenizer""#).unwrap()..];
        encode(&format!("{head}[{steps}]}}, {tail}"))
    };
    let prepend = r#"{"type": "Prepend", "prepend": "a"}"#;
    let strip = r#"{"type": "Strip", "strip_left": true, "strip_right": true}"#;
    assert_eq!(
        with_steps(&format!("{hat}, {strip}, {prepend}")),
        with_steps(&format!("{prepend}, {strip}, {prepend}")),
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// One byte replaced, anywhere.
    #[test]
    fn mutations_never_panic(at: prop::sample::Index, byte in 32u8..127, is_unigram: bool) {
        let mut bytes = if is_unigram { unigram() } else { GOOD.into() }.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let Ok(json) = String::from_utf8(bytes) else {
            return Ok(());
        };
        if let Ok(tokenizer) = load(&json) {
            let ids = tokenizer.encode("ab a<s> <unk>  aé", EncodeOptions::default());
            let _ = tokenizer.decode(&ids);
        }
    }
}

/// Without limits these take gigabytes, or end the process when the trie of the last one is dropped.
#[test]
fn vocabularies_that_take_much_memory_are_refused() {
    let start = Instant::now();
    let entries = |vocab: &str| {
        unigram().replace(r#"["<unk>", 0.0]"#, &format!(r#"["<unk>", 0.0], {vocab}"#))
    };
    let long = |at: usize| format!("[\"{at:06}{}\", -1]", "x".repeat(1000));
    let many: Vec<String> = (0..5_000).map(long).collect();
    refused_for(&entries(&many.join(",")), "trie has 5");
    refused_for(
        &entries(&format!("[\"{}\", -1]", "x".repeat(1025))),
        "a token of 1025 bytes",
    );
    let lists = format!("[{}]", vec!["[]"; 5 << 20].join(","));
    let nested = GOOD.replace("\"version\"", &format!("\"x\": {lists}, \"version\""));
    refused_for(&nested, "at most 4194304 are accepted");
    let depth = 50;
    let step = format!(
        "{}{}{}",
        r#"{"type": "Sequence", "normalizers": ["#.repeat(depth),
        r#"{"type": "NFC"}"#,
        "]}".repeat(depth)
    );
    refused_for(&with("normalizer", &step), "sequences inside of each other");
    assert!(start.elapsed() < SOON, "took {:?}", start.elapsed());
}

/// A file of a gigabyte is not read at all.
#[test]
fn huge_files_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::File::create(&path)
        .unwrap()
        .set_len(1 << 30)
        .unwrap();
    let error = Tokenizer::from_file(&path).unwrap_err().to_string();
    assert!(error.contains("larger than 134217728 bytes"), "{error}");
}
