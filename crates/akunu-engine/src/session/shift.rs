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
//! A ring that has wrapped has lost what lies before its window: there the tokens that remain go
//! through the model again.

use akunu_arch::RopePairing;
use akunu_kernels::plan::Slice;
use akunu_kernels::{Constant, Constants, KernelId, Plan};
use akunu_types::params::KVCacheShiftParams;

use super::Session;
use crate::error::EngineError;
use crate::generation::Overflow;

/// A move of the positions from `keep + n_dropped` on down to `keep`.
#[derive(Clone, Copy)]
struct Shift {
    keep: u32,
    n_dropped: u32,
    /// Positions that move.
    n_moved: u32,
}

impl Session<'_> {
    /// Positions that the context has left, after a shift if it was full and that is wanted. `last` was
    /// chosen last: the history has it after the tokens of the cache.
    pub(crate) fn make_room(
        &mut self,
        overflow: Overflow,
        last: u32,
    ) -> Result<usize, EngineError> {
        let context = self.sizes.context as usize;
        if self.content.tokens.len() == context
            && let Overflow::Shift { keep } = overflow
            && self.shift(keep)?
        {
            let place = 4 * self.content.tokens.len();
            let bytes = bytemuck::bytes_of(&last);
            self.model
                .device()
                .write(self.memory.history, place, bytes)?;
        }
        Ok(context - self.content.tokens.len())
    }

    /// Drops the older half of what follows the first `keep` tokens. Returns whether there was any.
    pub(crate) fn shift(&mut self, keep: usize) -> Result<bool, EngineError> {
        let cached = self.content.cached;
        let n_dropped = cached.saturating_sub(keep).div_ceil(2);
        if n_dropped == 0 {
            return Ok(false);
        }
        let mut tokens = self.content.tokens.clone();
        tokens.drain(keep..keep + n_dropped);
        if self.has_wrapped() {
            self.feed(&tokens)?;
            return Ok(true);
        }
        let shift = Shift {
            keep: keep as u32,
            n_dropped: n_dropped as u32,
            n_moved: (cached - keep - n_dropped) as u32,
        };
        let plan = self.shift_plan(shift)?;
        // A shift that fails halfway leaves a cache that fits neither the old tokens nor the new ones.
        (self.content.cached, self.content.has_logits) = (0, false);
        let mut device = self.model.device();
        device.run(&plan, 0)?;
        device.write(self.memory.history, 0, bytemuck::cast_slice(&tokens))?;
        drop(device);
        self.content.tokens = tokens;
        self.content.cached = cached - n_dropped;
        Ok(true)
    }

    fn has_wrapped(&self) -> bool {
        let mut caches = self.memory.layers.iter();
        caches.any(|cache| cache.slots < self.content.cached as u32) || self.content.floor > 0
    }

    /// Each head of each layer by itself: seen from its first position that may change, a head is a
    /// whole cache of which the oldest positions are dropped.
    fn shift_plan(&self, shift: Shift) -> Result<Plan, EngineError> {
        let config = self.model.config();
        let kernel = match config.arch.rope {
            Some(RopePairing::Interleaved) => KernelId::KvCacheShift,
            _ => KernelId::KvCacheShiftNeox,
        };
        let constants = Constants::none().with_bool(Constant::FreqTable, true);
        let mut device = self.model.device();
        let mut builder = self.builder(device.as_mut(), 1);
        for (at, layer) in config.layers.iter().enumerate() {
            let cache = self.memory.layers[at];
            let params = KVCacheShiftParams {
                n_kv_heads: 1,
                head_dim: config.head_dim,
                max_seq_len: cache.slots - shift.keep,
                shift: shift.n_dropped,
                new_len: shift.n_moved,
                theta: layer.rope.theta,
                freq_scale: layer.rope.freq_scale,
                ..Default::default()
            };
            for head in 0..config.n_kv_heads as usize {
                let position = head * cache.slots as usize + shift.keep as usize;
                let offset = 2 * config.head_dim as usize * position;
                let [k, v] = [cache.k, cache.v].map(|buffer| Slice { buffer, offset });
                let bindings = vec![k, v, self.memory.divisors[at]];
                builder.push(kernel, constants.clone(), &params, bindings, "shift")?;
            }
        }
        let plan = Plan::check(builder.dispatches, 0)?;
        device.prepare(&plan)?;
        Ok(plan)
    }
}
