//! A `tokenizer.json` gives the ids that the `tokenizers` crate gives: real files, and every part that a file can have.

use crate::support;
use akunu_tokenizer::{EncodeOptions, Tokenizer, TokenizerConfig};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

/// Both tokenizers of one file.
struct Pair {
    ours: Tokenizer,
    reference: tokenizers::Tokenizer,
    /// The same, which takes special tokens for text.
    blind: tokenizers::Tokenizer,
}

impl Pair {
    fn new(json: &[u8]) -> Pair {
        let config = TokenizerConfig::default();
        let mut reference: tokenizers::Tokenizer =
            std::str::from_utf8(json).unwrap().parse().unwrap();
        reference.with_padding(None);
        reference.with_truncation(None).unwrap();
        let mut blind = reference.clone();
        blind.set_encode_special_tokens(true);
        Pair {
            ours: Tokenizer::from_json(json, &config, Path::new("tokenizer.json")).unwrap(),
            reference,
            blind,
        }
    }

    #[track_caller]
    fn check(&self, text: &str) {
        for (add_special, parse_special) in [(false, true), (true, true), (true, false)] {
            let options = EncodeOptions {
                add_special,
                parse_special,
            };
            let ours = self.ours.encode(text, options);
            let reference = match parse_special {
                true => &self.reference,
                false => &self.blind,
            };
            let reference = reference.encode_fast(text, add_special).unwrap();
            assert_eq!(ours, reference.get_ids(), "{text:?} {options:?}");
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
        "Word",
        " word",
        "<table>",
    ];
    let piece = prop_oneof![
        3 => "[ \t\r\n\u{a0}\u{2003}\u{3000}]{1,4}",
        3 => "[a-zA-ZéßñÅİς]{1,12}",
        1 => "'[a-zA-Z]{1,2}",
        2 => "[0-9½²٣]{1,7}",
        2 => "[!-/:-@\\[-`{-~…“”。，]{1,5}",
        1 => "[ЖдΩαक्िกあ漢字한글ʰ̈́🦀👍🏽\u{FFFD}\u{ad}\u{200d}\u{0}]{1,6}",
        1 => "\\PC{1,4}",
        2 => prop::sample::select(special).prop_map(str::to_string),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Breaks when a real model's file is read otherwise than its authors read it.
#[test]
fn real_files_over_mixed_text() {
    let names = [
        "minilm",
        "tokenizer-llama3_2",
        "tokenizer-qwen3",
        "tokenizer-mistral_nemo",
        "tokenizer-gemma3",
    ];
    for name in names {
        let json = std::fs::read(support::asset(name, "tokenizer.json")).unwrap();
        let pair = Pair::new(&json);
        proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) }, |(text in mixed_text())| {
            pair.check(&text);
        });
    }
}

/// A file with a small vocabulary of letters and pairs of them, in which some characters have no token.
fn file(parts: &Value) -> Vec<u8> {
    let letters = [
        "▁", "a", "b", "c", "é", "e", "1", "2", ",", "_", " ", "Ġ", "<0xC3>", "<0xA9>",
    ];
    let mut vocab = serde_json::Map::new();
    for text in ["[UNK]", "<s>", "</s>"].iter().chain(&letters) {
        vocab.insert((*text).into(), json!(vocab.len()));
    }
    let mut merges = Vec::new();
    for (left, right) in letters.iter().flat_map(|a| letters.map(|b| (a, b))) {
        let joined = format!("{left}{right}");
        if !vocab.contains_key(&joined) {
            vocab.insert(joined, json!(vocab.len()));
            merges.push(json!([left, right]));
        }
    }
    for text in ["a", "b", "ab", "1", ",", "é"] {
        vocab.insert(format!("##{text}"), json!(vocab.len()));
    }
    let added = |id: usize, content: &str, flags: Value| {
        let mut token = json!({"id": id, "content": content, "special": false, "lstrip": false,
            "rstrip": false, "single_word": false, "normalized": false});
        let flags = flags.as_object().unwrap().clone();
        token.as_object_mut().unwrap().extend(flags);
        token
    };
    let n = vocab.len();
    let mut file = json!({
        "version": "1.0",
        "added_tokens": [
            added(1, "<s>", json!({"special": true})),
            added(2, "</s>", json!({"special": true, "normalized": true})),
            added(n, "<mask>", json!({"special": true, "lstrip": true, "rstrip": true})),
            added(n + 1, "Word", json!({"single_word": true})),
            added(n + 2, "CaB", json!({"normalized": true})),
        ],
        "normalizer": null, "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "ByteFallback"},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "unk_token": "[UNK]"},
    });
    let parts = parts.as_object().unwrap();
    for (name, part) in parts.iter().filter(|(name, _)| *name != "model") {
        file[name] = part.clone();
    }
    if let Some(model) = parts.get("model") {
        let model = model.as_object().unwrap().clone();
        file["model"].as_object_mut().unwrap().extend(model);
        if file["model"]["type"] == "WordPiece" {
            file["model"].as_object_mut().unwrap().remove("merges");
        }
    }
    serde_json::to_vec(&file).unwrap()
}

