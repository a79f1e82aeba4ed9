//! WordPiece vocabularies as pipelines of the `tokenizers` crate.

use crate::error::TokenizerError;
use crate::spelling::SPACE;
use crate::vocabulary::{TokenKind, Vocabulary};
use ahash::AHashMap;
use tokenizers::Tokenizer;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;

/// The prefix by which the `tokenizers` crate knows tokens that continue a word.
const CONTINUES: &str = "##";

/// Words longer than this are unknown, as they are to BERT's own tokenizer.
const LONGEST_WORD: usize = 100;

/// The pipeline of a WordPiece vocabulary.
///
/// GGUF marks tokens that begin a word with `▁` and leaves the others bare; BERT leaves the former
/// bare and marks the others with `##`.
pub(crate) fn pipeline(vocabulary: &Vocabulary) -> Result<Tokenizer, TokenizerError> {
    let unknown = vocabulary.special.unk;
    let unknown = unknown.and_then(|id| vocabulary.tokens.text(id));
    let mut ids: AHashMap<String, u32> = AHashMap::with_capacity(vocabulary.tokens.len());
    for (id, kind) in (0u32..).zip(&vocabulary.kinds) {
        let text = vocabulary.tokens.text(id).unwrap_or_default();
        if text.is_empty() {
            continue;
        }
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
