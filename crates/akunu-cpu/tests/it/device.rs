//! The device around the kernels: what it refuses, and chains of steps on several threads.

use akunu_kernels::kernel::common::bias_add;
use akunu_kernels::kernel::embedding::embedding_scale;
use akunu_kernels::table::BufferSet;
use std::sync::Arc;

use akunu_cpu::{CpuDevice, CpuError, CpuOptions, Isa};
use akunu_kernels::case::{Rng, nmse};
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{KernelCall, KernelDevice, KernelId, PipelineKey, lower};
use akunu_program::{
    AlignedBytes, Buffer, Counts, Device, DeviceError, Heads, LayerCache, Op, PageMap, Pairing,
    PlanId, Program, Room, Rope, RowError, RowTable, Rows, SharedMemory, Slice, StepMemory, op,
};
use akunu_types::params::{EmbeddingScaleParams, MatrixParams, Row};
use akunu_types::{KvFormat, SharedStruct};

fn device(threads: usize) -> CpuDevice {
    let options = CpuOptions {
        threads: Some(threads),
        isa: None,
        ..CpuOptions::default()
    };
    CpuDevice::new(options).expect("threads")
}

#[test]
fn instructions_that_the_machine_lacks_are_refused_by_name() {
    let lacking = Isa::ALL.into_iter().find(|isa| !isa.is_available());
    // No machine has both AVX2 and NEON.
    let isa = lacking.expect("one is of another architecture");
    let options = CpuOptions {
        isa: Some(isa),
        ..Default::default()
    };
    let Err(error) = CpuDevice::new(options) else {
        panic!("{isa} was taken")
    };
    assert!(matches!(error, CpuError::Isa { wanted, .. } if wanted == isa));
    assert!(error.to_string().contains("it has scalar"), "{error}");
}

#[test]
fn no_threads_or_too_many_are_refused() {
    for threads in [0, 100_000] {
        let options = CpuOptions {
            threads: Some(threads),
            isa: None,
            ..CpuOptions::default()
        };
        assert!(matches!(
            CpuDevice::new(options),
            Err(CpuError::Threads { found, .. }) if found == threads
        ));
    }
}

#[test]
fn shared_memory_is_read_at_any_alignment_and_never_written() {
    let mut device = device(1);
    let bytes = AlignedBytes::copy_of(&(0..64).collect::<Vec<u8>>());
    let aligned = device.share(Arc::new(bytes), "weights").expect("memory");
    struct Odd(AlignedBytes);
    impl AsRef<[u8]> for Odd {
        fn as_ref(&self) -> &[u8] {
            &self.0.as_ref()[1..]
        }
    }
    impl SharedMemory for Odd {}
    let odd = Odd(AlignedBytes::copy_of(&[9; 33]));
    let odd = device.share(Arc::new(odd), "weights").expect("memory");
    let mut read = [0; 4];
    device.read(aligned, 60, &mut read).expect("within");
    assert_eq!(read, [60, 61, 62, 63]);
    device.read(odd, 28, &mut read).expect("within");
    assert_eq!(read, [9; 4]);
    for buffer in [aligned, odd] {
        let refused = device.write(buffer, 0, &[1]);
        assert!(matches!(refused, Err(DeviceError::ReadOnly { .. })));
    }
    let beyond = device.read(aligned, 61, &mut read);
    assert!(matches!(
        beyond,
        Err(DeviceError::OutOfRange { end: 65, .. })
    ));
}

/// A kernel without rows, and a buffer of it.
fn add(device: &mut dyn Device) -> (KernelCall, Buffer) {
    let params = MatrixParams {
        rows: 1,
        cols: 4,
        ..Default::default()
    };
    let [h, x] = ["h", "x"].map(|label| device.allocate(16, label).expect("memory"));
    let add = call(
        KernelId::BiasAdd,
        &params,
        bias_add::Buffers {
            x: h.into(),
            bias: x.into(),
        },
    );
    (add, x)
}

