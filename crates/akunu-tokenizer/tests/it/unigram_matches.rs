//! Our Unigram gives the ids that the package `tokenizers` gives: on random vocabularies, and on that of XLM-R.

use crate::support::{self, Entry, gguf};
use akunu_gguf::GgufFile;
use akunu_tokenizer::{EncodeOptions, Tokenizer, Vocabulary};
use proptest::prelude::*;
use tokenizers::models::unigram::Unigram;
use tokenizers::normalizers::{Precompiled, Sequence};
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};

const PAGE: &str = include_str!("../fixtures/mixed.txt");

fn ours(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.encode(text, EncodeOptions::default())
}

/// Letters, pairs and triples of them with random scores, some of them equal.
fn random_vocabulary() -> impl Strategy<Value = Vec<(String, f32)>> {
    let score = prop_oneof![
        -9.0f32..0.0,
        prop::sample::select(vec![-1.0f32, -2.0, -4.0])
    ];
    prop::collection::btree_map("[▁abcé]{1,4}", score, 1..40)
        .prop_map(|tokens| tokens.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Unknown characters, unknown ones in a row, and spaces in a row are in it.
    #[test]
    fn random_vocabularies_and_texts(
        tokens in random_vocabulary(),
        text in "[abcéd x漢]{0,40}",
        has_bytes: bool,
    ) {
        let bytes = (0..=255u8).map(|byte| (format!("<0x{byte:02X}>"), -20.0, 6));
        let bytes = bytes.take(if has_bytes { 256 } else { 0 });
        let normal = tokens.iter().map(|(text, score)| (text.clone(), *score, 1));
        let all: Vec<(String, f32, i32)> =
            [("<unk>".into(), 0.0, 2), ("</s>".into(), 0.0, 3)].into_iter().chain(normal).chain(bytes).collect();
        let file = gguf(&[
            ("tokenizer.ggml.model", Entry::Str("t5")),
            ("tokenizer.ggml.tokens", Entry::Strings(all.iter().map(|token| token.0.as_str()).collect())),
            ("tokenizer.ggml.scores", Entry::F32s(all.iter().map(|token| token.1).collect())),
            ("tokenizer.ggml.token_type", Entry::I32s(all.iter().map(|token| token.2).collect())),
            ("tokenizer.ggml.add_space_prefix", Entry::Bool(true)),
            ("tokenizer.ggml.unknown_token_id", Entry::U32(0)),
            ("tokenizer.ggml.eos_token_id", Entry::U32(1)),
        ]);
        let file = GgufFile::parse(file).unwrap();
        let tokenizer = Tokenizer::from_gguf(file.metadata()).unwrap();
        // The penalty of unknown characters counts from the worst token, which bytes are not for us.
        let vocab = all.iter().map(|(text, score, kind)| {
            (text.clone(), if *kind == 1 { f64::from(*score) } else { 0.0 })
        });
        let model = Unigram::from(vocab.collect(), Some(0), has_bytes).unwrap();
        let mut package = tokenizers::Tokenizer::new(model);
        // A text that begins with a space gets none from the package.
        package.with_pre_tokenizer(Some(Metaspace::new('▁', PrependScheme::Never, false)));
        let spaced = if text.trim().is_empty() { text.clone() } else { format!(" {text}") };
        let wanted = package.encode_fast(spaced, false).unwrap();
        prop_assert_eq!(ours(&tokenizer, &text), wanted.get_ids(), "{:?}", tokens);
    }
}

/// The vocabulary of XLM-R with its scores and its table of characters, from a file of llama.cpp's.
fn xlm_r() -> (Tokenizer, tokenizers::Tokenizer) {
    let path = support::asset("llama-cpp-vocabs", "ggml-vocab-nomic-bert-moe.gguf");
    let file = GgufFile::open(path).unwrap();
    let metadata = file.metadata();
    let vocabulary = Vocabulary::read(metadata).unwrap();
    let texts = metadata.strings("tokenizer.ggml.tokens").unwrap().unwrap();
    let scores = vocabulary.scores.iter().map(|score| f64::from(*score));
    let vocab = texts.map(str::to_string).zip(scores).collect();
    let unknown = vocabulary.special.unk.unwrap() as usize;
    let model = Unigram::from(vocab, Some(unknown), false).unwrap();
    let charsmap = metadata
        .bytes("tokenizer.ggml.precompiled_charsmap")
        .unwrap()
        .unwrap();
    let mut package = tokenizers::Tokenizer::new(model);
    let steps = vec![Precompiled::from(charsmap).unwrap().into()];
    package.with_normalizer(Some(Sequence::new(steps))).unwrap();
    let spaces = Metaspace::new('▁', PrependScheme::Always, true);
    let words = tokenizers::pre_tokenizers::whitespace::WhitespaceSplit;
    let steps = vec![words.into(), spaces.into()];
    package.with_pre_tokenizer(Some(tokenizers::pre_tokenizers::sequence::Sequence::new(
        steps,
    )));
    (Tokenizer::from_vocabulary(vocabulary).unwrap(), package)
}

/// Words, numbers and signs of many languages; half-width and full-width letters, ligatures and other characters that the
/// table replaces. No combining marks: the package replaces whole clusters of them by what their beginning becomes.
fn mixed_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => "[ \t\r\n\u{a0}\u{2003}\u{3000}]{1,4}",
        4 => "[a-zA-ZéßñÅİςЖдΩα漢字あア한글ﬁﾊＡ①½²٣]{1,12}",
        2 => "[0-9]{1,7}",
        2 => "[!-/:-@\\[-`{-~…“”。，™]{1,4}",
        2 => (any::<prop::sample::Index>(), 1..40usize).prop_map(|(start, n)| {
            let start = start.index(PAGE.chars().count());
            PAGE.chars().skip(start).take(n).filter(char::is_ascii).collect()
        }),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

#[test]
fn the_vocabulary_of_xlm_r_over_mixed_text() {
    let (tokenizer, package) = xlm_r();
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) }, |(text in mixed_text())| {
        let wanted = package.encode_fast(text.as_str(), false).unwrap();
        let found = ours(&tokenizer, &text);
        // A text that spells a control token is one for the package.
        prop_assume!(!["<s>", "</s>", "<unk>", "<pad>", "<mask>"].iter().any(|control| text.contains(control)));
        prop_assert_eq!(found, wanted.get_ids());
    });
}

/// Figures of the model's own tokenizer, as its documentation and llama.cpp's converted files agree on them.
#[test]
fn texts_of_xlm_r() {
    let (tokenizer, _) = xlm_r();
    let encode = |text: &str| {
        let options = EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        };
        tokenizer.encode(text, options)
    };
    // `Hello world` of `FacebookAI/xlm-roberta-base`.
    assert_eq!(encode("Hello world"), [0, 35378, 8999, 2]);
    assert_eq!(encode("  Hello\t\n world "), [0, 35378, 8999, 2]);
    assert_eq!(
        encode("Ｈｅｌｌｏ ｗｏｒｌｄ"),
        [0, 35378, 8999, 2],
        "full-width letters"
    );
    assert_eq!(encode(""), [0, 2]);
    assert_eq!(
        tokenizer.decode(&encode("Bonjour, ça va ?")),
        "Bonjour, ça va ?"
    );
    let typed = encode("<s></s><mask>");
    assert!(
        typed[1..typed.len() - 1]
            .iter()
            .all(|id| !tokenizer.is_control(*id)),
        "{typed:?}"
    );
}
