//! The memory of adapters: their matrices, and scratch memory that they share.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use akunu_program::{Buffer, Device, Matrix, Slice, Storage, VECTOR};

use crate::adapter::AdapterMatrices;
use crate::builder::{Adapted, MAX_TOGETHER};
use crate::error::EngineError;

/// Maximum number of adapters of one model: each is a bit of a word.
pub(super) const MAX_ADAPTERS: usize = 64;
/// Alignment of matrices in a buffer, in bytes.
const ALIGNMENT: usize = 16;

/// All adapters of a model.
#[derive(Default)]
pub(super) struct AdapterSet {
    pub slots: Vec<Option<Slot>>,
    pub scratch: Option<Scratch>,
}

/// One adapter on the device.
pub(super) struct Slot {
    /// A, of (rank, inputs), and B, of (outputs, rank), for each product by the name of its weight.
    products: HashMap<String, [Matrix; 2]>,
    pub matrices: Buffer,
    pub max_rank: u32,
    /// Dead once nobody uses the adapter any more.
    pub alive: Weak<()>,
}

/// Scratch memory that all adapters share.
pub(super) struct Scratch {
    /// `A x`, (rows, rank), for each of the products that are adapted together.
    down: [Buffer; MAX_TOGETHER],
    /// (MAX_ADAPTERS, seats).
    factors: Buffer,
    pub rank: u32,
    pub rows: u32,
    pub seats: u32,
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
    pub fn new(
        [rank, rows, seats]: [u32; 3],
        device: &mut dyn Device,
    ) -> Result<Scratch, EngineError> {
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

    pub fn factors_of(&self, slot: usize) -> Slice {
        Slice {
            buffer: self.factors,
            offset: 4 * slot * self.seats as usize,
        }
    }

    pub fn release(self, device: &mut dyn Device) {
        self.down
            .into_iter()
            .for_each(|buffer| device.release(buffer));
        device.release(self.factors);
    }
}

/// Puts the matrices of an adapter on the device.
pub(super) fn write_matrices(
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
            storage: Storage::Rows,
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