#[test]
fn programs_of_other_devices_released_buffers_and_foreign_steps_are_refused() {
    let mut device = device(2);
    let (add, x) = add(&mut device);
    let load = |device: &mut CpuDevice| device.load_kernels(vec![add.clone()], Room::default());
    let plan = load(&mut device).expect("loads");
    device.run(plan, None).expect("runs");
    let decoder = Decoder::new(&mut device);
    let mut table = decoder.table();
    let step = table.check(1).expect("within its pages");
    let foreign = device.run(plan, Some(&step));
    assert!(
        matches!(foreign, Err(DeviceError::Rows(RowError::Foreign))),
        "{foreign:?}"
    );
    let without = device.run(decoder.plan, None);
    assert!(
        matches!(without, Err(DeviceError::Rows(RowError::Foreign))),
        "{without:?}"
    );
    let mut other = self::device(1);
    let refused = other.run(plan, None);
    assert!(
        matches!(
            refused,
            Err(DeviceError::Foreign {
                what: "program",
                ..
            })
        ),
        "{refused:?}"
    );
    let refused = load(&mut other);
    assert!(
        matches!(refused, Err(DeviceError::Foreign { what: "buffer", .. })),
        "{refused:?}"
    );
    device.release(x);
    for refused in [device.run(plan, None), load(&mut device).map(|_| ())] {
        assert!(matches!(
            refused,
            Err(DeviceError::Foreign { what: "buffer", id }) if id == x.id
        ));
    }
    device.unload(plan);
    let refused = device.run(plan, None);
    assert!(
        matches!(
            refused,
            Err(DeviceError::Foreign {
                what: "program",
                ..
            })
        ),
        "{refused:?}"
    );
}

/// A small decoder without products: turn and store k and v, attend, normalise, add the result to
/// q, k and v of the next step, halve those, and move the row on. Every step reads what the one before has written.
struct Decoder {
    memory: StepMemory,
    pages: PageMap,
    qkv: Buffer,
    pools: [Buffer; 2],
    plan: PlanId,
}

const HEADS: Heads = Heads {
    n_heads: 6,
    n_kv_heads: 2,
    head_dim: 32,
};
const PAGE_SHIFT: u32 = 5;
/// The pages of the only sequence.
const TABLE: [u32; 5] = [3, 0, 4, 1, 2];
const STEPS: u32 = 150;

impl Decoder {
    fn new(device: &mut dyn KernelDevice) -> Decoder {
        let (q_dim, kv_dim) = (6 * HEADS.head_dim, 2 * HEADS.head_dim);
        let width = q_dim + 2 * kv_dim;
        let mut rng = Rng::new(5);
        let mut floats = |n: u32| {
            let numbers = rng.floats(n as usize, 1.0);
            filled(device, bytemuck::cast_slice(&numbers))
        };
        let qkv = floats(width);
        let [attended, normal, weight] = [(); 3].map(|()| floats(q_dim));
        let divisors = filled(device, bytemuck::cast_slice(&[1f32; 16]));
        let mut empty = |bytes: usize| device.allocate(bytes, "test").expect("memory");
        let memory = StepMemory {
            rows: empty(size_of::<Row>()),
            tokens: empty(4),
            outputs: empty(4),
            rules: empty(48),
            history: empty(4),
            chosen: empty(4 * STEPS as usize),
            row_capacity: 1,
            n_sequences: 1,
            history_stride: 1,
            max_steps: STEPS,
        };
        let pages = PageMap {
            table: empty(size_of_val(&TABLE)),
            table_stride: TABLE.len() as u32,
            page_shift: PAGE_SHIFT,
            n_pages: TABLE.len() as u32,
            n_sequences: 1,
            window: None,
        };
        let pools = [(); 2].map(|()| empty((TABLE.len() << PAGE_SHIFT) * 2 * kv_dim as usize));
        let [k, v] = pools;
        let cache = LayerCache {
            format: KvFormat::F16,
            k,
            v,
            pages,
        };
        let from = |first: u32| Slice {
            buffer: qkv,
            offset: 4 * first as usize,
        };
        let added = MatrixParams {
            rows: 1,
            cols: q_dim,
            ..Default::default()
        };
        let halved = EmbeddingScaleParams {
            count: width,
            factor: 0.5,
            ..Default::default()
        };
        let ops = vec![
            Op::RopeStore(op::RopeStore {
                q: qkv.into(),
                k: from(q_dim),
                v: from(q_dim + kv_dim),
                heads: HEADS,
                rope: Rope {
                    pairing: Pairing::Interleaved,
                    theta: 1e4,
                    freq_scale: 1.0,
                    turned_dim: HEADS.head_dim,
                    divisors: divisors.into(),
                },
                centre: None,
                norms: None,
                cache,
            }),
            Op::Attend(op::Attend {
                q: qkv.into(),
                to: attended.into(),
                heads: HEADS,
                cache,
                scale: 0.2,
                softcap: None,
                sinks: None,
            }),
            Op::Norm(op::Norm {
                rows: Rows::All,
                x: attended.into(),
                weight: weight.into(),
                to: normal.into(),
                dim: q_dim,
                eps: 1e-5,
            }),
            Op::Advance,
        ];
        let program = Program {
            ops,
            step: Some(memory),
            room: Counts {
                singles: 1,
                run: 0,
                outputs: 1,
            },
        };
        let mut calls = lower::plain(&program);
        let before_advance = calls.len() - 1;
        // Overlaps q, k and the beginning of v.
        let own = bias_add::Buffers {
            x: from(width - q_dim),
            bias: normal.into(),
        };
        let add = call(KernelId::BiasAdd, &added, own);
        let halve = call(
            KernelId::EmbeddingScale,
            &halved,
            embedding_scale::Buffers { x: qkv.into() },
        );
        calls.splice(before_advance..before_advance, [add, halve]);
        let plan = device.load_kernels(calls, program.plan_room());
        let plan = plan.expect("sizes are right");
        Decoder {
            memory,
            pages,
            qkv,
            pools,
            plan,
        }
    }

