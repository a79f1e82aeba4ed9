//! The public type: one tokenizer, whatever file it came from.

use crate::bpe::{Alphabet, Bpe, BpeRules, SeenWords};
use crate::cutter::Cutter;
use crate::error::TokenizerError;
use crate::json::JsonEncoder;
use crate::marker::Controls;
use crate::normalizer::BertNormalizer;
use crate::pieces::Pieces;
use crate::prompt::PromptPart;
use crate::sentencepiece::SentencePiece;
use crate::special::{self, Fragment, Splitter};
use crate::spelling::{SPACE, Spelling};
use crate::stream::DecodeStream;
use crate::unigram::Unigram;
use crate::vocabulary::{Algorithm, SpecialIds, Vocabulary};
use crate::wordpiece::{WordPiece, bert_words};
use akunu_gguf::Metadata;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// How to encode.
///
/// Later versions may have further fields: end a value with `..EncodeOptions::default()`.
///
/// ```no_run
/// use akunu_tokenizer::EncodeOptions;
/// # fn example(tokenizer: &akunu_tokenizer::Tokenizer) {
/// let options = EncodeOptions { add_special: true, ..EncodeOptions::default() };
/// let ids = tokenizer.encode("Hello", options);
/// assert_eq!(tokenizer.decode(&ids), "Hello");
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Put the tokens around the text that the model expects, such as BOS.
    pub add_special: bool,
    /// Read control tokens such as `<|im_end|>` in the text as tokens. Leave this off for text that is
    /// not trusted: its author could otherwise end the turn. Conversations have [`Tokenizer::render`].
    pub parse_special: bool,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

/// Turns text into token ids and back.
///
/// ```no_run
/// use akunu_gguf::GgufFile;
/// use akunu_tokenizer::{EncodeOptions, Tokenizer};
///
/// let file = GgufFile::open("model.gguf")?;
/// let tokenizer = Tokenizer::from_gguf(file.metadata())?;
/// let ids = tokenizer.encode("Hello, world", EncodeOptions::default());
/// assert_eq!(tokenizer.decode(&ids), "Hello, world");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Tokenizer {
    pub(crate) encoder: Encoder,
    pub(crate) pieces: Pieces,
    pub(crate) special: SpecialIds,
    pub(crate) end_ids: Vec<u32>,
    /// A space that decoding takes off the front, because encoding put it there.
    pub(crate) strips_first_space: bool,
    /// See [`Tokenizer::render`].
    pub(crate) controls: OnceLock<Controls>,
}

/// What turns text into ids.
#[derive(Debug)]
pub(crate) enum Encoder {
    /// A vocabulary from GGUF.
    Gguf(Box<GgufEncoder>),
    /// A whole `tokenizer.json`.
    Json(Box<JsonEncoder>),
}

/// Special tokens are cut out first; the model sees the text between them.
#[derive(Debug)]
pub(crate) struct GgufEncoder {
    splitter: Splitter,
    model: Model,
    add_space_prefix: bool,
    /// Ids before and after the text when special tokens are asked for.
    prefix: Option<u32>,
    suffix: Option<u32>,
}

#[derive(Debug)]
enum Model {
    Bpe {
        cutter: Cutter,
        pieces: Bpe,
        /// `▁` stands for spaces.
        is_spaced: bool,
    },
    SentencePiece(SentencePiece),
    Unigram(Unigram),
    WordPiece {
        normalizer: BertNormalizer,
        words: WordPiece,
    },
}

impl Tokenizer {
    /// Builds the tokenizer that a GGUF file describes.
    pub fn from_gguf(metadata: &Metadata) -> Result<Tokenizer, TokenizerError> {
        Tokenizer::from_vocabulary(Vocabulary::read(metadata)?)
    }

    /// Builds a tokenizer from a checked vocabulary.
    pub fn from_vocabulary(vocabulary: Vocabulary) -> Result<Tokenizer, TokenizerError> {
        let id_of = |text: &str| vocabulary.tokens.id_of(text);
        let mut special = vocabulary.special;
        special.eot = special.eot.or_else(|| special::end_of_turn(id_of));
        let end_ids = match vocabulary.algorithm {
            Algorithm::WordPiece => Vec::new(),
            _ => special::end_of_generation(&special, id_of),
        };
        let spelling = Spelling::of(vocabulary.algorithm);
        Ok(Tokenizer {
            strips_first_space: vocabulary.add_space_prefix || spelling == Spelling::Words,
            pieces: Pieces {
                texts: Arc::clone(vocabulary.tokens.texts()),
                kinds: vocabulary.kinds.clone(),
                spelling,
            },
            encoder: Encoder::Gguf(Box::new(GgufEncoder::new(vocabulary)?)),
            special,
            end_ids,
            controls: OnceLock::new(),
        })
    }

