//! What is refused before the package `tokenizers` gets a file.
//!
//! The package takes files for trustworthy: it takes hundreds of bytes for each JSON value, panics at some that do not fit
//! together, and does whatever a file says, however long it takes.

use super::file::{File, Model};
use super::parts::Parts;
use crate::special::MAX_SPECIAL_TOKEN_BYTES;
use akunu_gguf::n_json_values;

/// The most values in a file: numbers, texts and lists. Gemma 3's has 1.9 million, and XLM-V's 2.7.
const MAX_VALUES: usize = 4 << 20;

/// The most tokens. XLM-V has 901,629.
const MAX_TOKENS: usize = 1 << 20;

/// Ids that no token has are holes. A file of a few tokens with a huge id would take memory out of proportion to it.
const MAX_HOLES: usize = 1 << 16;

/// The most bytes of all added tokens, each of which may be a state of an automaton. Gemma 3's have some 80,000.
const MAX_ADDED_BYTES: usize = 4 << 20;

/// The most bytes of a token of Unigram: as many calls drop it. The longest of XLM-R has 48.
const MAX_UNIGRAM_TOKEN_BYTES: usize = 1024;

/// The most nodes of Unigram's trie, each of which is a hash table of 340 bytes. XLM-R's has 782,864.
const MAX_UNIGRAM_NODES: usize = 4 << 20;

/// The longest word that WordPiece looks up, whose time grows with the cube of it. BERT's is 100.
const MAX_WORD_CHARS: usize = 256;

/// Refuses a text with more values than any vocabulary has.
pub(super) fn check_size(json: &[u8]) -> Result<(), String> {
    let n_values = n_json_values(json);
    match n_values > MAX_VALUES {
        true => Err(format!(
            "has {n_values} JSON values; at most {MAX_VALUES} are accepted"
        )),
        false => Ok(()),
    }
}

impl File<'_> {
    /// Refuses what would take too much time or memory, or what the package does not check. Returns the texts of all tokens
    /// by id; those of ids that no token has are empty.
    pub(super) fn check(&self) -> Result<Vec<&str>, String> {
        let texts = self.texts()?;
        self.model.check()?;
        let growth = Parts::default().check(self)?;
        let mut n_bytes = 0usize;
        for token in &self.added_tokens {
            let length = token.content.len();
            if length > MAX_SPECIAL_TOKEN_BYTES {
                return Err(format!(
                    "has the id {} in `added_tokens` with a `content` of {length} bytes; at most {MAX_SPECIAL_TOKEN_BYTES} are accepted",
                    token.id
                ));
            }
            let times = if token.normalized { growth } else { 1 };
            n_bytes = n_bytes.saturating_add(length.saturating_mul(times));
        }
        match n_bytes > MAX_ADDED_BYTES {
            true => Err(format!(
                "has more than {MAX_ADDED_BYTES} bytes of `added_tokens`, with what its `normalizer` may make of them"
            )),
            false => Ok(texts),
        }
    }

    fn texts(&self) -> Result<Vec<&str>, String> {
        let own = self.model.vocab.entries.iter();
        let own = own.map(|(text, id)| (text.as_ref(), *id));
        let added = self.added_tokens.iter();
        let added = added.map(|token| (token.content.as_str(), token.id));
        let entries = || own.clone().chain(added.clone());
        let max_id = entries().map(|(_, id)| id as usize).max().unwrap_or(0);
        let n_entries = entries().count();
        if n_entries == 0 || n_entries > MAX_TOKENS {
            return Err(format!(
                "has {n_entries} tokens; a vocabulary has 1 to {MAX_TOKENS}"
            ));
        }
        if max_id >= 2 * n_entries + MAX_HOLES {
            return Err(format!(
                "has {n_entries} tokens and the id {max_id}, which leaves too many ids without a token"
            ));
        }
        let mut texts = vec![""; max_id + 1];
        for (text, id) in entries() {
            let Some(slot) = texts.get_mut(id as usize) else {
                continue;
            };
            if !slot.is_empty() && *slot != text {
                return Err(format!("gives the id {id} to both {slot:?} and {text:?}"));
            }
            *slot = text;
        }
        Ok(texts)
    }
}

impl Model<'_> {
    fn check(&self) -> Result<(), String> {
        if self.dropout.is_some_and(|dropout| dropout != 0.0) {
            return Err("has a `model.dropout`, which makes tokens random: set it to null".into());
        }
        if let Some(n) = self
            .max_input_chars_per_word
            .filter(|n| *n > MAX_WORD_CHARS)
        {
            return Err(format!(
                "has a `model.max_input_chars_per_word` of {n}; at most {MAX_WORD_CHARS} are accepted"
            ));
        }
        if self.vocab.is_list {
            self.check_unigram()?;
        }
        self.check_merges()
    }

    fn check_unigram(&self) -> Result<(), String> {
        let texts = self.vocab.entries.iter().map(|(text, _)| text.as_bytes());
        let mut texts: Vec<&[u8]> = texts.collect();
        if let Some(text) = texts
            .iter()
            .find(|text| text.len() > MAX_UNIGRAM_TOKEN_BYTES)
        {
            return Err(format!(
                "has a token of {} bytes in `model.vocab`; at most {MAX_UNIGRAM_TOKEN_BYTES} are accepted for Unigram",
                text.len()
            ));
        }
        texts.sort_unstable();
        let mut n_nodes = 0;
        let mut before: &[u8] = &[];
        for text in texts {
            let same = text.iter().zip(before).take_while(|(a, b)| a == b);
            n_nodes += text.len() - same.count();
            before = text;
        }
        if n_nodes > MAX_UNIGRAM_NODES {
            return Err(format!(
                "has a `model.vocab` whose trie has {n_nodes} nodes; at most {MAX_UNIGRAM_NODES} are accepted"
            ));
        }
        match self.unk_id {
            Some(_) => Ok(()),
            None => Err("is Unigram without a `model.unk_id`".into()),
        }
    }

    /// The package takes for granted that two tokens together are no longer than the longest token, and that the second one
    /// has the prefix.
    fn check_merges(&self) -> Result<(), String> {
        let texts = self.vocab.entries.iter().map(|(text, _)| text.len());
        let longest = texts.max().unwrap_or(0);
        let prefix = self.continuing_subword_prefix.as_deref().unwrap_or("");
        let merges = self.merges.iter().flatten().enumerate();
        for (index, merge) in merges {
            let rest = merge.right.strip_prefix(prefix);
            if rest.is_none_or(|rest| merge.left_bytes + rest.len() > longest) {
                let right = &merge.right;
                return Err(format!(
                    "entry {index} of `model.merges`, which ends in {right:?}, makes no token of `model.vocab`"
                ));
            }
        }
        Ok(())
    }
}
