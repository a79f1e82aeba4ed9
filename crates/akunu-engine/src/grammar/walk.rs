//! A text's way through a grammar without a model that chooses.

use super::Grammar;
use super::guide::Guide;
use crate::error::EngineError;

/// A position in a grammar, for your own decoders and to check whether a text has a form.
///
/// ```no_run
/// use akunu_engine::Grammar;
/// # fn example(model: &akunu_engine::Model) -> Result<(), akunu_engine::EngineError> {
/// let grammar = Grammar::regex(model, "yes|no").map_err(|error| panic!("{error}")).unwrap();
/// let mut walk = grammar.walk();
/// while !walk.is_complete()? {
///     let allowed = walk.allowed()?;
///     walk.take(&allowed[..1])?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct GrammarWalk {
    guide: Guide,
}

impl Grammar {
    /// The way of a new text.
    pub fn walk(&self) -> GrammarWalk {
        GrammarWalk {
            guide: self.guide(),
        }
    }
}

impl GrammarWalk {
    /// The tokens that may come next: bit `t % 32` of word `t / 32` is that of token t. A text that is complete may continue
    /// with one of the model's end tokens.
    pub fn allowed(&mut self) -> Result<Vec<u32>, EngineError> {
        let mut bits = Vec::new();
        self.guide.masks(&[], |mask| bits = mask.to_vec())?;
        Ok(bits)
    }

    /// Goes on by tokens up to the first that is not allowed; returns how many.
    pub fn take(&mut self, tokens: &[u32]) -> Result<usize, EngineError> {
        self.guide.take_allowed(tokens)
    }

    /// Whether the text so far has the form as a whole.
    pub fn is_complete(&mut self) -> Result<bool, EngineError> {
        self.guide.is_complete()
    }
}