/// Texts of the letters that [`file`] knows, and a few that it does not.
fn short_text() -> impl Strategy<Value = String> {
    let special = vec!["<s>", "</s>", "<mask>", "Word", "CaB", "cab", " "];
    let piece = prop_oneof![
        6 => "[abcéeE\u{301}1２2,_ x\n▁漢A]{1,8}",
        1 => prop::sample::select(special).prop_map(str::to_string),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Every part that a file can have, one or a few at a time.
fn parts() -> Vec<Value> {
    let split = |pattern: Value, behavior: &str, invert: bool| {
        json!({"pre_tokenizer":
            {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}})
    };
    let metaspace = |scheme: &str, split: bool| {
        json!({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
            "prepend_scheme": scheme, "split": split}})
    };
    let bert = |clean: bool, chinese: bool, strip: Value, lower: bool| {
        json!({"normalizer": {"type": "BertNormalizer", "clean_text": clean,
            "handle_chinese_chars": chinese, "strip_accents": strip, "lowercase": lower},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {"type": "WordPiece", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 6}})
    };
    let template = json!({"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "</s>", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]},
            "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}});
    let mut all = vec![
        json!({}),
        json!({"model": {"fuse_unk": true}}),
        json!({"model": {"byte_fallback": true, "unk_token": null}}),
        json!({"model": {"unk_token": null, "ignore_merges": true}}),
        json!({"normalizer": {"type": "Prepend", "prepend": "▁"}}),
        json!({"normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}}),
        json!({"normalizer": {"type": "Replace", "pattern": {"Regex": "[ab]+"}, "content": "e"}}),
        json!({"normalizer": {"type": "Strip", "strip_left": true, "strip_right": false}}),
        json!({"normalizer": {"type": "Strip", "strip_left": false, "strip_right": true}}),
        json!({"normalizer": {"type": "Lowercase"}}),
        json!({"normalizer": {"type": "Sequence", "normalizers":
            [{"type": "NFD"}, {"type": "StripAccents"}]}}),
        json!({"pre_tokenizer": {"type": "Whitespace"}}),
        json!({"pre_tokenizer": {"type": "WhitespaceSplit"}}),
        json!({"pre_tokenizer": {"type": "Punctuation", "behavior": "MergedWithPrevious"}}),
        json!({"pre_tokenizer": {"type": "Digits", "individual_digits": true}}),
        json!({"pre_tokenizer": {"type": "Digits", "individual_digits": false}}),
        json!({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true,
            "trim_offsets": true, "use_regex": true}, "decoder": {"type": "ByteLevel",
            "add_prefix_space": true, "trim_offsets": true, "use_regex": true}}),
        json!({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": true},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
             "use_regex": false}]}}),
        json!({"post_processor": template}),
        json!({"post_processor": {"type": "Sequence", "processors": [
            {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false,
             "use_regex": true}, template]}}),
        json!({"post_processor": {"type": "RobertaProcessing", "sep": ["a", 4],
            "cls": ["b", 5], "trim_offsets": true, "add_prefix_space": true}}),
        json!({"post_processor": {"type": "BertProcessing", "sep": ["a", 4], "cls": ["b", 5]}}),
        metaspace("always", true),
        metaspace("first", false),
        metaspace("first", true),
        metaspace("never", true),
        bert(true, true, Value::Null, true),
        bert(false, true, json!(false), true),
        bert(true, false, json!(true), false),
    ];
    for form in ["NFC", "NFD", "NFKC", "NFKD"] {
        all.push(json!({"normalizer": {"type": form}}));
    }
    for behavior in [
        "Removed",
        "Isolated",
        "Contiguous",
        "MergedWithPrevious",
        "MergedWithNext",
    ] {
        all.push(split(json!({"Regex": "[ab]|\\s+"}), behavior, false));
        all.push(split(json!({"String": "a"}), behavior, true));
        all.push(split(json!({"Regex": "a(?=b)|x*"}), behavior, false));
    }
    all
}

/// Breaks when a normalizer, a pre-tokenizer, a post-processor or a model does something else than it does there.
#[test]
fn every_part_of_a_file_over_short_text() {
    for parts in parts() {
        println!("{parts}");
        let pair = Pair::new(&file(&parts));
        proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) }, |(text in short_text())| {
            pair.check(&text);
        });
    }
}

/// Breaks when a part that we do not have is passed over in silence.
#[test]
fn unknown_parts_are_refused_by_name() {
    for (parts, name) in [
        (
            json!({"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}}),
            "Precompiled",
        ),
        (
            json!({"pre_tokenizer": {"type": "UnicodeScripts"}}),
            "UnicodeScripts",
        ),
        (json!({"post_processor": {"type": "Martian"}}), "Martian"),
        (json!({"model": {"type": "Unigram"}}), "Unigram"),
        (
            json!({"model": {"end_of_word_suffix": "</w>"}}),
            "end_of_word_suffix",
        ),
        (
            json!({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("},
            "behavior": "Isolated"}}),
            "\"(\"",
        ),
    ] {
        let config = TokenizerConfig::default();
        let path = Path::new("x/tokenizer.json");
        let refused = Tokenizer::from_json(&file(&parts), &config, path).unwrap_err();
        let refused = refused.to_string();
        assert!(
            refused.starts_with("x/tokenizer.json: ") && refused.contains(name),
            "{refused}"
        );
    }
}
