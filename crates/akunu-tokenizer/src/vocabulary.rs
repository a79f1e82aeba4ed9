//! A vocabulary as a GGUF file describes it, checked.
//!
//! After [`Vocabulary::read`] every array has one element a token, every id is inside of the vocabulary, no two tokens have the same
//! text, and every merge makes one known token of two.

use crate::charsmap::Charsmap;
use crate::error::TokenizerError;
use crate::merges::{self, BadMerge, Merges};
use crate::pretokenizer::{self, PreTokenizer};
use crate::special::END_TEXTS;
use crate::tokens::Tokens;
use akunu_gguf::Metadata;

/// The most tokens that we accept. The largest vocabularies in use have about 300,000.
pub const MAX_TOKENS: usize = 1 << 24;

/// The algorithm that turns text into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Algorithm {
    /// BPE over bytes that are spelt as printable characters (GPT-2 and most models since).
    ByteLevelBpe,
    /// BPE over characters where `▁` stands for a space, and bytes where no token fits (Gemma 4).
    CharacterBpe,
    /// SentencePiece: the pair whose token has the best score is joined first (Llama 2, Gemma 3).
    SentencePiece,
    /// The cut with the greatest sum of scores (T5, XLM-R).
    Unigram,
    /// Longest match from the left in each word (BERT).
    WordPiece,
}

const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";

/// `tokenizer.ggml.model` and what it stands for.
const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("gpt2", Algorithm::ByteLevelBpe),
    ("gemma4", Algorithm::CharacterBpe),
    ("llama", Algorithm::SentencePiece),
    ("t5", Algorithm::Unigram),
    ("bert", Algorithm::WordPiece),
];

/// What kind of token it is, as `tokenizer.ggml.token_type` counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// Stands for what the vocabulary cannot spell.
    Unknown,
    /// Controls the model, is not text: `<s>`, `<|im_end|>`.
    Control,
    /// Text that is always this one token, before anything else is tried.
    UserDefined,
    /// A hole in the vocabulary.
    Unused,
    /// A single byte, `<0x0A>`.
    Byte,
}

impl TokenKind {
    fn from_gguf(id: i32) -> TokenKind {
        match id {
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            _ => TokenKind::Normal,
        }
    }
}

/// The tokens with a meaning of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Begins a sequence; `[CLS]` for BERT.
    pub bos: Option<u32>,
    /// Ends a sequence.
    pub eos: Option<u32>,
    /// Ends a turn of a conversation.
    pub eot: Option<u32>,
    /// Ends a message that expects an answer from a tool.
    pub eom: Option<u32>,
    /// Stands for what cannot be spelt.
    pub unk: Option<u32>,
    /// Separates sequences.
    pub sep: Option<u32>,
    /// Fills up batches.
    pub pad: Option<u32>,
    /// Stands for the word to be guessed.
    pub mask: Option<u32>,
}

/// A checked vocabulary.
#[derive(Debug)]
pub struct Vocabulary {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// How text is split before merging; only the BPE algorithms use it.
    pub pre: &'static PreTokenizer,
    /// The texts by id, and the ids by text.
    pub tokens: Tokens,
    /// The scores, by id; empty where the algorithm needs none.
    pub scores: Vec<f32>,
    /// The kinds, by id.
    pub kinds: Vec<TokenKind>,
    /// Pairs to be joined, the most urgent first; empty where the algorithm needs none.
    pub merges: Merges,
    /// Tokens with a meaning.
    pub special: SpecialIds,
    /// Whether a sequence begins with BOS.
    pub add_bos: bool,
    /// Whether a sequence ends with EOS (for BERT: with SEP).
    pub add_eos: bool,
    /// Whether text gets a space in front, as if it stood in a sentence.
    pub add_space_prefix: bool,
    /// Whether spaces at the ends are taken away, and one is left of several (Unigram).
    pub merges_spaces: bool,
    /// Characters that are replaced before anything else (Unigram).
    pub(crate) charsmap: Option<Charsmap>,
    /// Whether text is lower-cased (BERT).
    pub lowercase: bool,
    /// Whether accents are taken off (BERT).
    pub strip_accents: bool,
}

