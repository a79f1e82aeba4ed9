//! A `tokenizer.json` gives the ids that the package `tokenizers` gives by itself, whose steps ours calls one by one; control
//! tokens are found only where they are asked for.

use crate::support;
use akunu_tokenizer::{EncodeOptions, PromptPart, Tokenizer, TokenizerConfig};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use tokenizers::Model as _;

fn options(add_special: bool, parse_special: bool) -> EncodeOptions {
    EncodeOptions {
        add_special,
        parse_special,
        ..EncodeOptions::default()
    }
}

fn load(json: &[u8]) -> Result<Tokenizer, String> {
    let config = TokenizerConfig::default();
    let loaded = Tokenizer::from_json(json, &config, Path::new("x/tokenizer.json"));
    loaded.map_err(|error| error.to_string())
}

/// Both tokenizers of one file.
struct Pair {
    ours: Tokenizer,
    package: tokenizers::Tokenizer,
    /// The same, which takes special tokens for text.
    blind: tokenizers::Tokenizer,
}

impl Pair {
    fn new(json: &[u8]) -> Pair {
        let mut package: tokenizers::Tokenizer =
            std::str::from_utf8(json).unwrap().parse().unwrap();
        package.with_padding(None);
        package.with_truncation(None).unwrap();
        let mut blind = package.clone();
        blind.set_encode_special_tokens(true);
        Pair {
            ours: load(json).unwrap(),
            package,
            blind,
        }
    }

    #[track_caller]
    fn check(&self, text: &str) {
        for (add_special, parse_special) in [(false, true), (true, true), (true, false)] {
            let ours = self.ours.encode(text, options(add_special, parse_special));
            let package = match parse_special {
                true => &self.package,
                false => &self.blind,
            };
            let package = package.encode_fast(text, add_special).unwrap();
            assert_eq!(
                ours,
                package.get_ids(),
                "{text:?} {add_special} {parse_special}"
            );
        }
    }
}

/// Words, spaces of all kinds, digits, signs, accents and special tokens, mixed.
fn mixed_text() -> impl Strategy<Value = String> {
    let special = vec![
        "<s>",
        "</s>",
        "<|im_end|>",
        "<bos>",
        "[CLS]",
        "<mask>",
        " Word",
    ];
    let piece = prop_oneof![
        3 => "[ \t\r\n\u{a0}\u{2003}\u{3000}]{1,4}",
        3 => "[a-zA-ZéßñÅİς]{1,12}",
        2 => "[0-9½²٣]{1,7}",
        2 => "[!-/:-@\\[-`{-~…“”。，]{1,5}",
        1 => "[ЖдΩαक्िกあ漢字한글ʰ̈́🦀👍🏽\u{FFFD}\u{ad}\u{200d}\u{0}]{1,6}",
        1 => "\\PC{1,4}",
        2 => prop::sample::select(special).prop_map(str::to_string),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Breaks when a step is left out, called with other settings, or special tokens are found where they were not asked for.
#[test]
fn real_files_over_mixed_text() {
    for name in ["minilm", "tokenizer-llama3_2", "tokenizer-gemma3"] {
        let json = std::fs::read(support::asset(name, "tokenizer.json")).unwrap();
        let pair = Pair::new(&json);
        proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }, |(text in mixed_text())| {
            pair.check(&text);
        });
    }
}

/// A small file of one of the four models, with other parts.
fn file(model: &Value, parts: &Value) -> Vec<u8> {
    let added = |id: usize, content: &str, flags: Value| {
        let mut token = json!({"id": id, "content": content, "special": true, "lstrip": false,
            "rstrip": false, "single_word": false, "normalized": false});
        let flags = flags.as_object().unwrap().clone();
        token.as_object_mut().unwrap().extend(flags);
        token
    };
    let mut file = json!({
        "version": "1.0", "truncation": {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
            "pad_type_id": 0, "pad_token": "<unk>"},
        "added_tokens": [
            added(0, "<unk>", json!({})),
            added(1, "<s>", json!({})),
            added(2, "</s>", json!({"normalized": true})),
            added(9, "<mask>", json!({"lstrip": true, "rstrip": true})),
            added(10, "CaB", json!({"special": false, "normalized": true})),
        ],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null, "model": model,
    });
    for (name, part) in parts.as_object().unwrap() {
        file[name] = part.clone();
    }
    serde_json::to_vec(&file).unwrap()
}

