//! Our vocabulary as the grammar's compiler wants it: the bytes of every token, and text as tokens.
//!
//! ```text
//! text        its bytes                       " the", "é" or half of it
//! control     0xFF and its name               no text has this byte, so that no text is ever a control token
//! others      nothing                         never allowed: beyond the vocabulary, or beginning with 0xFF
//! ```

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use akunu_tokenizer::{EncodeOptions, Tokenizer};
use llguidance::api::{ParserLimits, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::panic_utils::catch_unwind;
use llguidance::toktrie::{
    INVALID_TOKEN, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv,
};
use llguidance::{ParserFactory, TokenParser};

/// Lexer states of a grammar, at most; one takes one or two kilobytes.
const MAX_LEXER_STATES: usize = 50_000;
/// Items of a row of the parser, at most: some for each property that may come next.
const MAX_ITEMS: usize = 10_000;
/// Stack of the compiler.
const STACK: usize = 64 << 20;
/// Put in front of a text that does not begin one. Hardly any vocabulary joins it to what follows.
const GUARD: &str = "\u{2}";

/// The vocabulary of a model, for grammars.
pub(crate) struct TokenTable {
    factory: ParserFactory,
}

impl TokenTable {
    pub fn new(tokenizer: Arc<Tokenizer>) -> TokenTable {
        let env: TokEnv = Arc::new(Vocabulary::new(tokenizer));
        let capabilities = InferenceCapabilities {
            ff_tokens: true,
            ..InferenceCapabilities::default()
        };
        let slices = SlicedBiasComputer::json_slices();
        let factory = ParserFactory::new(&env, capabilities.clone(), &slices);
        // The slices are constants of the crate; without them masks take longer and are the same.
        let factory = factory.or_else(|_| ParserFactory::new(&env, capabilities, &[]));
        let Ok(mut factory) = factory else {
            unreachable!("no slice is always possible");
        };
        factory.quiet();
        *factory.limits_mut() = ParserLimits {
            max_lexer_states: MAX_LEXER_STATES,
            max_items_in_row: MAX_ITEMS,
            verbose_errors: false,
            ..ParserLimits::default()
        };
        TokenTable { factory }
    }

    /// A parser at the beginning of a grammar, or what the compiler said. A grammar from outside must not end the process,
    /// whatever it makes of the compiler: that goes from part to part by calls, and may panic.
    pub fn compile(&self, grammar: TopLevelGrammar) -> Result<TokenParser, String> {
        let compile = AssertUnwindSafe(|| self.factory.create_parser(grammar));
        let compile = || catch_unwind(compile).map_err(|error| error.to_string());
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let thread = thread.spawn_scoped(scope, compile);
            let thread = thread.map_err(|error| error.to_string())?;
            let joined = thread.join();
            joined.unwrap_or_else(|_| Err("the compiler failed".into()))
        })
    }

    /// The bytes of a token, as a grammar sees them; of a control token its name.
    pub fn token_bytes(&self, token: u32) -> &[u8] {
        let bytes = self.factory.tok_env().tok_trie().token(token);
        let name = bytes.strip_prefix(&[TokTrie::SPECIAL_TOKEN_MARKER]);
        name.unwrap_or(bytes)
    }
}

/// The tree of all tokens, and the tokenizer.
struct Vocabulary {
    trie: TokTrie,
    tokenizer: Arc<Tokenizer>,
    /// Whether text that a grammar forces becomes the tokens that the model was trained on.
    is_canonical: bool,
}

impl Vocabulary {
    fn new(tokenizer: Arc<Tokenizer>) -> Vocabulary {
        let n_tokens = tokenizer.vocab_size() as u32;
        let words: Vec<Vec<u8>> = (0..n_tokens).map(|id| word(&tokenizer, id)).collect();
        let trie = TokTrie::from(&TokRxInfo::new(n_tokens, INVALID_TOKEN), &words);
        let trie = match tokenizer.end_ids() {
            [] => trie,
            ends => trie.with_eos_tokens(ends),
        };
        let mut vocabulary = Vocabulary {
            trie,
            tokenizer,
            is_canonical: false,
        };
        // Words that lose their spaces or their capitals cannot be forced.
        let probe = "{\"Ab c\": [1, \"x\"]}";
        vocabulary.is_canonical = vocabulary.encode(probe).is_some();
        vocabulary
    }

