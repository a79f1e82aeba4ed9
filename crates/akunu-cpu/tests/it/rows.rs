//! What attention gives a row depends on the row alone: not on the number of threads, on who else is in the batch, or
//! on the size of a page. Bits are compared, so that a chat goes on the same way whoever else is served.

use akunu_cpu::{CpuDevice, CpuOptions, Isa};
use akunu_kernels::case::Rng;
use akunu_kernels::kernel::pages::{self, Pages};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{
    Buffer, Constant, Constants, Device, KernelCall, KernelId, PipelineKey, Program,
};
use akunu_types::params::{AttentionParams, Row};

const N_HEADS: u32 = 6;
const N_KV_HEADS: u32 = 2;
const HEAD_DIM: u32 = 64;
const N_SEQUENCES: u32 = 4;
/// Slots of each sequence: several runs of keys.
const N_SLOTS: u32 = 512;
const PAGE_SHIFTS: [u32; 3] = [5, 6, 8];

/// Keys and values of some sequences.
struct Cache {
    pages: Pages,
    table: Vec<u32>,
    pools: [Vec<u8>; 2],
}

impl Cache {
    /// The same keys and values for every size of page; the pages lie in disorder.
    fn new(page_shift: u32, constants: &Constants) -> Cache {
        let n_pages = N_SEQUENCES * (N_SLOTS >> page_shift);
        let pages = Pages {
            page_shift,
            table_stride: N_SLOTS >> page_shift,
            n_kv_heads: N_KV_HEADS,
            head_dim: HEAD_DIM,
            n_pages,
            n_sequences: N_SEQUENCES,
            format: pages::format(constants),
        };
        // 5 has no common factor with the number of pages, a power of two.
        let table: Vec<u32> = (0..n_pages).map(|page| (5 * page + 3) % n_pages).collect();
        let mut rng = Rng::new(1);
        let head_dim = HEAD_DIM as usize;
        let pools = [(); 2].map(|()| {
            let mut pool = vec![0; pages.pool_bytes()];
            for sequence in 0..N_SEQUENCES {
                for slot in 0..N_SLOTS as usize {
                    for head in 0..N_KV_HEADS as usize {
                        let at = pages.slot_at(&table, sequence, slot, head);
                        pages.store(&mut pool, at, &rng.floats(head_dim, 1.0));
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
    fn move_slots(&mut self, sequence: u32, from: &[usize], to: usize) {
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

    /// The output of each row. The query of a row depends on its sequence and position.
    fn attend(
        &self,
        device: &mut dyn Device,
        rows: &[Row],
        constants: &Constants,
    ) -> Vec<Vec<f32>> {
        let width = (N_HEADS * HEAD_DIM) as usize;
        let query = |row: &Row| {
            let seed = u64::from(row.sequence * N_SLOTS + row.position);
            Rng::new(seed).floats(width, 1.0)
        };
        let q: Vec<f32> = rows.iter().flat_map(query).collect();
        let params = AttentionParams {
            n_rows: rows.len() as u32,
            n_heads: N_HEADS,
            n_kv_heads: N_KV_HEADS,
            head_dim: HEAD_DIM,
            page_shift: self.pages.page_shift,
            table_stride: self.pages.table_stride,
            n_pages: self.pages.n_pages,
            n_sequences: N_SEQUENCES,
            scale: 0.3,
            ..Default::default()
        };
        let mut filled = |bytes: &[u8]| {
            let buffer = device.allocate(bytes.len(), "test").expect("memory");
            device.write(buffer, 0, bytes).expect("fits");
            buffer
        };
        let buffers: [Buffer; 6] = [
            filled(bytemuck::cast_slice(&q)),
            filled(&self.pools[0]),
            filled(&self.pools[1]),
            filled(bytemuck::cast_slice(&vec![f32::NAN; q.len()])),
            filled(bytemuck::cast_slice(rows)),
            filled(bytemuck::cast_slice(&self.table)),
        ];
        let key = PipelineKey {
            kernel: KernelId::FlashAttentionDecode,
            constants: constants.clone(),
        };
        let bindings = buffers.map(Into::into).to_vec();
        let attend = KernelCall::new(key, &params, bindings, "attend");
        let program = Program::of_kernels(vec![attend]);
        let plan = device.load(&program).expect("sizes are right");
        device.run(plan, None).expect("runs");
        device.unload(plan);
        let mut bytes = vec![0; 4 * q.len()];
        device.read(buffers[3], 0, &mut bytes).expect("fits");
        for buffer in buffers {
            device.release(buffer);
        }
        let floats = bytes.chunks_exact(4).map(bytemuck::pod_read_unaligned);
        let output: Vec<f32> = floats.collect();
        output.chunks_exact(width).map(<[f32]>::to_vec).collect()
    }
}

fn device(isa: Isa, threads: usize) -> CpuDevice {
    let options = CpuOptions {
        threads: Some(threads),
        isa: Some(isa),
        ..CpuOptions::default()
    };
    CpuDevice::new(options).expect("the machine has it")
}

/// The levels that have kernels of their own.
fn fast_levels() -> impl Iterator<Item = Isa> {
    let levels = Isa::available().into_iter();
    levels.filter(|&isa| isa != Isa::Scalar)
}

/// A prompt, rows of all sequences at different places, two of which are one sequence's, and an idle row.
fn mixed() -> Vec<Row> {
    let idle = Row {
        flags: 0,
        ..Row::at(9, 77)
    };
    let prompt = (100..137).map(|position| Row::at(1, position));
    let short = (200..203).map(|position| Row::at(0, position));
    let singles = [(0, 0), (2, 511), (3, 127), (2, 36), (0, 128), (3, 300)];
    let singles = singles.map(|(sequence, position)| Row::at(sequence, position));
    (singles.into_iter().chain([idle]))
        .chain(prompt)
        .chain(short)
        .collect()
}

/// Everything and a window, in both formats.
fn masks() -> [Constants; 4] {
    let none = Constants::none();
    let q8 = none.clone().with_bool(Constant::KvQ8, true);
    let window = |constants: &Constants| constants.clone().with_u32(Constant::Window, 150);
    [window(&none), window(&q8), none, q8]
}

fn nmse(expected: &[Vec<f32>], found: &[Vec<f32>]) -> f64 {
    let (expected, found) = (expected.concat(), found.concat());
    let square = |x: f32| f64::from(x) * f64::from(x);
    let error: f64 = (expected.iter().zip(&found))
        .map(|(e, f)| square(e - f))
        .sum();
    error / expected.iter().map(|&e| square(e)).sum::<f64>()
}

/// Prompts and single rows in one dispatch, on any number of threads and with any size of page.
#[test]
fn threads_and_pages_do_not_change_a_bit() {
    for constants in masks() {
        let mut twin = TwinDevice::new();
        let expected = Cache::new(5, &constants).attend(&mut twin, &mixed(), &constants);
        for isa in fast_levels() {
            let one = Cache::new(5, &constants).attend(&mut device(isa, 1), &mixed(), &constants);
            assert!(
                nmse(&expected, &one) < 1e-9,
                "{isa}: {}",
                nmse(&expected, &one)
            );
            for threads in 1..=4 {
                let mut device = device(isa, threads);
                for page_shift in PAGE_SHIFTS {
                    let cache = Cache::new(page_shift, &constants);
                    let found = cache.attend(&mut device, &mixed(), &constants);
                    assert_eq!(one, found, "{isa} × {threads}, pages of 2^{page_shift}");
                }
            }
        }
    }
}

/// A row alone, and in a batch with all others.
#[test]
fn a_batch_does_not_change_a_bit_of_a_row() {
    for constants in masks() {
        let cache = Cache::new(6, &constants);
        for isa in fast_levels() {
            let mut device = device(isa, 2);
            let together = cache.attend(&mut device, &mixed(), &constants);
            for (row, expected) in mixed().iter().zip(&together) {
                let is_of_prompt = row.sequence == 1;
                if !is_of_prompt {
                    let alone = cache.attend(&mut device, &[*row], &constants);
                    assert_eq!(&alone[0], expected, "{isa}, {row:?}");
                }
            }
            let prompt: Vec<Row> = mixed()
                .into_iter()
                .filter(|row| row.sequence == 1)
                .collect();
            let alone = cache.attend(&mut device, &prompt, &constants);
            let first = mixed()
                .iter()
                .position(|row| row.sequence == 1)
                .expect("one");
            assert_eq!(alone, together[first..][..prompt.len()], "{isa}");
        }
    }
}

/// A row of a tree gives the bits of a row of a text without the other branches. Fails when its keys are cut or summed
/// otherwise, wherever the tree lies among blocks, runs and pages.
#[test]
fn other_branches_do_not_change_a_bit_of_a_row() {
    for constants in masks() {
        for (base, page_shift) in [(10, 5), (61, 5), (94, 6), (126, 5), (190, 8), (253, 6)] {
            // Slots: base, then a branch of three, one of two, and one after its first.
            let hidden = [0b1110_u32, 0b1_1100, 0b11_1010];
            let kept = [[0, 4, 0], [0, 4, 5], [0, 4, 6]];
            let tree = Cache::new(page_shift, &constants);
            for ((row, hidden), kept) in (4..).zip(hidden).zip(kept) {
                let row = Row::in_tree(1, base + row, hidden);
                let kept = &kept[..(row.position + 1 - base) as usize];
                let mut text = Cache::new(page_shift, &constants);
                let from: Vec<usize> = kept.iter().map(|at| base as usize + at).collect();
                text.move_slots(1, &from, base as usize);
                for isa in Isa::available() {
                    let mut device = device(isa, 2);
                    let found = tree.attend(&mut device, &[row.alone()], &constants);
                    let alone = Row::at(1, row.position).alone();
                    let wanted = text.attend(&mut device, &[alone], &constants);
                    assert_eq!(found, wanted, "{isa}, {row:?}, pages of 2^{page_shift}");
                }
            }
        }
    }
}

/// More long rows than the sums of have room: they are done in rounds, and no round may disturb another.
#[test]
fn more_long_rows_than_fit_at_once() {
    let constants = Constants::none();
    let cache = Cache::new(6, &constants);
    let rows: Vec<Row> = (0..35)
        .map(|i| Row::at(i % N_SEQUENCES, N_SLOTS - 1 - i))
        .collect();
    for isa in fast_levels() {
        let mut device = device(isa, 3);
        let together = cache.attend(&mut device, &rows, &constants);
        for (row, expected) in rows.iter().zip(&together) {
            let alone = cache.attend(&mut device, &[*row], &constants);
            assert_eq!(&alone[0], expected, "{isa}, {row:?}");
        }
    }
}