/// The tokens 3 to 8.
const TEXTS: [&str; 6] = ["▁", "a", "b", "▁a", "ab", "##b"];

fn vocab() -> Value {
    let texts = ["<unk>", "<s>", "</s>"].into_iter().chain(TEXTS);
    texts
        .zip(0..)
        .map(|(text, id)| (text.to_string(), json!(id)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn bpe() -> Value {
    json!({"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
        "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
        "vocab": vocab(), "merges": [["▁", "a"], ["a", "b"]]})
}

fn word_piece() -> Value {
    json!({"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": vocab()})
}

fn word_level() -> Value {
    json!({"type": "WordLevel", "unk_token": "<unk>", "vocab": vocab()})
}

fn unigram() -> Value {
    let texts = ["<unk>", "<s>", "</s>"].into_iter().chain(TEXTS);
    let scored: Vec<Value> = texts
        .zip(0..)
        .map(|(text, at)| json!([text, -f64::from(at)]))
        .collect();
    json!({"type": "Unigram", "unk_id": 0, "vocab": scored, "byte_fallback": false})
}

/// Each model alone makes a control token of a text that spells one.
#[test]
fn no_model_makes_a_control_token_of_text() {
    for model in [bpe(), word_piece(), word_level(), unigram()] {
        let name = model["type"].clone();
        let tokenizer = load(&file(&model, &json!({}))).unwrap();
        let blind = tokenizer.encode("<s>", options(false, false));
        assert!(!blind.contains(&1), "{name}: {blind:?}");
        assert_eq!(tokenizer.encode("<s>", options(false, true)), [1], "{name}");
        let package: tokenizers::Tokenizer = String::from_utf8(file(&model, &json!({})))
            .unwrap()
            .parse()
            .unwrap();
        let alone = package.get_model().tokenize("<s>").unwrap();
        assert!(alone.iter().any(|token| token.id == 1), "{name}");
        let parts = ["a</s><s>b", "<mask>", "<s"].map(|text| PromptPart::Text(text.into()));
        let ids = tokenizer.encode_parts(&parts);
        assert!(
            ids.iter().all(|id| [0, 3, 4, 5, 6, 7, 8].contains(id)),
            "{name}: {ids:?}"
        );
    }
}

/// Texts of the letters of the small files, and a few others.
fn short_text() -> impl Strategy<Value = String> {
    let special = vec!["<s>", "</s>", "<mask>", "CaB", "cab", " "];
    let piece = prop_oneof![
        6 => "[abcéA _#\n▁漢]{1,8}",
        1 => prop::sample::select(special).prop_map(str::to_string),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Breaks when a step of the small files is left out: lengths and padding of the file are not for prompts.
#[test]
fn every_model_over_short_text() {
    let template = json!({"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "</s>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]},
            "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}});
    let metaspace = |scheme: &str| json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": true});
    let roberta = json!({"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1],
        "trim_offsets": true, "add_prefix_space": true});
    let sequence = json!({"type": "Sequence", "processors": [
        {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true}, template]});
    let parts = [
        json!({"post_processor": template, "pre_tokenizer": metaspace("first")}),
        json!({"post_processor": sequence, "pre_tokenizer": {"type": "WhitespaceSplit"}}),
        json!({"post_processor": roberta, "pre_tokenizer": metaspace("always"),
            "normalizer": {"type": "Lowercase"}}),
    ];
    for parts in parts {
        for model in [bpe(), word_piece(), word_level()] {
            let pair = Pair::new(&file(&model, &parts));
            proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }, |(text in short_text())| {
                let spells_control = ["<s>", "</s>", "<mask>"].iter().any(|control| text.contains(control));
                // Where a model makes a control token of text, ours does not.
                if spells_control {
                    let ours = pair.ours.encode(&text, options(false, false));
                    prop_assert!(ours.iter().all(|id| ![1, 2, 9].contains(id)), "{ours:?}");
                } else {
                    pair.check(&text);
                }
            });
        }
    }
}

/// A part of a prompt that does not begin it gets no space in front.
#[test]
fn only_the_first_text_begins_a_prompt() {
    let first = json!({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}]}});
    let tokenizer = load(&file(&bpe(), &first)).unwrap();
    let text = |text: &str| PromptPart::Text(text.into());
    let ids = tokenizer.encode_parts(&[text("a"), PromptPart::Control(1), text("a")]);
    assert_eq!(ids, [6, 1, 4]);
    assert_eq!(
        tokenizer.encode_parts(&[PromptPart::Control(1), text("a")]),
        [1, 4]
    );
}

