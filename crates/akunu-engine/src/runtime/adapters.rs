//! The adapters of a runtime: their matrices, and the factors of the sequences that use them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use akunu_kernels::plan::Slice;
use akunu_kernels::program::Matrix;
use akunu_kernels::weight::VECTOR;
use akunu_kernels::{Buffer, Device};

use super::state::Runtime;
use crate::adapter::AdapterMatrices;
use crate::error::EngineError;
use crate::graph::Adapted;
use crate::sequence::Sequence;

/// Most adapters beside one model: the bits of a word.
pub(super) const MAX_ADAPTERS: usize = 64;
/// Products of one vector that are adapted together: q, k and v.
pub(crate) const MAX_TOGETHER: usize = 3;
/// What the places of matrices in a buffer are multiples of.
const ALIGNMENT: usize = 16;

/// All adapters of a model.
#[derive(Default)]
pub(super) struct AdapterSet {
    slots: Vec<Option<Slot>>,
    scratch: Option<Scratch>,
}

/// One adapter on the device.
struct Slot {
    /// A, of (rank, inputs), and B, of (outputs, rank), for each product by the name of its weight.
    products: HashMap<String, [Matrix; 2]>,
    matrices: Buffer,
    max_rank: u32,
    /// Gone when nobody has the adapter any more.
    alive: Weak<()>,
}

/// What all adapters use one after another.
struct Scratch {
    /// `A x`, (rows, rank), for each of the products that are adapted together.
    down: [Buffer; MAX_TOGETHER],
    /// (MAX_ADAPTERS, seats).
    factors: Buffer,
    rank: u32,
    rows: u32,
    seats: u32,
}

impl AdapterSet {
    /// The adapters of these bits, as programs use them.
    pub fn adapted(&self, bits: u64) -> Vec<Adapted<'_>> {
        let Some(scratch) = &self.scratch else {
            return Vec::new();
        };
        let slots = self.slots.iter().enumerate();
        let chosen = slots.filter(|(at, _)| bits >> at & 1 == 1);
        chosen
            .filter_map(|(at, slot)| {
                Some(Adapted {
                    products: &slot.as_ref()?.products,
                    down: scratch.down.map(Slice::from),
                    factors: scratch.factors_of(at),
                })
            })
            .collect()
    }

    pub fn release(&mut self, device: &mut dyn Device) {
        for slot in self.slots.drain(..).flatten() {
            device.release(slot.matrices);
        }
        if let Some(scratch) = self.scratch.take() {
            scratch.release(device);
        }
    }
}

impl Scratch {
    fn new([rank, rows, seats]: [u32; 3], device: &mut dyn Device) -> Result<Scratch, EngineError> {
        let mut made = Vec::new();
        let bytes = [rank, rows].map(u64::from).iter().product::<u64>() * 4;
        let factors = 4 * MAX_ADAPTERS as u64 * u64::from(seats);
        for bytes in [bytes; MAX_TOGETHER].into_iter().chain([factors]) {
            match device.allocate(bytes as usize, "adapters") {
                Ok(buffer) => made.push(buffer),
                Err(error) => {
                    made.into_iter().for_each(|buffer| device.release(buffer));
                    return Err(error.into());
                }
            }
        }
        Ok(Scratch {
            down: [made[0], made[1], made[2]],
            factors: made[3],
            rank,
            rows,
            seats,
        })
    }

    fn factors_of(&self, slot: usize) -> Slice {
        Slice {
            buffer: self.factors,
            offset: 4 * slot * self.seats as usize,
        }
    }

    fn release(self, device: &mut dyn Device) {
        self.down
            .into_iter()
            .for_each(|buffer| device.release(buffer));
        device.release(self.factors);
    }
}

impl Runtime {
    /// Puts the matrices of an adapter on the device, as long as `alive` lives; returns its place.
    pub fn load_adapter(
        &mut self,
        products: &[AdapterMatrices],
        alive: &Arc<()>,
    ) -> Result<usize, EngineError> {
        self.keep_chain();
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
        self.keep_chain();
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

    /// Tells the device the factors of a sequence that has just sat down.
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

fn write_matrices(
    products: &[AdapterMatrices],
    alive: &Arc<()>,
    device: &mut dyn Device,
) -> Result<Slot, EngineError> {
    let mut len = 0;
    let mut places = Vec::with_capacity(2 * products.len());
    for values in products.iter().flat_map(|product| [&product.a, &product.b]) {
        places.push(len);
        len += (4 * values.len()).next_multiple_of(ALIGNMENT);
    }
    let matrices = device.allocate(len, "adapter")?;
    let mut slot = Slot {
        products: HashMap::new(),
        matrices,
        max_rank: 0,
        alive: Arc::downgrade(alive),
    };
    for (product, places) in products.iter().zip(places.chunks_exact(2)) {
        let rank = product.rank;
        let matrix = |values: &[f32], offset: usize, cols: usize| Matrix {
            place: Slice {
                buffer: matrices,
                offset,
            },
            dtype: VECTOR,
            rows: (values.len() / cols) as u32,
            cols: cols as u32,
            group_size: 0,
        };
        for (values, &offset) in [&product.a, &product.b].into_iter().zip(places) {
            let written = device.write(matrices, offset, bytemuck::cast_slice(values));
            if let Err(error) = written {
                device.release(matrices);
                return Err(error.into());
            }
        }
        let pair = [
            matrix(&product.a, places[0], product.a.len() / rank),
            matrix(&product.b, places[1], rank),
        ];
        slot.products.insert(product.weight.clone(), pair);
        slot.max_rank = slot.max_rank.max(rank as u32);
    }
    Ok(slot)
}
