//! The adapters of a runtime: how they are loaded and released, and the factors of the sequences that use them.

use std::sync::Arc;

use super::adapter_set::{MAX_ADAPTERS, Scratch, Slot, write_matrices};
use super::state::Runtime;
use crate::adapter::AdapterMatrices;
use crate::error::EngineError;
use crate::sequence::Sequence;

impl Runtime {
    /// Puts the matrices of an adapter on the device, as long as `alive` lives; returns its place.
    pub fn load_adapter(
        &mut self,
        products: &[AdapterMatrices],
        alive: &Arc<()>,
    ) -> Result<usize, EngineError> {
        self.keep_chains();
        self.sweep_adapters();
        let slots = &self.adapters.slots;
        let free = slots.iter().position(Option::is_none);
        let at = free.unwrap_or(slots.len());
        if at == MAX_ADAPTERS {
            return Err(EngineError::TooManyAdapters { max: MAX_ADAPTERS });
        }
        let slot = write_matrices(products, alive, self.device.as_mut())?;
        if at == slots.len() {
            self.adapters.slots.push(Some(slot));
        } else {
            self.adapters.slots[at] = Some(slot);
        }
        let fitted = self.fit_adapters();
        if fitted.is_err()
            && let Some(slot) = self.adapters.slots[at].take()
        {
            self.device.release(slot.matrices);
        }
        fitted?;
        // Factors of this place are those of an adapter that was there before, or nobody's.
        self.forget_seats();
        Ok(at)
    }

    /// Gives back what belonged to adapters that nobody has any more.
    pub(super) fn sweep_adapters(&mut self) {
        let is_gone = |slot: &Option<Slot>| {
            let slot = slot.as_ref();
            slot.is_some_and(|slot| slot.alive.strong_count() == 0)
        };
        if !self.adapters.slots.iter().any(is_gone) {
            return;
        }
        self.keep_chains();
        // Programs name the buffers.
        self.programs.unload_all(self.device.as_mut());
        for slot in self.adapters.slots.iter_mut().filter(|slot| is_gone(slot)) {
            if let Some(slot) = slot.take() {
                self.device.release(slot.matrices);
            }
        }
    }

    /// Makes the scratch memory of the adapters fit the rows, the seats and the largest rank. Whoever calls it forgets
    /// the seats afterwards: programs and factors are made anew.
    pub(super) fn fit_adapters(&mut self) -> Result<(), EngineError> {
        let ranks = self.adapters.slots.iter().flatten();
        let Some(rank) = ranks.map(|slot| slot.max_rank).max() else {
            return Ok(());
        };
        let (rows, seats) = (self.memory.step.row_capacity, self.seats.len() as u32);
        let fits = |scratch: &Scratch| {
            scratch.rank >= rank && (scratch.rows, scratch.seats) == (rows, seats)
        };
        if self.adapters.scratch.as_ref().is_some_and(fits) {
            return Ok(());
        }
        let device = self.device.as_mut();
        let scratch = Scratch::new([rank, rows, seats], device)?;
        if let Some(old) = self.adapters.scratch.replace(scratch) {
            self.programs.unload_all(device);
            old.release(device);
        }
        Ok(())
    }

    /// Writes the factors of a sequence that has just taken its seat to the device.
    pub(super) fn write_factors(&mut self, sequence: &Sequence) -> Result<(), EngineError> {
        let Some(scratch) = &self.adapters.scratch else {
            return Ok(());
        };
        for slot in 0..self.adapters.slots.len() {
            let place = scratch.factors_of(slot);
            let offset = place.offset + 4 * sequence.seat as usize;
            let factor = sequence.adapters().scale_at(slot);
            let bytes = bytemuck::bytes_of(&factor);
            self.device.write(place.buffer, offset, bytes)?;
        }
        Ok(())
    }
}
