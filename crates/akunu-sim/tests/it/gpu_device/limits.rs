//! Memory and threads that are not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use akunu_kernels::gpu::{Call, Limits};
use akunu_kernels::kernel::activation::{gate, silu};
use akunu_kernels::kernel::common::copy;
use akunu_kernels::kernel::norm::rmsnorm;
use akunu_kernels::{ChipConfig, KernelCall, KernelDevice, KernelId, PipelineKey};
use akunu_program::{Device, DeviceError, Room, SharedBytes, Slice};
use akunu_sim::{Schedule, SimBackend, SimDevice};
use akunu_types::params::{ElementwiseParams, RMSNormParams};

use super::{assert_near, simulator};

fn device(max_buffer: usize, budget: u64) -> SimDevice {
    let limits = Limits {
        max_buffer,
        budget,
        page: 64,
    };
    let backend = SimBackend::new(simulator(), Schedule::Ascending).with_limits(limits);
    SimDevice::over(backend, ChipConfig::m1())
}

/// `shared[n] = n`.
fn floats(count: usize) -> SharedBytes {
    let floats: Vec<f32> = (0..count).map(|n| n as f32).collect();
    let bytes: Vec<u8> = floats
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    Arc::new(bytes)
}

/// Gates `count` floats at one place of a shared buffer by those at another.
fn gate(device: &mut SimDevice, offsets: [usize; 2], count: u32) -> Result<Vec<f32>, DeviceError> {
    let weights = device.share(floats(1000), "weights")?;
    let y = device.allocate(4 * count as usize, "gated")?;
    let at = |offset| Slice {
        buffer: weights,
        offset,
    };
    let buffers = gate::Buffers {
        gate: at(offsets[0]),
        up: at(offsets[1]),
        y: y.into(),
    };
    let params = ElementwiseParams {
        count,
        ..Default::default()
    };
    let key = PipelineKey::plain(KernelId::SiluGate);
    let gate = KernelCall::new(key, &params, buffers, "gate");
    let plan = device.load_kernels(vec![gate], Room::default())?;
    device.run(plan, None)?;
    let mut gated = vec![0f32; count as usize];
    device.read(y, 0, bytemuck::cast_slice_mut(&mut gated))?;
    Ok(gated)
}

/// A file of 4000 bytes on a GPU whose buffers have 1024: every place is found in some window.
#[test]
fn a_file_longer_than_a_buffer_is_bound_in_windows() {
    for first in (0..900).step_by(36) {
        let mut device = device(1024, u64::MAX);
        let offsets = [4 * first, 4 * (999 - first - 63) / 16 * 16];
        let gated = gate(&mut device, offsets, 64).expect("half a window at most");
        for (n, found) in gated.into_iter().enumerate() {
            let [gate, up] = offsets.map(|offset| (offset / 4 + n) as f32);
            assert_near(found, silu(gate) * up);
        }
    }
}

#[test]
fn a_window_is_bound_with_its_own_offset() {
    let backend = SimBackend::new(simulator(), Schedule::Ascending).with_limits(Limits {
        max_buffer: 1024,
        budget: u64::MAX,
        page: 64,
    });
    let log = backend.log();
    let mut device = SimDevice::over(backend, ChipConfig::m1());
    gate(&mut device, [512 + 16, 3 * 512 + 64], 4).expect("runs");
    let bound: Vec<Call> = log.submissions()[0]
        .iter()
        .filter(|call| matches!(call, Call::SetBuffer { index: 0..=1, .. }))
        .cloned()
        .collect();
    let window = |index, buffer, offset| Call::SetBuffer {
        index,
        buffer,
        offset,
    };
    assert_eq!(bound, [window(0, 1, 16), window(1, 3, 64)]);
}

#[test]
fn a_tensor_that_no_window_holds_is_refused() {
    let refused = gate(&mut device(1024, u64::MAX), [16, 0], 256).expect_err("1024 bytes");
    assert_eq!(
        refused.to_string(),
        "a binding of 1024 bytes does not fit a buffer: at most 512 are possible here"
    );
}

/// Before anything is bound, and with the sizes.
#[test]
fn more_memory_than_the_device_should_use_is_refused() {
    let mut device = device(usize::MAX, 10 << 20);
    let kept = device.allocate(6 << 20, "weights").expect("fits");
    let refused = device.allocate(5 << 20, "KV cache").expect_err("11 of 10");
    assert_eq!(
        refused.to_string(),
        "KV cache needs 5 MiB, 6 MiB are in use and the device should use at most 10 MiB: take a \
         smaller model or context, or the CPU device"
    );
    assert_eq!(device.memory_limit(), Some(4 << 20));
    device.release(kept);
    device
        .allocate(10 << 20, "KV cache")
        .expect("what was released can be used");
}

