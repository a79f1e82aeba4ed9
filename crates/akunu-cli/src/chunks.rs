//! A long text in pieces that a model reads one by one, cut as llama.cpp cuts them.

use crate::failure::Failure;
use akunu_tokenizer::{EncodeOptions, Tokenizer};

/// The whole chunks of a text, each beginning as the model expects a text to.
pub fn chunks(tokenizer: &Tokenizer, text: &str, context: u32) -> Result<Vec<Vec<u32>>, Failure> {
    let encode = |text: &str| {
        let options = EncodeOptions {
            add_special: true,
            ..EncodeOptions::default()
        };
        tokenizer.encode(text, options)
    };
    let ids = encode(text);
    let first = tokenizer.special_ids().bos;
    let begins = encode("").first().copied().filter(|id| Some(*id) == first);
    let mut chunks: Vec<Vec<u32>> = ids
        .chunks_exact(context as usize)
        .map(<[u32]>::to_vec)
        .collect();
    if chunks.is_empty() {
        return Err(Failure::TextTooShort {
            found: ids.len(),
            context,
        });
    }
    for chunk in &mut chunks {
        if let (Some(begin), Some(first)) = (begins, chunk.first_mut()) {
            *first = begin;
        }
    }
    Ok(chunks)
}
