//! Vocabularies as pipelines of the `tokenizers` crate.

use crate::error::TokenizerError;
use crate::sentencepiece::SPACE;
use crate::vocabulary::{Algorithm, TokenKind, Vocabulary};
use ahash::AHashMap;
use tokenizers::models::bpe::BPE;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::{BertNormalizer, Replace};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{SplitDelimiterBehavior, Tokenizer};

/// The prefix by which the `tokenizers` crate knows tokens that continue a word.
const CONTINUES: &str = "##";

/// Words longer than this are unknown, as they are to BERT's own tokenizer.
const LONGEST_WORD: usize = 100;

/// The pipeline of a BPE vocabulary.
pub(crate) fn bpe(vocabulary: &Vocabulary<'_>) -> Result<Tokenizer, TokenizerError> {
    let is_byte_level = vocabulary.algorithm == Algorithm::ByteLevelBpe;
    let ids: AHashMap<String, u32> = vocabulary
        .ids
        .iter()
        .map(|(text, id)| (text.to_string(), *id))
        .collect();
    let merges = vocabulary.merges.iter();
    let merges = merges.map(|(left, right)| (left.to_string(), right.to_string()));
    let model = BPE::builder()
        .vocab_and_merges(ids, merges.collect())
        .ignore_merges(vocabulary.pre.ignore_merges)
        .byte_fallback(!is_byte_level)
        .build()
        .map_err(TokenizerError::backend("built"))?;

    let mut steps = Vec::with_capacity(vocabulary.pre.patterns.len() + 1);
    for pattern in vocabulary.pre.patterns {
        let pattern = SplitPattern::Regex(pattern.to_string());
        let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
        let split = split.map_err(TokenizerError::backend("built"))?;
        steps.push(PreTokenizerWrapper::Split(split));
    }
    let mut tokenizer = Tokenizer::new(model);
    if is_byte_level {
        let spell_bytes = ByteLevel::new(false, false, false);
        steps.push(PreTokenizerWrapper::ByteLevel(spell_bytes));
    } else {
        let spaces = Replace::new(" ", SPACE.to_string());
        let spaces = spaces.map_err(TokenizerError::backend("built"))?;
        tokenizer
            .with_normalizer(Some(spaces))
            .map_err(TokenizerError::backend("built"))?;
    }
    tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
    Ok(tokenizer)
}

/// The pipeline of a WordPiece vocabulary.
///
/// GGUF marks tokens that begin a word with `▁` and leaves the others bare; BERT leaves the former
/// bare and marks the others with `##`.
pub(crate) fn wordpiece(vocabulary: &Vocabulary<'_>) -> Result<Tokenizer, TokenizerError> {
    let unknown = vocabulary.special.unk;
    let unknown = unknown.and_then(|id| vocabulary.tokens.get(id as usize));
    let mut ids: AHashMap<String, u32> = AHashMap::with_capacity(vocabulary.tokens.len());
    let tokens = (0u32..).zip(&vocabulary.tokens).zip(&vocabulary.kinds);
    for ((id, text), kind) in tokens.filter(|((_, text), _)| !text.is_empty()) {
        let spelt = match (text.strip_prefix(SPACE), kind) {
            (Some(word), _) => word.to_string(),
            (None, TokenKind::Normal) => format!("{CONTINUES}{text}"),
            (None, _) => text.to_string(),
        };
        ids.entry(spelt).or_insert(id);
    }
    if let (Some(text), Some(id)) = (unknown, vocabulary.special.unk) {
        ids.insert(text.to_string(), id);
    }
    let model = WordPiece::builder()
        .vocab(ids)
        .unk_token(unknown.map(|text| text.to_string()).unwrap_or_default())
        .continuing_subword_prefix(CONTINUES.to_string())
        .max_input_chars_per_word(LONGEST_WORD)
        .build()
        .map_err(TokenizerError::backend("built"))?;
    let normalizer = BertNormalizer::new(
        true,
        true,
        Some(vocabulary.strip_accents),
        vocabulary.lowercase,
    );
    let mut tokenizer = Tokenizer::new(model);
    tokenizer
        .with_normalizer(Some(normalizer))
        .map_err(TokenizerError::backend("built"))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    Ok(tokenizer)
}
