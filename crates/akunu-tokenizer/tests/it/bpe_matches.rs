//! Our BPE gives the ids that the `tokenizers` crate gives: on random vocabularies, on real ones, and for
//! every pattern of every pre-tokenizer.

use crate::support::{self, Entry, gguf};
use akunu_gguf::GgufFile;
use akunu_tokenizer::pretokenizer;
use akunu_tokenizer::vocabulary::Algorithm;
use akunu_tokenizer::{EncodeOptions, Tokenizer, Vocabulary};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tokenizers::models::bpe::BPE;
use tokenizers::normalizers::Replace;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};

const PAGE: &str = include_str!("../fixtures/mixed.txt");

/// The same vocabulary as a pipeline of the `tokenizers` crate.
fn reference(vocabulary: &Vocabulary) -> tokenizers::Tokenizer {
    let is_byte_level = vocabulary.algorithm == Algorithm::ByteLevelBpe;
    let text = |id: u32| vocabulary.tokens.text(id).unwrap().to_string();
    let ids = 0..vocabulary.tokens.len() as u32;
    let ids = ids
        .filter(|id| !text(*id).is_empty())
        .map(|id| (text(id), id));
    let merges = (0..vocabulary.merges.len() as u32).map(|rank| {
        let merge = vocabulary.merges.get(rank).unwrap();
        (text(merge.left), text(merge.right))
    });
    let model = BPE::builder()
        .vocab_and_merges(ids.collect::<ahash::AHashMap<_, _>>(), merges.collect())
        .ignore_merges(vocabulary.pre.ignore_merges)
        .byte_fallback(!is_byte_level)
        .build()
        .unwrap();
    let mut pipeline = tokenizers::Tokenizer::new(model);
    let mut steps: Vec<PreTokenizerWrapper> = Vec::new();
    for pattern in vocabulary.pre.patterns {
        let pattern = SplitPattern::Regex(pattern.to_string());
        let behavior = tokenizers::SplitDelimiterBehavior::Isolated;
        steps.push(Split::new(pattern, behavior, false).unwrap().into());
    }
    match is_byte_level {
        true => steps.push(ByteLevel::new(false, false, false).into()),
        false => {
            let spaces = Replace::new(" ", "▁").unwrap();
            pipeline.with_normalizer(Some(spaces)).unwrap();
        }
    }
    pipeline.with_pre_tokenizer(Some(Sequence::new(steps)));
    pipeline
}

/// Both tokenizers of one file.
struct Pair {
    ours: Tokenizer,
    reference: tokenizers::Tokenizer,
}

impl Pair {
    fn new(file: &GgufFile) -> Pair {
        let vocabulary = Vocabulary::read(file.metadata()).unwrap();
        Pair {
            reference: reference(&vocabulary),
            ours: Tokenizer::from_vocabulary(vocabulary).unwrap(),
        }
    }

    fn handmade(model: &str, pre: &str, tokens: &[&str], merges: &[&str]) -> Pair {
        let bytes = gguf(&[
            ("tokenizer.ggml.model", Entry::Str(model)),
            ("tokenizer.ggml.pre", Entry::Str(pre)),
            ("tokenizer.ggml.tokens", Entry::Strings(tokens.to_vec())),
            ("tokenizer.ggml.merges", Entry::Strings(merges.to_vec())),
            ("tokenizer.ggml.add_bos_token", Entry::Bool(false)),
        ]);
        Pair::new(&GgufFile::parse(bytes).unwrap())
    }

    /// The ids of both.
    fn encode(&self, text: &str) -> (Vec<u32>, Vec<u32>) {
        let ours = self.ours.encode(text, EncodeOptions::default());
        let reference = self.reference.encode_fast(text, false).unwrap();
        (ours, reference.get_ids().to_vec())
    }
}