/// Each decoder's spaces.
#[test]
fn tokens_are_spelt_as_decoders_say() {
    for (decoder, ids, text) in [
        (Value::Null, vec![4, 5], "a b"),
        (
            json!({"type": "WordPiece", "prefix": "##", "cleanup": true}),
            vec![4, 8, 5],
            "ab b",
        ),
        (
            json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}),
            vec![6, 5, 6],
            "ab a",
        ),
        (
            json!({"type": "Metaspace", "replacement": "a", "prepend_scheme": "never", "split": true}),
            vec![5, 7],
            "b b",
        ),
        (
            json!({"type": "BPEDecoder", "suffix": "b"}),
            vec![4, 7, 4],
            "aa a",
        ),
        (
            json!({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}),
            vec![6, 5],
            "ab",
        ),
    ] {
        let tokenizer = load(&file(&bpe(), &json!({"decoder": decoder}))).unwrap();
        assert_eq!(tokenizer.decode(&ids), text, "{decoder}");
    }
}

/// Breaks when a part that cannot be read is passed over in silence, or the error does not name it.
#[test]
fn unknown_parts_are_refused_by_name() {
    for (parts, name) in [
        (
            json!({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA"}}),
            "precompiled_charsmap",
        ),
        (
            json!({"normalizer": {"type": "Precompiled"}}),
            "precompiled_charsmap",
        ),
        (
            json!({"normalizer": {"type": "Martian"}}),
            "normalizer Martian",
        ),
        (
            json!({"pre_tokenizer": {"type": "Martian"}}),
            "pre_tokenizer Martian",
        ),
        (
            json!({"post_processor": {"type": "Martian"}}),
            "post_processor Martian",
        ),
        (
            json!({"model": {"type": "Martian", "vocab": vocab()}}),
            "model Martian",
        ),
        (
            json!({"decoder": {"type": "CTC", "pad_token": "a", "word_delimiter_token": "b", "cleanup": true}}),
            "CTC",
        ),
        (
            json!({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false}}),
            "pre_tokenizer Split",
        ),
        (
            json!({"pre_tokenizer": {"type": "FixedLength", "length": 0}}),
            "`length`",
        ),
    ] {
        let refused = load(&file(&bpe(), &parts)).expect_err(name);
        assert!(
            refused.starts_with("x/tokenizer.json: ") && refused.contains(name),
            "{refused}"
        );
    }
    let mut dropout = bpe();
    dropout["dropout"] = json!(0.1);
    let mut same_id = bpe();
    same_id["vocab"]["ab"] = json!(9);
    let mut holes = word_level();
    holes["vocab"].as_object_mut().unwrap().remove("ab");
    let mut no_unknown = unigram();
    no_unknown["unk_id"] = Value::Null;
    let mut other_unknown = word_piece();
    other_unknown["unk_token"] = json!("[UNK]");
    let mut long_words = word_piece();
    long_words["max_input_chars_per_word"] = json!(1_000_000);
    for (model, name) in [
        (dropout, "`model.dropout`"),
        (same_id, "the id 9 to both \"ab\" and \"<mask>\""),
        (holes, "`added_tokens` with the id 9"),
        (no_unknown, "`model.unk_id`"),
        (other_unknown, "`model.unk_token` \"[UNK]\""),
        (long_words, "`model.max_input_chars_per_word` of 1000000"),
    ] {
        let refused = load(&file(&model, &json!({}))).expect_err(name);
        assert!(refused.contains(name), "{refused}");
    }
}
