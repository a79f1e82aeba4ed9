//! Which factors of long-rope heads turn by: those for short sessions until a long one comes.
//!
//! Keys that are stored have turned already, so that a change makes all of them useless: it waits until no session has any.

use super::Runtime;
use crate::builder::divisors;
use crate::error::EngineError;
use crate::pool::Pool;

impl Runtime {
    /// A sequence may have this many positions. The factors for long sessions, once chosen, stay: short ones may have them as well.
    pub fn want_positions(&mut self, positions: u32) -> Result<(), EngineError> {
        let model = self.model.clone();
        let Some(long) = &model.config.long_rope else {
            return Ok(());
        };
        if self.turns_long || positions <= long.original_context {
            return Ok(());
        }
        if self.n_owned_pages() > 0 {
            return Err(EngineError::LongSession {
                context: positions,
                original: long.original_context,
            });
        }
        self.keep_chains();
        for pool in &mut self.pools {
            *pool = Pool::new(pool.n_pages());
        }
        let places = self.memory.divisors.clone();
        for (attention, place) in model.config.attention().zip(places) {
            let divisors = divisors(attention, &long.long);
            let bytes = bytemuck::cast_slice(&divisors);
            self.device.write(place.buffer, place.offset, bytes)?;
        }
        self.turns_long = true;
        if let Some(cache) = &mut self.cache {
            cache.turn_long();
        }
        Ok(())
    }

    /// Whether heads turn by the factors for long sessions.
    pub fn turns_long(&self) -> bool {
        self.turns_long
    }
}
