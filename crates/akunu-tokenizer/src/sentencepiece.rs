//! SentencePiece BPE by scores.
//!
//! The text, with `▁` for every space, is a chain of characters. As long as any two neighbours
//! together are a token, the two whose token has the best score are joined; of equal scores the
//! leftmost wins. What is left are the tokens; a character that is none is written as its bytes.
//!
//! ```text
//! candidates = every pair of neighbours whose text is a token
//! while candidates: take the best; skip it when a part was joined meanwhile;
//!                   join; the new symbol makes new candidates with its neighbours
//! ```
//!
//! The package `tokenizers` has BPE by a list of merges only. Deriving such a list from the scores is
//! slow for large vocabularies (Gemma 3 would have half a million), and is not exact where a token's
//! parts are no tokens themselves, so this is written out here.

use crate::error::TokenizerError;
use crate::spelling::text_of_byte;
use crate::tokens::Tokens;
use crate::vocabulary::Vocabulary;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The encoder.
#[derive(Debug)]
pub(crate) struct SentencePiece {
    tokens: Tokens,
    scores: Vec<f32>,
    /// The token of each byte, or the unknown token.
    byte_ids: Box<[u32; 256]>,
    /// Bytes of the longest token: longer texts need not be looked up.
    longest: usize,
}

impl SentencePiece {
    /// Takes over a vocabulary. Every byte must have a token, or there must be an unknown token.
    pub fn new(vocabulary: Vocabulary) -> Result<SentencePiece, TokenizerError> {
        let tokens = vocabulary.tokens;
        let mut byte_ids = Box::new([0; 256]);
        for (byte, id) in (0..=u8::MAX).zip(byte_ids.iter_mut()) {
            let token = tokens.id_of(text_of_byte(byte));
            *id = token.or(vocabulary.special.unk).ok_or({
                TokenizerError::MissingSpecial {
                    what: "a token for every byte, or an unknown token",
                    key: "tokenizer.ggml.unknown_token_id",
                }
            })?;
        }
        Ok(SentencePiece {
            longest: tokens.iter().map(<[u8]>::len).max().unwrap_or(0),
            tokens,
            scores: vocabulary.scores,
            byte_ids,
        })
    }

    /// Appends the tokens of `text`, in which `▁` stands for spaces.
    pub fn encode(&self, text: &str, out: &mut Vec<u32>) {
        for symbol in Chain::new(self, text).join_all() {
            match self.tokens.id_of(symbol) {
                Some(id) => out.push(id),
                None => out.extend(symbol.bytes().map(|byte| self.byte_ids[usize::from(byte)])),
            }
        }
    }

    /// The score of the token with this text.
    fn score(&self, text: &str) -> Option<f32> {
        if text.len() > self.longest {
            return None;
        }
        self.scores.get(self.tokens.id_of(text)? as usize).copied()
    }
}

/// A stretch of the text. A symbol that was joined to its left neighbour is empty.
struct Symbol {
    start: usize,
    end: usize,
    prev: usize,
    next: usize,
}

/// Beyond either end of the chain.
const NONE: usize = usize::MAX;

/// Two neighbours that may be joined.
struct Candidate {
    score: f32,
    left: usize,
    right: usize,
    /// End of the right symbol when this was found: another end means that it is stale.
    end: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        let by_score = self.score.total_cmp(&other.score);
        by_score.then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// The chain of symbols, and what may be joined in it.
struct Chain<'a> {
    model: &'a SentencePiece,
    text: &'a str,
    symbols: Vec<Symbol>,
    candidates: BinaryHeap<Candidate>,
}

impl<'a> Chain<'a> {
    fn new(model: &'a SentencePiece, text: &'a str) -> Chain<'a> {
        let symbols: Vec<Symbol> = text
            .char_indices()
            .enumerate()
            .map(|(at, (start, character))| Symbol {
                start,
                end: start + character.len_utf8(),
                prev: at.checked_sub(1).unwrap_or(NONE),
                next: at + 1,
            })
            .collect();
        let mut chain = Chain {
            model,
            text,
            candidates: BinaryHeap::with_capacity(symbols.len()),
            symbols,
        };
        for right in 1..chain.symbols.len() {
            chain.consider(right - 1, right);
        }
        chain
    }

    /// Notes two neighbours if they are a token together.
    fn consider(&mut self, left: usize, right: usize) {
        let (Some(a), Some(b)) = (self.symbols.get(left), self.symbols.get(right)) else {
            return;
        };
        if let Some(score) = self.model.score(&self.text[a.start..b.end]) {
            self.candidates.push(Candidate {
                score,
                left,
                right,
                end: b.end,
            });
        }
    }

    /// Joins until nothing can be joined, and gives what is left.
    fn join_all(mut self) -> impl Iterator<Item = &'a str> {
        while let Some(best) = self.candidates.pop() {
            let (left, right) = (&self.symbols[best.left], &self.symbols[best.right]);
            let is_stale = left.end != right.start || right.end != best.end;
            if is_stale || left.start == left.end || right.start == right.end {
                continue;
            }
            let next = right.next;
            self.symbols[best.right].start = best.end;
            self.symbols[best.left].end = best.end;
            self.symbols[best.left].next = next;
            if let Some(follower) = self.symbols.get_mut(next) {
                follower.prev = best.left;
            }
            self.consider(self.symbols[best.left].prev, best.left);
            self.consider(best.left, next);
        }
        let text = self.text;
        let symbols = self.symbols.into_iter();
        let left_over = symbols.filter(|symbol| symbol.start < symbol.end);
        left_over.map(move |symbol| &text[symbol.start..symbol.end])
    }
}