impl Vocabulary {
    /// Reads and checks the `tokenizer.ggml.*` entries.
    pub fn read(metadata: &Metadata) -> Result<Vocabulary, TokenizerError> {
        let algorithm = read_algorithm(metadata)?;
        let tokens = read_tokens(metadata)?;
        let pre = read_pre(metadata, algorithm)?;
        let special = read_special(metadata, &tokens, algorithm)?;
        let flag = |key, default| Ok::<_, TokenizerError>(metadata.bool(key)?.unwrap_or(default));
        let is_bpe = matches!(algorithm, Algorithm::ByteLevelBpe | Algorithm::CharacterBpe);
        let lowercase = flag("tokenizer.ggml.normalizer.lowercase", true)?;
        let vocabulary = Vocabulary {
            algorithm,
            pre,
            scores: read_scores(metadata, algorithm, tokens.len())?,
            kinds: read_kinds(metadata, &tokens)?,
            merges: match is_bpe {
                true => read_merges(metadata, &tokens)?,
                false => Merges::default(),
            },
            special,
            add_bos: flag(
                "tokenizer.ggml.add_bos_token",
                match algorithm {
                    Algorithm::ByteLevelBpe | Algorithm::CharacterBpe => pre.add_bos,
                    Algorithm::SentencePiece | Algorithm::WordPiece => true,
                    Algorithm::Unigram => false,
                },
            )?,
            add_eos: flag(
                "tokenizer.ggml.add_eos_token",
                matches!(algorithm, Algorithm::WordPiece | Algorithm::Unigram),
            )?,
            add_space_prefix: flag(
                "tokenizer.ggml.add_space_prefix",
                algorithm == Algorithm::SentencePiece,
            )?,
            merges_spaces: flag("tokenizer.ggml.remove_extra_whitespaces", false)?,
            charsmap: read_charsmap(metadata, algorithm)?,
            lowercase,
            strip_accents: flag("tokenizer.ggml.normalizer.strip_accents", lowercase)?,
            tokens,
        };
        vocabulary.check_needed_specials()?;
        Ok(vocabulary)
    }

    /// Refuses flags that ask for tokens which the file does not name.
    fn check_needed_specials(&self) -> Result<(), TokenizerError> {
        let missing = |what, key| Err(TokenizerError::MissingSpecial { what, key });
        if self.add_bos && self.special.bos.is_none() {
            return missing(
                "a token that begins sequences",
                "tokenizer.ggml.bos_token_id",
            );
        }
        match self.algorithm {
            Algorithm::WordPiece if self.special.unk.is_none() => {
                missing("an unknown token", "tokenizer.ggml.unknown_token_id")
            }
            Algorithm::WordPiece if self.add_eos && self.special.sep.is_none() => {
                missing("a separator token", "tokenizer.ggml.seperator_token_id")
            }
            Algorithm::WordPiece => Ok(()),
            _ if self.add_eos && self.special.eos.is_none() => {
                missing("a token that ends sequences", "tokenizer.ggml.eos_token_id")
            }
            _ => Ok(()),
        }
    }
}

fn read_algorithm(metadata: &Metadata) -> Result<Algorithm, TokenizerError> {
    let key = "tokenizer.ggml.model";
    let name = metadata.string(key)?.ok_or_else(|| metadata.missing(key))?;
    let known = ALGORITHMS.iter().find(|(known, _)| *known == name);
    known.map(|(_, algorithm)| *algorithm).ok_or_else(|| {
        let names: Vec<&str> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
        TokenizerError::UnknownModel {
            name: name.to_string(),
            known: names.join(", "),
        }
    })
}

fn read_pre(
    metadata: &Metadata,
    algorithm: Algorithm,
) -> Result<&'static PreTokenizer, TokenizerError> {
    let name = match algorithm {
        Algorithm::CharacterBpe => return Ok(&pretokenizer::GEMMA4),
        Algorithm::ByteLevelBpe => metadata.string("tokenizer.ggml.pre")?,
        Algorithm::SentencePiece | Algorithm::Unigram | Algorithm::WordPiece => None,
    };
    pretokenizer::find(name).ok_or_else(|| {
        let names: Vec<&str> = pretokenizer::names().collect();
        TokenizerError::UnknownPreTokenizer {
            name: name.unwrap_or_default().to_string(),
            known: names.join(", "),
        }
    })
}

/// The tokens. Two of the same text are an error; empty ones are holes and may repeat.
fn read_tokens(metadata: &Metadata) -> Result<Tokens, TokenizerError> {
    let key = "tokenizer.ggml.tokens";
    let texts = metadata
        .byte_strings(key)?
        .ok_or_else(|| metadata.missing(key))?;
    let n_tokens = texts.len();
    if !(1..=MAX_TOKENS).contains(&n_tokens) {
        return Err(TokenizerError::VocabularySize {
            n_tokens,
            limit: MAX_TOKENS,
        });
    }
    let text_of = |id: u32| texts.clone().nth(id as usize).unwrap_or_default();
    Tokens::new(texts.clone()).map_err(|duplicate| TokenizerError::DuplicateToken {
        text: String::from_utf8_lossy(text_of(duplicate.first)).into_owned(),
        first: duplicate.first,
        second: duplicate.second,
    })
}