    /// The tokens of a text in the middle of others, if they have its very bytes.
    fn encode(&self, text: &str) -> Option<Vec<u32>> {
        let encode = |text: &str| self.tokenizer.encode(text, EncodeOptions::default());
        let ids = encode(text);
        if self.bytes_of(&ids) == text.as_bytes() {
            return Some(ids);
        }
        // A space was put in front; behind a guard there is none.
        let ids = encode(&format!("{GUARD}{text}"));
        let is_guard = |n: &usize| self.bytes_of(&ids[..*n]).ends_with(GUARD.as_bytes());
        let n_guard = (1..=ids.len().min(4)).find(is_guard)?;
        let ids = &ids[n_guard..];
        (self.bytes_of(ids) == text.as_bytes()).then(|| ids.to_vec())
    }

    fn bytes_of(&self, ids: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        ids.iter()
            .for_each(|&id| bytes.extend_from_slice(self.trie.token(id)));
        bytes
    }
}

/// What a token is for grammars.
fn word(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let marker = TokTrie::SPECIAL_TOKEN_MARKER;
    let bytes = tokenizer.token_bytes(id).unwrap_or_default();
    if tokenizer.is_control(id) || tokenizer.is_end(id) {
        return [&[marker], &bytes[..]].concat();
    }
    match bytes.first() {
        Some(&first) if first != marker => bytes,
        _ => Vec::new(),
    }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            let encoded = self.encode(text);
            encoded.unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }

    fn tokenize_is_canonical(&self) -> bool {
        self.is_canonical
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_gguf::GgufFile;

    fn vocabulary(name: &str) -> Vocabulary {
        let name = format!("ggml-vocab-{name}.gguf");
        let path = akunu_assets::path("llama-cpp-vocabs", &name);
        let file = GgufFile::open(path).expect("a vocabulary");
        let tokenizer = Tokenizer::from_gguf(file.metadata()).expect("a vocabulary");
        Vocabulary::new(Arc::new(tokenizer))
    }

    /// Fails when a vocabulary's spelling (bytes, `▁` for spaces, words) is not undone, when a space in front is kept
    /// that the text does not have, or when a control token has bytes that a text could have.
    #[test]
    fn texts_are_forced_byte_for_byte() {
        let texts = [
            "{\"a\": [1, 2]}",
            " größer\n\n\t日本語 🦀",
            "a",
            " ",
            "<|im_end|></s>",
        ];
        for name in ["gpt-2", "llama-spm", "qwen2"] {
            let vocabulary = vocabulary(name);
            assert!(vocabulary.is_canonical, "{name}");
            for text in texts {
                let ids = vocabulary.tokenize_bytes(text.as_bytes());
                assert_eq!(
                    vocabulary.bytes_of(&ids),
                    text.as_bytes(),
                    "{name}: {text:?}"
                );
            }
            let special = |id: &u32| vocabulary.trie.is_special_token(*id);
            let ids = vocabulary.tokenize_bytes(b"<|endoftext|></s><s>");
            assert!(!ids.iter().any(special), "{name}: {ids:?}");
            let n_tokens = vocabulary.trie.vocab_size() as u32;
            assert!(
                (0..n_tokens).any(|id| special(&id)),
                "{name} has control tokens"
            );
        }
    }

    /// WordPiece drops capitals and spaces: nothing is forced, and masks still know the bytes of each token.
    #[test]
    fn words_without_capitals_are_not_forced() {
        let vocabulary = vocabulary("bert-bge");
        assert!(!vocabulary.is_canonical);
        let ids = vocabulary.tokenize_bytes(b" the cat");
        assert_eq!(vocabulary.bytes_of(&ids), b" the cat");
    }
}
