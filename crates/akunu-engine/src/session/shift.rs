//! Making room in a full context: the oldest tokens are dropped, the others move down.
//!
//! ```text
//! before   kept | dropped | the rest          len tokens
//! after    kept | the rest                    len - n_dropped tokens
//! ```
//!
//! Keys are stored turned to their position, so that moving them down means turning them back; a
//! kernel does both. The dropped tokens have left their trace in the keys and values of all but the
//! first layer, which is what makes a shift cheap and not the same as a fresh start.
//!
//! A window that has given pages back has lost what lies before it: there the tokens that remain go
//! through the model again. So they do where an image moves or is dropped, which is never cut in two.

use super::state::Session;
use crate::error::EngineError;
use crate::images::Content;

/// What became of a full session.
pub(crate) enum Shifted {
    /// There is nothing to drop.
    Nothing,
    /// It has room again.
    Moved {
        /// Tokens that are gone.
        n_dropped: usize,
    },
    /// It must read its tokens again.
    MustRead {
        /// Tokens that are gone.
        n_dropped: usize,
        /// The others, with their images.
        content: Content,
    },
}

impl Session {
    /// Drops the older half of what follows the first `keep` tokens.
    pub(crate) fn shift(&mut self, keep: usize) -> Result<Shifted, EngineError> {
        let cached = self.sequence.cached;
        let n_dropped = cached.saturating_sub(keep).div_ceil(2);
        if n_dropped == 0 {
            return Ok(Shifted::Nothing);
        }
        let mut runtime = self.model.runtime();
        if runtime.is_whole(&self.sequence) && self.sequence.images.end_before(keep) {
            runtime.shift(&mut self.sequence, keep, n_dropped)?;
            return Ok(Shifted::Moved { n_dropped });
        }
        let mut content = self.sequence.content();
        Ok(match content.remove(keep..keep + n_dropped) {
            0 => Shifted::Nothing,
            n_dropped => Shifted::MustRead { n_dropped, content },
        })
    }
}
