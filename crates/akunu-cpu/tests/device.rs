//! The device around the kernels: what it refuses, and chains of positions on several threads.

use std::mem::offset_of;
use std::sync::Arc;

use akunu_cpu::{CpuDevice, CpuError, CpuOptions, Isa};
use akunu_kernels::bytes::AlignedBytes;
use akunu_kernels::case::Rng;
use akunu_kernels::device::SharedMemory;
use akunu_kernels::plan::Slice;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{
    Buffer, ChipConfig, Constants, Device, DeviceError, Dispatch, KernelId, Patch, PipelineKey,
    Plan,
};
use akunu_types::SharedStruct;
use akunu_types::params::{
    AttentionParams, ElementwiseParams, HeadNormParams, RMSNormParams, RoPEQKVWriteParams,
};

fn device(threads: usize) -> CpuDevice {
    let options = CpuOptions {
        threads: Some(threads),
        isa: None,
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

fn add_plan(device: &mut CpuDevice) -> (Plan, Buffer) {
    let params = ElementwiseParams {
        count: 4,
        ..Default::default()
    };
    let h = device.allocate(16, "h").expect("memory");
    let x = device.allocate(16, "x").expect("memory");
    let key = PipelineKey::plain(KernelId::ResidualAdd);
    let bindings = vec![h.into(), x.into()];
    let add = Dispatch::new(device, key, &params, bindings, "add").expect("a kernel");
    (Plan::check(vec![add], 3).expect("sizes are right"), x)
}

#[test]
fn plans_of_other_devices_released_buffers_and_late_positions_are_refused() {
    let mut device = device(2);
    let (plan, x) = add_plan(&mut device);
    device.run(&plan, 3).expect("runs");
    let late = device.run_chain(&plan, 2, 3);
    assert!(matches!(
        late,
        Err(DeviceError::Position { position: 4, .. })
    ));
    let mut other = self::device(1);
    assert!(matches!(
        other.run(&plan, 0),
        Err(DeviceError::Foreign {
            what: "pipeline",
            ..
        })
    ));
    device.release(x);
    for refused in [device.run(&plan, 0), device.prepare(&plan)] {
        assert!(matches!(
            refused,
            Err(DeviceError::Foreign { what: "buffer", id }) if id == x.id
        ));
    }
}

/// A small decoder without products: turn and store k and v, attend, normalise, and add the result to
/// q, k and v of the next step. Every step reads what the one before has written.
struct Decoder {
    qkv: Buffer,
    caches: [Buffer; 2],
    plan: Plan,
}

const HEADS: (u32, u32, u32) = (6, 2, 32);
const SLOTS: u32 = 70;
const STEPS: u32 = 150;

impl Decoder {
    fn new(device: &mut dyn Device) -> Decoder {
        let (n_heads, n_kv_heads, head_dim) = HEADS;
        let q_dim = n_heads * head_dim;
        let width = q_dim + 2 * n_kv_heads * head_dim;
        let mut rng = Rng::new(5);
        let mut floats = |n: u32, scale| {
            let values = rng.floats(n as usize, scale);
            let buffer = device.allocate(4 * n as usize, "test").expect("memory");
            let bytes = bytemuck::cast_slice(&values);
            device.write(buffer, 0, bytes).expect("fits");
            buffer
        };
        let (qkv, attended, normal) = (floats(width, 1.0), floats(q_dim, 1.0), floats(q_dim, 1.0));
        let weight = floats(q_dim, 1.0);
        let cache = (2 * n_kv_heads * SLOTS * head_dim) as usize;
        let caches = [0, 1].map(|_| device.allocate(cache, "cache").expect("memory"));
        let mut dispatches = Vec::new();
        let rope = RoPEQKVWriteParams {
            n_kv_heads,
            head_dim,
            max_seq_len: SLOTS,
            theta: 1e4,
            n_heads,
            k_elem_offset: q_dim,
            v_elem_offset: q_dim + n_kv_heads * head_dim,
            freq_scale: 1.0,
            ..Default::default()
        };
        let patch = Patch::position(offset_of!(RoPEQKVWriteParams, pos));
        let bindings = vec![
            qkv.into(),
            caches[0].into(),
            caches[1].into(),
            weight.into(),
        ];
        dispatches.push(dispatch(device, KernelId::RopeQkvWrite, &rope, bindings).patched(patch));
        let attention = AttentionParams {
            seq_len: 1,
            head_dim,
            n_heads,
            n_kv_heads,
            scale: 0.2,
            kv_stride: SLOTS * head_dim,
            q_stride: q_dim,
            ..Default::default()
        };
        let patch = Patch::length(offset_of!(AttentionParams, kv_seq_len), 1);
        let unread = Slice::from(weight);
        let bindings = vec![
            qkv.into(),
            caches[0].into(),
            caches[1].into(),
            attended.into(),
            unread,
        ];
        let attend = dispatch(device, KernelId::FlashAttentionDecode, &attention, bindings);
        dispatches.push(attend.patched(patch));
        let norm = RMSNormParams {
            dim: q_dim,
            eps: 1e-5,
            n_rows: 1,
            ..Default::default()
        };
        let bindings = vec![attended.into(), weight.into(), normal.into()];
        dispatches.push(dispatch(device, KernelId::RmsNorm, &norm, bindings));
        // Overlaps q, k and the beginning of v.
        let add = ElementwiseParams {
            count: q_dim,
            ..Default::default()
        };
        let keys = Slice {
            buffer: qkv,
            offset: 4 * (width - q_dim) as usize,
        };
        let bindings = vec![keys, normal.into()];
        dispatches.push(dispatch(device, KernelId::ResidualAdd, &add, bindings));
        let bindings = vec![qkv.into(), weight.into()];
        dispatches.push(dispatch(
            device,
            KernelId::HeadRmsNorm,
            &head_norm(),
            bindings,
        ));
        let plan = Plan::check(dispatches, STEPS).expect("sizes are right");
        Decoder { qkv, caches, plan }
    }

    /// The caches and the last q, k and v after `STEPS` positions.
    fn run(&self, device: &mut dyn Device, steps: u32) -> Vec<f32> {
        for first in (0..STEPS).step_by(steps as usize) {
            let n = steps.min(STEPS - first);
            device.run_chain(&self.plan, first, n).expect("runs");
        }
        let mut bytes = vec![0; self.qkv.len];
        device.read(self.qkv, 0, &mut bytes).expect("fits");
        let mut values: Vec<f32> = numbers(&bytes);
        for cache in self.caches {
            let mut bytes = vec![0; cache.len];
            device.read(cache, 0, &mut bytes).expect("fits");
            let halves: Vec<half::f16> = numbers(&bytes);
            values.extend(halves.iter().map(|half| half.to_f32()));
        }
        values
    }
}

/// Bytes as numbers, whatever their alignment.
fn numbers<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    let each = bytes.chunks_exact(size_of::<T>());
    each.map(bytemuck::pod_read_unaligned).collect()
}

fn head_norm() -> HeadNormParams {
    HeadNormParams {
        head_dim: HEADS.2,
        n_heads: HEADS.0 + 2 * HEADS.1,
        seq_len: 1,
        eps: 1e-5,
        ..Default::default()
    }
}

fn dispatch<P: SharedStruct>(
    device: &mut dyn Device,
    kernel: KernelId,
    params: &P,
    bindings: Vec<Slice>,
) -> Dispatch {
    let constants = Constants::none();
    let key = PipelineKey { kernel, constants };
    Dispatch::new(device, key, params, bindings, "test").expect("a kernel")
}

/// A barrier that is missing, or a thread that runs ahead by a position, changes the numbers, and the
/// change is carried on. The cache wraps twice.
#[test]
fn chains_agree_with_the_twins_on_any_number_of_threads() {
    let mut twin = TwinDevice::new(ChipConfig::m1());
    let expected = Decoder::new(&mut twin).run(&mut twin, STEPS);
    assert!(expected.iter().all(|value| value.is_finite()));
    for isa in Isa::available() {
        for threads in [1, 2, 3] {
            for steps in [STEPS, 7] {
                let options = CpuOptions {
                    threads: Some(threads),
                    isa: Some(isa),
                };
                let mut device = CpuDevice::new(options).expect("the machine has it");
                let found = Decoder::new(&mut device).run(&mut device, steps);
                let error: f32 = (expected.iter().zip(&found))
                    .map(|(a, b)| (a - b) * (a - b))
                    .sum();
                let power: f32 = expected.iter().map(|a| a * a).sum();
                // Halves in the cache may be rounded to the other neighbour: 2^-11, squared 2e-7.
                let nmse = error / power;
                assert!(nmse < 1e-6, "{isa} × {threads}, {steps} steps: {nmse}");
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
    device.run_chain(&decoder.plan, 0, STEPS).expect("runs");
    let again = || device.run_chain(&decoder.plan, 0, STEPS).expect("runs");
    let measured = allocation_counter::measure(again);
    assert_eq!(measured.count_total, 0);
}