/// Breaks when a device counts only its own buffers: two models of a process would wire more than the machine has.
#[test]
fn memory_that_others_have_taken_is_not_given_away() {
    let headroom = Arc::new(AtomicU64::new(8 << 20));
    let backend = SimBackend::new(simulator(), Schedule::Ascending);
    let backend = backend.with_headroom(Arc::clone(&headroom));
    let mut device = SimDevice::over(backend, ChipConfig::m1());
    device.allocate(6 << 20, "weights").expect("fits");
    headroom.store(1 << 20, Ordering::Relaxed);
    assert_eq!(device.memory_limit(), Some(1 << 20));
    let refused = device.allocate(5 << 20, "KV cache").expect_err("5 of 1");
    assert_eq!(
        refused.to_string(),
        "KV cache needs 5 MiB, 6 MiB are in use and the device should use at most 7 MiB: take a \
         smaller model or context, or the CPU device"
    );
}

/// Breaks when memory that was released while work was under way is refused, although waiting for that work frees it.
#[test]
fn released_memory_is_waited_for() {
    const COUNT: u32 = 16;
    let headroom = Arc::new(AtomicU64::new(8 << 20));
    let backend = SimBackend::new(simulator(), Schedule::Ascending);
    let mut device = SimDevice::over(backend.with_headroom(headroom), ChipConfig::m1());
    let x = device.allocate(6 << 20, "x").expect("fits");
    let y = device.allocate(4 * COUNT as usize, "y").expect("fits");
    let params = ElementwiseParams {
        count: COUNT,
        ..Default::default()
    };
    let buffers = copy::Buffers::<Slice> {
        x: x.into(),
        y: y.into(),
    };
    let copy = KernelCall::new(PipelineKey::plain(KernelId::Copy), &params, buffers, "copy");
    let plan = device.load_kernels(vec![copy], Room::default());
    let plan = plan.expect("it compiles and fits");
    device.submit(plan, None).expect("it is submitted");
    device.release(x);
    assert!(device.memory_limit() < Some(2 << 20), "x is in use");
    device.allocate(5 << 20, "KV cache").expect("x has ended");
}

/// A pipeline that allows fewer threads than the chip: the launch is laid out again for that many.
#[test]
fn a_launch_keeps_to_the_limit_of_its_pipeline() {
    const DIM: u32 = 4096;
    let normalise = |limit| {
        let backend = SimBackend::with_thread_limit(simulator(), Schedule::Ascending, limit);
        let mut device = SimDevice::over(backend, ChipConfig::m1());
        let x = device.share(floats(DIM as usize), "x").expect("memory");
        let weight = device
            .share(floats(DIM as usize), "weight")
            .expect("memory");
        let y = device.allocate(4 * DIM as usize, "y").expect("memory");
        let params = RMSNormParams {
            dim: DIM,
            eps: 1e-5,
            n_rows: 1,
            ..Default::default()
        };
        let buffers = rmsnorm::Buffers {
            x: x.into(),
            weight: weight.into(),
            y: y.into(),
        };
        let key = PipelineKey::plain(KernelId::RmsNorm);
        let norm = KernelCall::new(key, &params, buffers, "norm");
        let id = device.load_kernels(vec![norm], Room::default());
        let id = id.expect("it compiles and fits");
        let plan = device.plan(id).expect("it is loaded");
        let threads = plan.dispatches()[0].launch.threads[0];
        let ran = device.run(id, None).map_err(|error| error.to_string());
        let mut last = [0f32];
        let bytes = bytemuck::cast_slice_mut(&mut last);
        device.read(y, 4 * (DIM as usize - 1), bytes).expect("fits");
        (threads, ran, last[0])
    };
    let (threads, ran, free) = normalise(1024);
    assert_eq!((threads, ran), (1024, Ok(())));
    let (threads, ran, capped) = normalise(448);
    assert_eq!((threads, ran), (448, Ok(())));
    assert!((free - capped).abs() < 1e-3 * free, "{free} and {capped}");
}

/// A launch that cannot become small enough is refused with both numbers when the program is loaded, before anything is
/// submitted.
#[test]
fn a_launch_beyond_its_pipeline_is_refused() {
    let backend = SimBackend::with_thread_limit(simulator(), Schedule::Ascending, 16);
    let log = backend.log();
    let mut device = SimDevice::over(backend, ChipConfig::m1());
    let refused = gate(&mut device, [0, 16], 64).expect_err("a SIMD group has 32 threads");
    assert_eq!(
        refused.to_string(),
        "dispatch 0 (silu_gate_f32) failed: it is launched with 32 threads, its pipeline allows 16"
    );
    assert!(log.submissions().is_empty());
}
