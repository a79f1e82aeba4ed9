//! Keys and values in pages, and attention to them.

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_kernels::case::Rng;
use akunu_kernels::kernel::attention;
use akunu_kernels::kernel::pages::{self, Pages};
use akunu_kernels::table::BufferSet;
use akunu_kernels::{Constants, KernelCall, KernelDevice, KernelId, PipelineKey};
use akunu_program::{Buffer, Room, Slice};
use akunu_types::params::{AttentionParams, Row};

pub const N_HEADS: u32 = 6;
const N_KV_HEADS: u32 = 2;
/// The smallest head that all levels have loops for.
pub const HEAD_DIM: u32 = 64;
pub const N_SEQUENCES: u32 = 4;
/// Slots of each sequence: several runs of keys.
pub const N_SLOTS: u32 = 512;
/// Factor of the scores.
const SCALE: f32 = 0.3;

/// Keys and values of some sequences.
pub struct Cache {
    pages: Pages,
    table: Vec<u32>,
    pools: [Vec<u8>; 2],
}

impl Cache {
    /// The same keys and values for every size of page; the pages lie in disorder.
    pub fn new(page_shift: u32, constants: &Constants) -> Cache {
        Cache::of_heads(HEAD_DIM, page_shift, constants)
    }

    /// The same with heads of as many elements.
    pub fn of_heads(head_dim: u32, page_shift: u32, constants: &Constants) -> Cache {
        let n_pages = N_SEQUENCES * (N_SLOTS >> page_shift);
        let pages = Pages {
            page_shift,
            table_stride: N_SLOTS >> page_shift,
            n_kv_heads: N_KV_HEADS,
            head_dim,
            n_pages,
            n_sequences: N_SEQUENCES,
            format: pages::format(constants),
        };
        // 5 has no common factor with the number of pages, a power of two.
        let table: Vec<u32> = (0..n_pages).map(|page| (5 * page + 3) % n_pages).collect();
        let mut rng = Rng::new(1);
        let pools = [(); 2].map(|()| {
            let mut pool = vec![0; pages.pool_bytes()];
            for sequence in 0..N_SEQUENCES {
                for slot in 0..N_SLOTS as usize {
                    for head in 0..N_KV_HEADS as usize {
                        let at = pages.slot_at(&table, sequence, slot, head);
                        pages.store(&mut pool, at, &rng.floats(head_dim as usize, 1.0));
                    }
                }
            }
            pool
        });
        Cache {
            pages,
            table,
            pools,
        }
    }

    /// What slots of a sequence hold moves to the slots from `to` on.
    pub fn move_slots(&mut self, sequence: u32, from: &[usize], to: usize) {
        let Cache {
            pages,
            table,
            pools,
        } = self;
        for pool in pools {
            for head in 0..N_KV_HEADS as usize {
                for (&from, to) in from.iter().zip(to..) {
                    let at = |slot| pages.slot_at(table, sequence, slot, head);
                    pages.copy(pool, at(from), at(to));
                }
            }
        }
    }

    /// Elements of a query, and of an output.
    fn width(&self) -> usize {
        (N_HEADS * self.pages.head_dim) as usize
    }

    /// The query of each row, which depends on its sequence and position.
    pub fn queries(&self, rows: &[Row]) -> Vec<f32> {
        let query = |row: &Row| {
            let seed = u64::from(row.sequence * N_SLOTS + row.position);
            Rng::new(seed).floats(self.width(), 1.0)
        };
        rows.iter().flat_map(query).collect()
    }

    /// The output of each row.
    pub fn attend(
        &self,
        device: &mut dyn KernelDevice,
        rows: &[Row],
        constants: &Constants,
    ) -> Vec<Vec<f32>> {
        self.attend_with(device, rows, &self.queries(rows), constants)
    }

    /// The output of a row that sees all keys before it, computed in f64.
    pub fn exact(&self, row: &Row) -> Vec<f32> {
        let q = self.queries(&[*row]);
        let heads = q.chunks_exact(self.pages.head_dim as usize).enumerate();
        heads
            .flat_map(|(head, q)| {
                let kv_head = head / (N_HEADS / N_KV_HEADS) as usize;
                let load = |pool: &[u8], slot: u32| {
                    let at =
                        (self.pages).slot_at(&self.table, row.sequence, slot as usize, kv_head);
                    self.pages.load(pool, at)
                };
                let weight = |slot: u32| {
                    let key = load(&self.pools[0], slot);
                    let products = q
                        .iter()
                        .zip(&key)
                        .map(|(&q, &k)| f64::from(q) * f64::from(k));
                    (f64::from(SCALE) * products.sum::<f64>()).exp()
                };
                let (mut sums, mut total) = (vec![0.0; q.len()], 0.0);
                for slot in 0..=row.position {
                    let weight = weight(slot);
                    total += weight;
                    for (sum, value) in sums.iter_mut().zip(load(&self.pools[1], slot)) {
                        *sum += weight * f64::from(value);
                    }
                }
                sums.into_iter().map(move |sum| (sum / total) as f32)
            })
            .collect()
    }

    /// The output of each row with other queries.
    pub fn attend_with(
        &self,
        device: &mut dyn KernelDevice,
        rows: &[Row],
        q: &[f32],
        constants: &Constants,
    ) -> Vec<Vec<f32>> {
        let params = AttentionParams {
            n_rows: rows.len() as u32,
            n_heads: N_HEADS,
            n_kv_heads: N_KV_HEADS,
            head_dim: self.pages.head_dim,
            page_shift: self.pages.page_shift,
            table_stride: self.pages.table_stride,
            n_pages: self.pages.n_pages,
            n_sequences: N_SEQUENCES,
            scale: SCALE,
            ..Default::default()
        };
        let mut filled = |bytes: &[u8]| {
            let buffer = device.allocate(bytes.len(), "test").expect("memory");
            device.write(buffer, 0, bytes).expect("fits");
            buffer
        };
        let buffers: [Buffer; 6] = [
            filled(bytemuck::cast_slice(q)),
            filled(&self.pools[0]),
            filled(&self.pools[1]),
            filled(bytemuck::cast_slice(&vec![f32::INFINITY; q.len()])),
            filled(bytemuck::cast_slice(rows)),
            filled(bytemuck::cast_slice(&self.table)),
        ];
        let key = PipelineKey {
            kernel: KernelId::FlashAttentionDecode,
            constants: constants.clone(),
        };
        let own = attention::Buffers::of(&buffers.map(Slice::from));
        let attend = KernelCall::new(key, &params, own, "attend");
        let plan = device.load_kernels(vec![attend], Room::default());
        let plan = plan.expect("sizes are right");
        device.run(plan, None).expect("runs");
        device.unload(plan);
        let mut bytes = vec![0; 4 * q.len()];
        device.read(buffers[3], 0, &mut bytes).expect("fits");
        for buffer in buffers {
            device.release(buffer);
        }
        let floats = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned);
        let output: Vec<f32> = floats.collect();
        output
            .chunks_exact(self.width())
            .map(<[f32]>::to_vec)
            .collect()
    }
}

pub fn device(isa: Isa, threads: usize) -> CpuDevice {
    let options = CpuOptions {
        threads: Some(threads),
        isa: Some(isa),
        ..CpuOptions::default()
    };
    CpuDevice::new(options).expect("the machine has it")
}

/// The levels that have kernels of their own.
pub fn fast_levels() -> impl Iterator<Item = Isa> {
    let levels = Isa::available().into_iter();
    levels.filter(|&isa| isa != Isa::Scalar)
}
