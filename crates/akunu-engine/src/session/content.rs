//! What a session holds: tokens, and which of them the cache knows.

use akunu_arch::LayerConfig;

use crate::memory::LayerCache;

/// The tokens of a session and the state of its cache and logits.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// All tokens.
    pub tokens: Vec<u32>,
    /// Of how many the keys and values are in the cache. A token that was chosen last is not yet.
    pub cached: usize,
    /// How far the cache was written since it was empty: a ring has lost what lies far before.
    pub written: usize,
    /// A ring was restored without what lies before this length.
    pub floor: usize,
    /// Whether the logits are those after the last token, as the model gave them.
    pub has_logits: bool,
}

impl Content {
    /// The longest beginning of `tokens` that the cache has.
    pub fn common(&self, tokens: &[u32]) -> usize {
        let pairs = self.tokens[..self.cached].iter().zip(tokens);
        pairs.take_while(|(a, b)| a == b).count()
    }

    /// Forgets all but the first `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        self.cached = self.cached.min(len);
        self.has_logits = false;
        if len == 0 {
            (self.written, self.floor) = (0, 0);
        }
    }

    /// Tokens went through the model after those that the cache had.
    pub fn extend(&mut self, tokens: &[u32]) {
        self.tokens.extend(tokens);
        self.cached = self.tokens.len();
        self.written = self.written.max(self.cached);
        self.has_logits = false;
    }

    /// Whether the cache still has all that position `len` would look at. A layer with a window keeps
    /// a ring: what was written far beyond `len` has overwritten what lies before it.
    pub fn can_return_to(&self, len: usize, layers: &[LayerConfig], caches: &[LayerCache]) -> bool {
        let lost = self.written.saturating_sub(len);
        let keeps = |layer: &LayerConfig, cache: &LayerCache| match layer.window {
            None => true,
            Some(window) => self.written.min(lost + window as usize) <= cache.slots as usize,
        };
        let mut layers = layers.iter().zip(caches);
        len == 0 || len >= self.floor && layers.all(|(layer, cache)| keeps(layer, cache))
    }
}