    /// The row at position 0, with all its pages.
    fn table(&self) -> RowTable {
        let mut table = RowTable::new(self.memory, &[self.pages]);
        for (index, &page) in (0..).zip(&TABLE) {
            table.set_page(0, 0, index, Some(page));
        }
        table.push_single(Row::at(0, 0), 17);
        table
    }

    /// The pages and the last q, k and v after `STEPS` positions, `steps` of them in a submission.
    fn run(&self, device: &mut dyn Device, steps: u32) -> Vec<f32> {
        let mut table = self.table();
        for first in (0..STEPS).step_by(steps as usize) {
            chain(device, self.plan, &mut table, steps.min(STEPS - first));
        }
        let mut chosen = vec![0; self.memory.chosen.len];
        device
            .read(self.memory.chosen, 0, &mut chosen)
            .expect("fits");
        assert_eq!(numbers::<u32>(&chosen), [17; STEPS as usize]);
        let mut bytes = vec![0; self.qkv.len];
        device.read(self.qkv, 0, &mut bytes).expect("fits");
        let mut values: Vec<f32> = numbers(&bytes);
        for pool in self.pools {
            let mut bytes = vec![0; pool.len];
            device.read(pool, 0, &mut bytes).expect("fits");
            let halves: Vec<half::f16> = numbers(&bytes);
            values.extend(halves.iter().map(|half| half.to_f32()));
        }
        values
    }
}

/// As many rounds in one submission.
fn chain(device: &mut dyn Device, plan: PlanId, table: &mut RowTable, steps: u32) {
    let step = table.check(steps).expect("within its pages");
    device.run(plan, Some(&step)).expect("runs");
    table.submitted(steps, true);
}

/// A buffer with these bytes.
fn filled(device: &mut dyn Device, bytes: &[u8]) -> Buffer {
    let buffer = device.allocate(bytes.len(), "test").expect("memory");
    device.write(buffer, 0, bytes).expect("fits");
    buffer
}

/// Bytes as numbers, whatever their alignment.
fn numbers<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    let each = bytes.chunks_exact(size_of::<T>());
    each.map(bytemuck::pod_read_unaligned).collect()
}

fn call<P: SharedStruct>(
    kernel: KernelId,
    params: &P,
    buffers: impl BufferSet<Item = Slice>,
) -> KernelCall {
    KernelCall::new(PipelineKey::plain(kernel), params, buffers, "test")
}

/// A barrier that is missing, or a thread that runs ahead by a position, changes the numbers, and the
/// change is carried on. The keys end up in two runs.
#[test]
fn chains_agree_with_the_twins_on_any_number_of_threads() {
    let mut twin = TwinDevice::new();
    let expected = Decoder::new(&mut twin).run(&mut twin, STEPS);
    assert!(expected.iter().all(|value| value.is_finite()));
    for isa in Isa::available() {
        for threads in [1, 2, 3] {
            for steps in [STEPS, 7] {
                let options = CpuOptions {
                    threads: Some(threads),
                    isa: Some(isa),
                    ..CpuOptions::default()
                };
                let mut device = CpuDevice::new(options).expect("the machine has it");
                let found = Decoder::new(&mut device).run(&mut device, steps);
                let error = nmse(&found, &expected);
                // Halves in the cache may be rounded to the other neighbour: 2^-11, squared 2e-7.
                assert!(error < 1e-6, "{isa} × {threads}, {steps} steps: {error:e}");
            }
        }
    }
}

/// A run after the first, which fills the scratch, must not ask for memory: on every token that would
/// cost more than the smaller kernels.
#[test]
fn no_memory_is_allocated_for_a_token() {
    let mut device = device(1);
    let decoder = Decoder::new(&mut device);
    let mut table = decoder.table();
    chain(&mut device, decoder.plan, &mut table, STEPS);
    let again = || {
        table.clear_rows();
        table.push_single(Row::at(0, 0), 17);
        chain(&mut device, decoder.plan, &mut table, STEPS);
    };
    let measured = allocation_counter::measure(again);
    assert_eq!(measured.count_total, 0);
}
