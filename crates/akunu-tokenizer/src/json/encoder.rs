//! Encoding by the package `tokenizers`.
//!
//! ```text
//! text → cut out added tokens → normalize → cut out normalized added tokens → cut into pieces → tokens of each piece
//!      → tokens around the whole
//! ```
//!
//! The package's own steps are called one by one, for three reasons: its limits on lengths and its padding are for batches
//! of training texts; a part of a prompt is text that does not begin the whole; and no piece of text may become a control
//! token, which several of its models would make of a text that spells one.

use std::ops::Range;

use tokenizers::models::ModelWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{
    AddedVocabulary, Encoding, Model, OffsetReferential, OffsetType, PostProcessor,
    PreTokenizedString, PreTokenizer, Token,
};

use super::file::File;
use crate::prompt::PromptPart;
use crate::tokenizer::EncodeOptions;

/// A whole `tokenizer.json`.
#[derive(Debug)]
pub(crate) struct JsonEncoder {
    /// Its own added tokens leave special ones in the text.
    package: tokenizers::Tokenizer,
    /// All added tokens, special ones among them.
    added: AddedVocabulary,
    /// The pre-tokenizer for text that does not begin the whole, where it differs.
    inner: Option<PreTokenizerWrapper>,
    /// Whether each token controls the model. The unknown token does not.
    is_control: Vec<bool>,
    unknown: Option<u32>,
    /// Ids before and after a text when special tokens are asked for.
    before: Vec<u32>,
    after: Vec<u32>,
}

impl JsonEncoder {
    /// Hands the text of a checked file to the package.
    pub(super) fn new(text: &str, file: &File<'_>, n_tokens: usize) -> Result<JsonEncoder, String> {
        let mut package: tokenizers::Tokenizer = text
            .parse()
            .map_err(|error| format!("is not a tokenizer: {error}{}", parts_of(file)))?;
        check_added(&package, file)?;
        let unknown = unknown(package.get_model(), file)?;
        make_ends_special(&mut package, file)?;
        let added = package.get_added_vocabulary().clone();
        package.set_encode_special_tokens(true);
        let mut is_control = vec![false; n_tokens];
        for (id, token) in added.get_added_tokens_decoder() {
            if let Some(is_control) = is_control.get_mut(*id as usize) {
                *is_control = token.special && Some(*id) != unknown;
            }
        }
        let (before, after) = around(&package, n_tokens)?;
        Ok(JsonEncoder {
            inner: package.get_pre_tokenizer().and_then(inner),
            package,
            added,
            is_control,
            unknown,
            before,
            after,
        })
    }

    /// The id of a token.
    pub fn id_of(&self, text: &str) -> Option<u32> {
        self.package.token_to_id(text)
    }

    /// Whether text that is no part of a template may not become this token.
    pub fn is_control(&self, id: u32) -> bool {
        self.is_control
            .get(id as usize)
            .is_some_and(|is_control| *is_control)
    }

    /// The ids before and after a text.
    pub fn around(&self) -> (Vec<u32>, Vec<u32>) {
        (self.before.clone(), self.after.clone())
    }