    /// The ids of a text.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        match &self.encoder {
            Encoder::Gguf(encoder) => encoder.encode(text, options),
            Encoder::Json(encoder) => encoder.encode(text, options),
        }
    }

    /// The ids that [`EncodeOptions::add_special`] puts before and after a text.
    pub fn around(&self) -> (Vec<u32>, Vec<u32>) {
        match &self.encoder {
            Encoder::Gguf(encoder) => (
                encoder.prefix.into_iter().collect(),
                encoder.suffix.into_iter().collect(),
            ),
            Encoder::Json(encoder) => encoder.around(),
        }
    }

    /// The text of some ids, without control tokens. Bytes that are not UTF-8 become U+FFFD; ids beyond
    /// the vocabulary are no text.
    ///
    /// A space that encoding put in front of the text is taken off again. BERT's tokens give their
    /// words with single spaces between them: what its normalisation took away does not come back.
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        ids.iter().for_each(|id| self.append_text(*id, &mut bytes));
        let strip = self.strips_first_space && bytes.first() == Some(&b' ');
        let bytes = bytes.get(usize::from(strip)..).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Decodes token by token.
    pub fn stream(&self) -> DecodeStream<&Tokenizer> {
        DecodeStream::new(self)
    }

    /// The bytes that a token stands for; for a control token its name. `None` beyond the vocabulary.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.pieces.append(id, &mut bytes).map(|()| bytes)
    }

    /// Whether the token controls the model and is no text.
    pub fn is_control(&self, id: u32) -> bool {
        self.pieces.is_control(id)
    }

    /// Appends what a token adds to the text: nothing for control tokens and for ids beyond the vocabulary.
    pub(crate) fn append_text(&self, id: u32, out: &mut Vec<u8>) {
        if !self.pieces.is_control(id) {
            self.pieces.append(id, out);
        }
    }

    /// Number of tokens; ids are below it.
    pub fn vocab_size(&self) -> usize {
        self.pieces.len()
    }

    /// The tokens with a meaning of their own.
    pub fn special_ids(&self) -> SpecialIds {
        self.special
    }

    /// Every token that ends an answer, in ascending order.
    pub fn end_ids(&self) -> &[u32] {
        &self.end_ids
    }

    /// Whether this token ends an answer.
    pub fn is_end(&self, id: u32) -> bool {
        self.end_ids.binary_search(&id).is_ok()
    }

    /// The text of a special token, as chat templates want it.
    pub fn special_text(&self, id: Option<u32>) -> Option<String> {
        String::from_utf8(self.token_bytes(id?)?).ok()
    }

    /// Refuses a model whose embedding has no row for some token. More rows than tokens are common.
    pub fn check_embedding_rows(&self, n_rows: usize) -> Result<(), TokenizerError> {
        match n_rows >= self.vocab_size() {
            true => Ok(()),
            false => Err(TokenizerError::EmbeddingRows {
                n_tokens: self.vocab_size(),
                n_rows,
            }),
        }
    }
}

impl Encoder {
    /// The ids of the parts of a prompt.
    pub(crate) fn encode_parts(&self, parts: &[PromptPart]) -> Vec<u32> {
        match self {
            Encoder::Gguf(encoder) => encoder.encode_parts(parts),
            Encoder::Json(encoder) => encoder.encode_parts(parts),
        }
    }

    /// The special tokens in a text and where they stand, user-defined ones among them.
    pub(crate) fn find_special(&self, text: &str) -> Vec<(Range<usize>, u32)> {
        match self {
            Encoder::Gguf(encoder) => encoder.splitter.find_all(text).collect(),
            Encoder::Json(encoder) => encoder.find_special(text),
        }
    }
}