/// A vocabulary over few letters: merges of what is there already, in any order, some of them twice.
fn random_vocabulary() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let picks = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let merges = prop::collection::vec(picks, 0..40);
    (merges, any::<u64>(), prop::bool::weighted(0.2)).prop_map(|(picks, seed, has_holes)| {
        let letters = ["a", "b", "c", "Ġ", "Ã", "©", "▁", "é", "<0xC3>", "<0xA9>"];
        let mut tokens: Vec<String> = letters.iter().map(|text| text.to_string()).collect();
        let mut known: BTreeSet<String> = tokens.iter().cloned().collect();
        let mut merges = Vec::new();
        for (left, right) in picks {
            let (left, right) = (left.get(&tokens).clone(), right.get(&tokens).clone());
            let joined = format!("{left}{right}");
            if joined.len() > 24 {
                continue;
            }
            merges.push(format!("{left} {right}"));
            if known.insert(joined.clone()) {
                tokens.push(joined);
            }
        }
        if has_holes {
            tokens.insert(seed as usize % tokens.len(), String::new());
        }
        let turn = (seed >> 32) as usize;
        if !merges.is_empty() {
            let n_merges = merges.len();
            merges.rotate_left(turn % n_merges);
        }
        let n_tokens = tokens.len();
        tokens.rotate_left(turn % n_tokens);
        (tokens, merges)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Characters without a token, bytes without a token and merges in a wrong order are all in it.
    #[test]
    fn random_vocabularies_and_texts(
        (tokens, merges) in random_vocabulary(),
        text in "[abcé d\n]{0,60}",
        pre in prop::sample::select(vec!["gpt-2", "llama-bpe", "smollm", "qwen2"]),
        model in prop::sample::select(vec!["gpt2", "gemma4"]),
    ) {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let merges: Vec<&str> = merges.iter().map(String::as_str).collect();
        let pair = Pair::handmade(model, pre, &tokens, &merges);
        let (ours, reference) = pair.encode(&text);
        prop_assert_eq!(ours, reference, "{:?} {:?}", tokens, merges);
    }
}

/// Texts of words, spaces of all kinds, digits, signs and accents, cut out of a page and mixed.
fn mixed_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[ \t\r\n\u{a0}\u{2003}\u{3000}]{1,5}",
        3 => "[a-zA-Zéßñ]{1,12}",
        1 => "'[a-zA-Z]{1,2}",
        2 => "[0-9½²٣]{1,7}",
        2 => "[!-/:-@\\[-`{-~…“”。，]{1,5}",
        1 => "[ЖдΩαक्िกあ漢字한글ʰ̈́🦀👍🏽]{1,6}",
        1 => "\\PC{1,4}",
        1 => any::<String>(),
        2 => (any::<prop::sample::Index>(), 1..40usize).prop_map(|(start, n)| {
            let start = start.index(PAGE.chars().count());
            PAGE.chars().skip(start).take(n).collect()
        }),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// The vocabularies of real models, one for each of their pre-tokenizers.
#[test]
fn real_vocabularies_over_mixed_text() {
    let smollm2 = ("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");
    let names = ["llama-bpe", "qwen2", "gemma-4"];
    let files = names.map(|name| format!("ggml-vocab-{name}.gguf"));
    let others = files.iter().map(|file| ("llama-cpp-vocabs", file.as_str()));
    for (asset, name) in std::iter::once(smollm2).chain(others) {
        let pair = Pair::new(&GgufFile::open(support::asset(asset, name)).unwrap());
        proptest!(ProptestConfig::with_cases(192), |(text in mixed_text())| {
            let (ours, reference) = pair.encode(&text);
            prop_assert_eq!(ours, reference, "{} {:?}", name, text);
        });
    }
}

/// Every byte is a token and nothing is merged, but for pairs that tell where text was cut: fails when a
/// pattern cuts elsewhere than the `tokenizers` crate does.
#[test]
fn every_pre_tokenizer_cuts_the_same() {
    let mut letters: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    letters.sort_unstable();
    let bytes: Vec<String> = letters.iter().map(char::to_string).collect();
    let joined = letters
        .iter()
        .flat_map(|a| letters.iter().map(move |b| (*a, *b)));
    let merges: Vec<String> = joined.clone().map(|(a, b)| format!("{a} {b}")).collect();
    let pairs: Vec<String> = joined.map(|(a, b)| format!("{a}{b}")).collect();
    let tokens: Vec<&str> = bytes.iter().chain(&pairs).map(String::as_str).collect();
    let merges: Vec<&str> = merges.iter().map(String::as_str).collect();
    let mut done = BTreeSet::new();
    for name in pretokenizer::names() {
        let row = pretokenizer::find(Some(name)).unwrap();
        if !done.insert(row.patterns) {
            continue;
        }
        let pair = Pair::handmade("gpt2", name, &tokens, &merges);
        proptest!(ProptestConfig::with_cases(96), |(text in mixed_text())| {
            let (ours, reference) = pair.encode(&text);
            prop_assert_eq!(ours, reference, "{} {:?}", name, text);
        });
    }
}

/// A word of a million letters takes a moment, not hours.
#[test]
fn long_words_are_merged() {
    let tokens = ["a", "aa", "aaa", "aaaa", "aaaaaaaa"];
    let merges = ["aa aa", "a a", "aa a", "aaaa aaaa"];
    let pair = Pair::handmade("gpt2", "gpt-2", &tokens, &merges);
    let ids = pair
        .ours
        .encode(&"a".repeat(1_000_003), EncodeOptions::default());
    let (some, reference) = pair.encode(&"a".repeat(1_003));
    assert_eq!(some, reference);
    let n_letters: usize = ids.iter().map(|id| tokens[*id as usize].len()).sum();
    assert_eq!(n_letters, 1_000_003);
}