    pub fn encode(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3 + 2);
        if options.add_special {
            ids.extend(&self.before);
        }
        self.encode_text(text, true, options.parse_special, &mut ids);
        if options.add_special {
            ids.extend(&self.after);
        }
        ids
    }

    pub fn encode_parts(&self, parts: &[PromptPart]) -> Vec<u32> {
        let mut ids = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            match part {
                PromptPart::Control(id) => ids.push(*id),
                PromptPart::Text(text) => self.encode_text(text, at == 0, false, &mut ids),
            }
        }
        ids
    }

    /// The added tokens in a text, and where they stand with the spaces that they swallow.
    pub fn find_special(&self, text: &str) -> Vec<(Range<usize>, u32)> {
        let pieces = self
            .added
            .extract_and_normalize(self.package.get_normalizer(), text);
        let pieces = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte);
        let found = pieces.into_iter().filter_map(|(_, (start, end), tokens)| {
            let token = tokens.as_ref()?.first()?;
            Some((start..end, token.id))
        });
        found.collect()
    }

    /// Appends the tokens of a text; `begins` where it begins the whole.
    fn encode_text(&self, text: &str, begins: bool, parse_special: bool, ids: &mut Vec<u32>) {
        let added = match parse_special {
            true => &self.added,
            false => self.package.get_added_vocabulary(),
        };
        let whole = || added.extract_and_normalize(self.package.get_normalizer(), text);
        let mut pieces = whole();
        let own = self.package.get_pre_tokenizer();
        let pre_tokenizer = match begins {
            true => own,
            false => self.inner.as_ref().or(own),
        };
        if let Some(Err(error)) = pre_tokenizer.map(|steps| steps.pre_tokenize(&mut pieces)) {
            tracing::warn!(%error, "a text stays one piece");
            pieces = whole();
        }
        self.tokenize(&mut pieces, parse_special);
        let pieces = pieces.get_splits(OffsetReferential::Normalized, OffsetType::None);
        let tokens = pieces
            .into_iter()
            .filter_map(|(_, _, tokens)| tokens.as_ref());
        ids.extend(tokens.flatten().map(|token| token.id));
    }

    fn tokenize(&self, pieces: &mut PreTokenizedString, parse_special: bool) {
        let done = pieces.tokenize(|piece| {
            Ok(match parse_special {
                true => self.tokens(piece.get()),
                false => self.text_tokens(piece.get()),
            })
        });
        if let Err(error) = done {
            tracing::error!(%error, "a text has no tokens");
        }
    }

    /// The tokens of a piece, none of which controls the model: where the model makes one of a text that spells it, the text
    /// is cut after its first character.
    fn text_tokens(&self, piece: &str) -> Vec<Token> {
        let tokens = self.tokens(piece);
        let controls = tokens.iter().filter(|token| self.is_control(token.id));
        let ends = controls.map(|token| after_character(piece, token.offsets.0));
        let ends: Vec<usize> = ends.chain([piece.len()]).collect();
        if ends.len() == 1 {
            return tokens;
        }
        let mut start = 0;
        let mut found = Vec::new();
        for end in ends {
            let part = piece.get(start..end).unwrap_or_default();
            for mut token in self.tokens(part) {
                // A control token of one character.
                if self.is_control(token.id) {
                    let Some(unknown) = self.unknown else {
                        continue;
                    };
                    token.id = unknown;
                }
                found.push(token);
            }
            start = end;
        }
        found
    }

    /// The tokens of a piece. A model that finds none, which a checked file does not have, makes it unknown.
    fn tokens(&self, piece: &str) -> Vec<Token> {
        let unknown = || {
            let unknown = self.unknown.into_iter();
            unknown
                .map(|id| Token::new(id, String::new(), (0, piece.len())))
                .collect()
        };
        self.package
            .get_model()
            .tokenize(piece)
            .unwrap_or_else(|error| {
                tracing::error!(%error, "a text is unknown");
                unknown()
            })
    }
}

/// The byte after the character at `at`, or the end.
fn after_character(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    rest.chars()
        .next()
        .map_or(text.len(), |first| at + first.len_utf8())
}

/// The kinds of the parts of a file, for an error of the package, which often does not say what it is about.
fn parts_of(file: &File<'_>) -> String {
    let kind = |part: &Option<serde_json::Value>| {
        let kind = part.as_ref()?.get("type")?.as_str()?;
        Some(kind.to_string())
    };
    let parts = [
        ("normalizer", kind(&file.normalizer)),
        ("pre_tokenizer", kind(&file.pre_tokenizer)),
        ("post_processor", kind(&file.post_processor)),
        ("decoder", kind(&file.decoder)),
        ("model", file.model.kind.clone()),
    ];
    let parts = parts.into_iter();
    let parts = parts.filter_map(|(part, kind)| Some(format!("{part} {}", kind?)));
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(" (its parts: {})", parts.join(", ")),
    }
}