impl GgufEncoder {
    fn new(vocabulary: Vocabulary) -> Result<GgufEncoder, TokenizerError> {
        let last = match vocabulary.algorithm {
            Algorithm::WordPiece => vocabulary.special.sep,
            _ => vocabulary.special.eos,
        };
        Ok(GgufEncoder {
            splitter: Splitter::new(&vocabulary)?,
            add_space_prefix: vocabulary.add_space_prefix,
            prefix: vocabulary.special.bos.filter(|_| vocabulary.add_bos),
            suffix: last.filter(|_| vocabulary.add_eos),
            model: Model::new(vocabulary)?,
        })
    }

    fn encode(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        ids.extend(self.prefix.filter(|_| options.add_special));
        let fragments = self.splitter.split(text, options.parse_special);
        self.encode_fragments(fragments, &mut ids);
        ids.extend(self.suffix.filter(|_| options.add_special));
        ids
    }

    fn encode_parts(&self, parts: &[PromptPart]) -> Vec<u32> {
        let fragments = parts.iter().flat_map(|part| match part {
            PromptPart::Control(id) => vec![Fragment::Token(*id)],
            PromptPart::Text(text) => self.splitter.split(text, false),
        });
        let mut ids = Vec::new();
        self.encode_fragments(fragments, &mut ids);
        ids
    }

    fn encode_fragments<'t>(
        &self,
        fragments: impl IntoIterator<Item = Fragment<'t>>,
        ids: &mut Vec<u32>,
    ) {
        let mut seen = SeenWords::default();
        let mut after_token = true;
        for fragment in fragments {
            match fragment {
                Fragment::Token(id) => ids.push(id),
                Fragment::Text(text) => {
                    let prefix = self.add_space_prefix && after_token;
                    self.model.encode(text, prefix, &mut seen, ids);
                }
            }
            after_token = matches!(fragment, Fragment::Token(_));
        }
    }
}

impl Model {
    fn new(vocabulary: Vocabulary) -> Result<Model, TokenizerError> {
        Ok(match vocabulary.algorithm {
            Algorithm::ByteLevelBpe | Algorithm::CharacterBpe => {
                let is_spaced = vocabulary.algorithm == Algorithm::CharacterBpe;
                let rules = BpeRules {
                    alphabet: if is_spaced {
                        Alphabet::CharactersOrBytes
                    } else {
                        Alphabet::Bytes
                    },
                    ignore_merges: vocabulary.pre.ignore_merges,
                };
                Model::Bpe {
                    cutter: Cutter::new(vocabulary.pre)?,
                    pieces: Bpe::new(vocabulary.tokens, vocabulary.merges, rules),
                    is_spaced,
                }
            }
            Algorithm::SentencePiece => Model::SentencePiece(SentencePiece::new(vocabulary)?),
            Algorithm::Unigram => Model::Unigram(Unigram::new(vocabulary)?),
            Algorithm::WordPiece => {
                let unknown = vocabulary.special.unk;
                let unknown = unknown.ok_or(TokenizerError::MissingSpecial {
                    what: "an unknown token",
                    key: "tokenizer.ggml.unknown_token_id",
                })?;
                Model::WordPiece {
                    normalizer: BertNormalizer {
                        strip_accents: vocabulary.strip_accents,
                        lowercase: vocabulary.lowercase,
                    },
                    words: WordPiece::new(&vocabulary, unknown),
                }
            }
        })
    }

    /// Appends the tokens of a text without special tokens; `prefix` puts a space before it.
    fn encode(&self, text: &str, prefix: bool, seen: &mut SeenWords, ids: &mut Vec<u32>) {
        match self {
            Model::SentencePiece(model) => {
                let mut spaced = String::with_capacity(text.len() + text.len() / 4);
                if prefix {
                    spaced.push(SPACE);
                }
                let escaped = text.chars().map(|c| if c == ' ' { SPACE } else { c });
                spaced.extend(escaped);
                model.encode(&spaced, ids);
            }
            Model::Unigram(model) => model.encode(text, prefix, ids),
            Model::Bpe {
                cutter,
                pieces,
                is_spaced,
            } => {
                let text = if *is_spaced {
                    Cow::Owned(text.replace(' ', SPACE.encode_utf8(&mut [0; 4])))
                } else {
                    Cow::Borrowed(text)
                };
                cutter.cut(&text, &mut |piece| pieces.encode(piece, seen, ids));
            }
            Model::WordPiece { normalizer, words } => {
                let text = normalizer.run(text);
                bert_words(&text, &mut |word| words.encode(word, ids));
            }
        }
    }
}
