//! Encoding with a whole `tokenizer.json`: the `tokenizers` crate does everything.

use std::ops::Range;
use std::sync::OnceLock;

use tokenizers::pre_tokenizers::metaspace::PrependScheme;
use tokenizers::{
    NormalizerWrapper, OffsetReferential, OffsetType, PreTokenizerWrapper, Tokenizer as Pipeline,
};

use crate::error::TokenizerError;
use crate::prompt::PromptPart;
use crate::tokenizer::{EncodeOptions, run};

/// A `tokenizer.json`. The variants of its pipeline are made when they are first needed.
#[derive(Debug)]
pub(crate) struct JsonEncoder {
    pipeline: Pipeline,
    /// Blind for special tokens.
    without_special: OnceLock<Pipeline>,
    /// The same for text that is not the beginning of the whole.
    inner: OnceLock<Pipeline>,
}

impl JsonEncoder {
    pub fn new(pipeline: Pipeline) -> JsonEncoder {
        JsonEncoder {
            pipeline,
            without_special: OnceLock::new(),
            inner: OnceLock::new(),
        }
    }

    pub fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>, TokenizerError> {
        let pipeline = match options.parse_special {
            true => &self.pipeline,
            false => self.without_special(),
        };
        run(pipeline, text, options.add_special)
    }

    pub fn encode_parts(&self, parts: &[PromptPart]) -> Result<Vec<u32>, TokenizerError> {
        let mut ids = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            match part {
                PromptPart::Control(id) => ids.push(*id),
                PromptPart::Text(text) if at == 0 => {
                    ids.extend(run(self.without_special(), text, false)?);
                }
                PromptPart::Text(text) => ids.extend(run(self.inner(), text, false)?),
            }
        }
        Ok(ids)
    }

    /// The added tokens in a text, and where they stand with the spaces that they swallow.
    pub fn find_special(&self, text: &str) -> Vec<(Range<usize>, u32)> {
        let added = self.pipeline.get_added_vocabulary();
        let split = added.extract_and_normalize(None::<&NormalizerWrapper>, text);
        let splits = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
        let tokens = splits.into_iter().filter_map(|(_, (start, end), tokens)| {
            let token = tokens.as_ref()?.first()?;
            Some((start..end, token.id))
        });
        tokens.collect()
    }

    fn without_special(&self) -> &Pipeline {
        self.without_special.get_or_init(|| {
            let mut pipeline = self.pipeline.clone();
            pipeline.set_encode_special_tokens(true);
            pipeline
        })
    }

    fn inner(&self) -> &Pipeline {
        self.inner.get_or_init(|| {
            let mut pipeline = self.without_special().clone();
            let mut pre_tokenizer = pipeline.get_pre_tokenizer().cloned();
            pre_tokenizer.iter_mut().for_each(prepend_nothing_at_first);
            pipeline.with_pre_tokenizer(pre_tokenizer);
            pipeline
        })
    }
}

/// Some pre-tokenizers put a space before the first text only.
fn prepend_nothing_at_first(pre_tokenizer: &mut PreTokenizerWrapper) {
    match pre_tokenizer {
        PreTokenizerWrapper::Metaspace(spaces)
            if spaces.get_prepend_scheme() == PrependScheme::First =>
        {
            spaces.set_prepend_scheme(PrependScheme::Never);
        }
        PreTokenizerWrapper::Sequence(steps) => {
            steps.as_mut().iter_mut().for_each(prepend_nothing_at_first);
        }
        _ => {}
    }
}