/// Refuses added tokens that the package gives other ids than the file does: it counts on from the vocabulary.
fn check_added(package: &tokenizers::Tokenizer, file: &File<'_>) -> Result<(), String> {
    for token in &file.added_tokens {
        let id = package.token_to_id(&token.content);
        if id != Some(token.id) && !token.content.is_empty() {
            return Err(format!(
                "has the token {:?} in `added_tokens` with the id {}, but the vocabulary has holes, or the token twice: it \
                 would get {id:?}",
                token.content, token.id
            ));
        }
    }
    Ok(())
}

/// The token that stands for unknown text; an error where the model needs one that it does not have.
fn unknown(model: &ModelWrapper, file: &File<'_>) -> Result<Option<u32>, String> {
    if let ModelWrapper::Unigram(_) = model {
        return Ok(file.model.unk_id);
    }
    let Some(text) = &file.model.unk_token else {
        return Ok(None);
    };
    match model.token_to_id(text) {
        Some(id) => Ok(Some(id)),
        None => Err(format!(
            "has the `model.unk_token` {text:?}, which is not in `model.vocab`"
        )),
    }
}

/// Special tokens that the file did not call so.
fn make_ends_special(package: &mut tokenizers::Tokenizer, file: &File<'_>) -> Result<(), String> {
    let own = package.get_added_vocabulary();
    let added = file.added_tokens.iter();
    let ends = added.filter(|token| token.special && !own.is_special_token(&token.content));
    let ends = ends.map(|token| tokenizers::AddedToken {
        content: token.content.clone(),
        single_word: token.single_word,
        lstrip: token.lstrip,
        rstrip: token.rstrip,
        normalized: token.normalized,
        special: true,
    });
    let ends: Vec<_> = ends.collect();
    if ends.is_empty() {
        return Ok(());
    }
    let added = package.add_special_tokens(ends);
    added.map(|_| ()).map_err(|error| error.to_string())
}

/// What the post-processor puts before and after a text.
fn around(
    package: &tokenizers::Tokenizer,
    n_tokens: usize,
) -> Result<(Vec<u32>, Vec<u32>), String> {
    let Some(steps) = package.get_post_processor() else {
        return Ok(Default::default());
    };
    let text = Encoding::from_tokens(vec![Token::new(0, String::new(), (0, 0))], 0);
    let whole = steps.process(text, None, true);
    let whole = whole.map_err(|error| format!("has a `post_processor` that fails: {error}"))?;
    let ids = whole.get_ids();
    if let Some(id) = ids.iter().find(|id| **id as usize >= n_tokens) {
        return Err(format!(
            "has a post-processor with the id {id}, but there are {n_tokens} tokens"
        ));
    }
    let places = whole.get_special_tokens_mask().iter().enumerate();
    let mut places = places
        .filter(|(_, is_special)| **is_special == 0)
        .map(|(at, _)| at);
    match (places.next(), places.next()) {
        (Some(at), None) => Ok((ids[..at].to_vec(), ids[at + 1..].to_vec())),
        _ => Err("has a `post_processor` that does not write the text once".into()),
    }
}

/// The pre-tokenizer without what it does where a text begins, if it does such.
fn inner(pre_tokenizer: &PreTokenizerWrapper) -> Option<PreTokenizerWrapper> {
    let mut inner = pre_tokenizer.clone();
    forget_beginning(&mut inner).then_some(inner)
}

/// Whether there was something to forget.
fn forget_beginning(step: &mut PreTokenizerWrapper) -> bool {
    match step {
        PreTokenizerWrapper::Metaspace(metaspace) => {
            let is_first = metaspace.prepend_scheme == PrependScheme::First;
            if is_first {
                metaspace.set_prepend_scheme(PrependScheme::Never);
            }
            is_first
        }
        PreTokenizerWrapper::Sequence(steps) => {
            let steps = steps.as_mut().iter_mut().map(forget_beginning);
            steps.fold(false, |any, forgot| any | forgot)
        }
        _ => false,
    }
}