fn read_scores(
    metadata: &Metadata,
    algorithm: Algorithm,
    n_tokens: usize,
) -> Result<Vec<f32>, TokenizerError> {
    let key = "tokenizer.ggml.scores";
    let Some(scores) = metadata.f32s(key)? else {
        return match algorithm {
            Algorithm::SentencePiece | Algorithm::Unigram => Err(metadata.missing(key).into()),
            _ => Ok(Vec::new()),
        };
    };
    check_length(key, scores.len(), n_tokens)?;
    let scores: Vec<f32> = scores.collect();
    let is_wrong = |score: &f32| match algorithm {
        Algorithm::Unigram => !score.is_finite(),
        _ => score.is_nan(),
    };
    match scores.iter().position(is_wrong) {
        Some(id) => Err(TokenizerError::Score { id }),
        None => Ok(scores),
    }
}

/// The characters that are replaced first; only Unigram vocabularies have such.
fn read_charsmap(
    metadata: &Metadata,
    algorithm: Algorithm,
) -> Result<Option<Charsmap>, TokenizerError> {
    let bytes = match algorithm {
        Algorithm::Unigram => metadata.bytes(CHARSMAP)?,
        _ => None,
    };
    let parse = |bytes: &[u8]| {
        Charsmap::parse(bytes).map_err(|fault| TokenizerError::Charsmap {
            key: CHARSMAP,
            fault,
        })
    };
    bytes
        .filter(|bytes| !bytes.is_empty())
        .map(parse)
        .transpose()
}

/// The kinds. A token that ends answers is a control token, even where the file says otherwise.
fn read_kinds(metadata: &Metadata, tokens: &Tokens) -> Result<Vec<TokenKind>, TokenizerError> {
    let n_tokens = tokens.len();
    let key = "tokenizer.ggml.token_type";
    let mut kinds = match metadata.i32s(key)? {
        Some(kinds) => {
            check_length(key, kinds.len(), n_tokens)?;
            kinds.map(TokenKind::from_gguf).collect()
        }
        None => vec![TokenKind::Normal; n_tokens],
    };
    let ends = END_TEXTS.iter().filter_map(|text| tokens.id_of(text));
    for id in ends {
        if let Some(kind) = kinds.get_mut(id as usize) {
            *kind = TokenKind::Control;
        }
    }
    Ok(kinds)
}

fn check_length(key: &'static str, found: usize, n_tokens: usize) -> Result<(), TokenizerError> {
    match found == n_tokens {
        true => Ok(()),
        false => Err(TokenizerError::ArrayLength {
            key,
            found,
            n_tokens,
        }),
    }
}

/// The merges, each checked to make a known token of two known ones.
fn read_merges(metadata: &Metadata, tokens: &Tokens) -> Result<Merges, TokenizerError> {
    let key = "tokenizer.ggml.merges";
    let merges = metadata
        .byte_strings(key)?
        .ok_or_else(|| metadata.missing(key))?;
    let text_of = |index: usize| {
        let text = merges.clone().nth(index).unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    };
    Merges::read(merges.clone().map(merges::split), tokens).map_err(|bad| match bad {
        BadMerge::NoPair { index } => TokenizerError::MalformedMerge {
            index,
            merge: text_of(index),
        },
        BadMerge::Unknown { index, token } => TokenizerError::UnknownMergeToken {
            index,
            merge: text_of(index),
            token,
        },
    })
}

fn read_special(
    metadata: &Metadata,
    tokens: &Tokens,
    algorithm: Algorithm,
) -> Result<SpecialIds, TokenizerError> {
    let n_tokens = tokens.len();
    let read = |key: &'static str| match metadata.u32(key)? {
        Some(id) if id as usize >= n_tokens => Err(TokenizerError::SpecialId { key, id, n_tokens }),
        id => Ok(id),
    };
    // The spelling of `seperator` is GGUF's.
    let mut special = SpecialIds {
        bos: read("tokenizer.ggml.bos_token_id")?.or(read("tokenizer.ggml.cls_token_id")?),
        eos: read("tokenizer.ggml.eos_token_id")?,
        eot: read("tokenizer.ggml.eot_token_id")?,
        eom: read("tokenizer.ggml.eom_token_id")?,
        unk: read("tokenizer.ggml.unknown_token_id")?,
        sep: read("tokenizer.ggml.seperator_token_id")?,
        pad: read("tokenizer.ggml.padding_token_id")?,
        mask: read("tokenizer.ggml.mask_token_id")?,
    };
    let named = |text: &str| tokens.id_of(text);
    match algorithm {
        Algorithm::SentencePiece | Algorithm::Unigram => {
            special.bos = special.bos.or_else(|| named("<s>"));
            special.eos = special.eos.or_else(|| named("</s>"));
            special.unk = special.unk.or_else(|| named("<unk>"));
        }
        Algorithm::WordPiece => {
            special.bos = special.bos.or_else(|| named("[CLS]"));
            special.sep = special.sep.or_else(|| named("[SEP]"));
            special.unk = special.unk.or_else(|| named("[UNK]"));
        }
        Algorithm::ByteLevelBpe | Algorithm::CharacterBpe => {}
    }
    Ok(special)
}
