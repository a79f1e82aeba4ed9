//! Real models tokenize a page of mixed text as llama.cpp and the Python package `tokenizers` do.
//!
//! `fixtures/tokens.json` is written by `fixtures/make_token_fixtures.py`.

use crate::support;
use akunu_gguf::GgufFile;
use akunu_tokenizer::{EncodeOptions, Tokenizer};
use std::collections::BTreeMap;

const TEXT: &str = include_str!("../fixtures/mixed.txt");
const TOKENS: &str = include_str!("../fixtures/tokens.json");

fn expected(name: &str) -> Vec<u32> {
    let mut all: BTreeMap<String, Vec<u32>> = serde_json::from_str(TOKENS).unwrap();
    all.remove(name).expect("the fixture has this model")
}

/// Fails at the first id that differs, and says where in the text it stands.
fn check(tokenizer: &Tokenizer, name: &str) {
    let found = tokenizer.encode(TEXT, EncodeOptions::default());
    let expected = expected(name);
    let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
    if let Some(at) = differs {
        let before = tokenizer.decode(&found[..at]);
        let around = |ids: &[u32]| {
            let piece = &ids[at..(at + 8).min(ids.len())];
            format!("{piece:?} {:?}", tokenizer.decode(piece))
        };
        panic!(
            "{name}: after {:?}:\n expected {}\n found    {}",
            before.lines().last(),
            around(&expected),
            around(&found)
        );
    }
    assert_eq!(found.len(), expected.len(), "{name}");
}

/// The page as vocabularies with `▁` for a space give it back: they cannot tell the two apart.
fn spaced_text() -> String {
    TEXT.replace('▁', " ")
}

fn check_gguf(name: &str, file: &str, back: &str) {
    let file = GgufFile::open(support::asset(name, file)).unwrap();
    let tokenizer = Tokenizer::from_gguf(file.metadata()).unwrap();
    check(&tokenizer, name);
    let ids = expected(name);
    assert_eq!(tokenizer.decode(&ids), back, "{name}");
    let mut stream = tokenizer.stream();
    let mut text: String = ids.iter().filter_map(|id| stream.push(*id)).collect();
    text.extend(stream.finish());
    assert_eq!(text, back, "{name}");
}

fn check_json(name: &str) -> Tokenizer {
    let tokenizer = Tokenizer::from_file(support::asset(name, "tokenizer.json")).unwrap();
    check(&tokenizer, name);
    tokenizer
}

#[test]
fn smollm2_from_gguf() {
    check_gguf("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", TEXT);
}

#[test]
fn gemma_3_from_gguf() {
    check_gguf("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf", &spaced_text());
}

/// Gemma's vocabulary has HTML tags, `</s>` among them. `transformers` reads that as the tag; llama.cpp
/// takes it for an end token and spells it out. We follow the former.
#[test]
fn html_tags_of_gemma_3_are_tokens() {
    let path = support::asset("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf");
    let file = GgufFile::open(path).unwrap();
    let tokenizer = Tokenizer::from_gguf(file.metadata()).unwrap();
    let json = support::asset("tokenizer-gemma3", "tokenizer.json");
    let reference = Tokenizer::from_file(json).unwrap();
    for text in [
        "<s>x</s>",
        "<table><tr><td>1</td></tr></table>",
        "a  b\n\n\n c",
    ] {
        let options = EncodeOptions::default();
        let ids = tokenizer.encode(text, options);
        assert_eq!(ids, reference.encode(text, options), "{text:?}");
    }
}

/// BERT loses case and spacing: its words come back, lower-cased.
#[test]
fn minilm_from_json() {
    let tokenizer = check_json("minilm");
    let ids = tokenizer.encode("Hello, Wörld!", EncodeOptions::default());
    assert_eq!(tokenizer.decode(&ids), "hello , world !");
    let options = EncodeOptions {
        add_special: true,
        ..EncodeOptions::default()
    };
    let with_special = tokenizer.encode("Hello", options);
    assert_eq!(with_special, [101, 7592, 102]);
}

#[test]
fn byte_level_vocabularies_from_json() {
    for name in ["llama3_2", "qwen2_5", "qwen3", "mistral_nemo"] {
        let name = format!("tokenizer-{name}");
        let tokenizer = check_json(&name);
        // Qwen normalises its input, so a text with combining accents does not come back.
        if !name.contains("qwen") {
            assert_eq!(tokenizer.decode(&expected(&name)), TEXT, "{name}");
        }
    }
}

#[test]
fn spaced_vocabularies_from_json() {
    for name in ["gemma2", "gemma3"] {
        let name = format!("tokenizer-{name}");
        let tokenizer = check_json(&name);
        assert_eq!(tokenizer.decode(&expected(&name)), spaced_text(), "{name}");
    }
}

/// What a chat needs: the special tokens of SmolLM2, found in text only when asked for.
#[test]
fn special_tokens_of_smollm2() {
    let path = support::asset("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let file = GgufFile::open(path).unwrap();
    let tokenizer = Tokenizer::from_gguf(file.metadata()).unwrap();
    let parse = |parse_special| {
        let options = EncodeOptions {
            parse_special,
            ..EncodeOptions::default()
        };
        tokenizer.encode("<|im_end|>", options)
    };
    assert_eq!(parse(true), [2]);
    assert!(parse(false).len() > 2);
    assert_eq!(tokenizer.special_ids().eos, Some(2));
    assert!(tokenizer.is_end(2) && tokenizer.is_control(2));
    assert_eq!(tokenizer.decode(&[2]), "", "control tokens are no text");
    assert_eq!(tokenizer.token_bytes(2), Some(b"<|im_end|>".to_vec()));
    assert_eq!(tokenizer.vocab_size(), 49_152);
    tokenizer.check_embedding_rows(49_152).unwrap();
    tokenizer.check_embedding_rows(49_151).unwrap_err();
}
