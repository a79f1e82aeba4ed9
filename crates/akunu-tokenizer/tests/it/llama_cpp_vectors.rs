//! Every vocabulary for which llama.cpp ships test vectors, case by case and id by id.

use crate::support;
use akunu_gguf::GgufFile;
use akunu_tokenizer::vocabulary::Algorithm;
use akunu_tokenizer::{EncodeOptions, Tokenizer, Vocabulary};
use std::path::Path;

/// The vocabularies, and how many cases each has.
const VOCABULARIES: &[(&str, usize)] = &[
    ("bert-bge", 46),
    ("command-r", 46),
    ("deepseek-coder", 46),
    ("deepseek-llm", 46),
    ("falcon", 46),
    ("gemma-4", 46),
    ("gpt-2", 46),
    ("llama-bpe", 46),
    ("llama-spm", 46),
    ("mpt", 46),
    ("phi-3", 46),
    ("qwen2", 46),
    ("qwen35", 50),
    ("refact", 46),
    ("starcoder", 46),
];

fn cases(gguf: &Path) -> Vec<(String, Vec<u32>)> {
    let read = |suffix: &str| {
        let path = format!("{}{suffix}", gguf.display());
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let texts = read(".inp");
    let ids = read(".out");
    // Most files have a separator after their last case too.
    let separator = "\n__ggml_vocab_test__\n";
    let texts = texts.strip_suffix(separator).unwrap_or(&texts);
    let texts: Vec<&str> = texts.split(separator).collect();
    let ids: Vec<Vec<u32>> = ids
        .lines()
        .map(|line| {
            line.split_whitespace()
                .map(|id| id.parse().unwrap())
                .collect()
        })
        .collect();
    assert_eq!(texts.len(), ids.len(), "{}", gguf.display());
    let texts = texts.into_iter().map(str::to_string);
    texts.zip(ids).collect()
}

/// Fails when one id of one case differs, or when a case does not decode back.
///
/// Back means: the text itself. BERT's normalisation loses case, accents and spacing, so there it
/// means: a text with the same ids, but for the unknown words, which are lost.
#[test]
fn every_case_gives_the_same_ids_and_decodes_back() {
    let mut failures = Vec::new();
    for (name, n_cases) in VOCABULARIES {
        let path = support::asset("llama-cpp-vocabs", &format!("ggml-vocab-{name}.gguf"));
        let file = GgufFile::open(&path).unwrap();
        let vocabulary = Vocabulary::read(file.metadata()).unwrap();
        let (algorithm, unknown) = (vocabulary.algorithm, vocabulary.special.unk);
        let tokenizer = Tokenizer::from_vocabulary(vocabulary).unwrap();
        let encode = |text: &str| tokenizer.encode(text, EncodeOptions::default());
        let cases = cases(&path);
        assert_eq!(cases.len(), *n_cases, "{name}");
        for (text, expected) in cases {
            let found = encode(&text);
            if found != expected {
                failures.push(format!("{name} {text:?}\n  {expected:?}\n  {found:?}"));
                continue;
            }
            let back = tokenizer.decode(&found);
            let is_back = match algorithm {
                Algorithm::WordPiece => {
                    let known = found.iter().filter(|id| Some(**id) != unknown);
                    encode(&back).iter().eq(known)
                }
                _ => back == text,
            };
            if !is_back {
                failures.push(format!("{name} decodes {text:?} to {back:?}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The vocabularies without vectors. That of XLM-R (Unigram) has one space for several, and no crab.
#[test]
fn other_vocabularies_load() {
    let open = |name: &str| {
        let path = support::asset("llama-cpp-vocabs", &format!("ggml-vocab-{name}.gguf"));
        let file = GgufFile::open(path).unwrap();
        let tokenizer = Tokenizer::from_gguf(file.metadata());
        let tokenizer = tokenizer.unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = "Hello, wörld! 你好 🦀 \n\t 12345";
        tokenizer.decode(&tokenizer.encode(text, EncodeOptions::default()))
    };
    for name in ["aquila", "baichuan", "gpt-neox"] {
        assert_eq!(open(name), "Hello, wörld! 你好 🦀 \n\t 12345", "{name}");
    }
    assert_eq!(open("nomic-bert-moe"), "Hello, wörld! 你好  12345");
}
