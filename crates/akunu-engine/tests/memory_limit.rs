//! A context larger than memory is refused before anything is allocated.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use akunu_engine::{EngineError, Model, SessionOptions};
use akunu_kernels::device::SharedBytes;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{Buffer, ChipConfig, Device, DeviceError, PipelineId, PipelineKey, Plan};
use akunu_types::DType;
use support::tiny_llama;

/// A device with little memory that knows how much of it is taken.
struct Small {
    device: TwinDevice,
    limit: Option<u64>,
    /// The allocation with this number fails.
    fails_at: usize,
    made: Arc<AtomicUsize>,
    taken: Arc<AtomicUsize>,
}

impl Device for Small {
    fn name(&self) -> &'static str {
        "small"
    }

    fn chip(&self) -> &ChipConfig {
        self.device.chip()
    }

    fn memory_limit(&self) -> Option<u64> {
        self.limit
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        if self.made.fetch_add(1, Ordering::Relaxed) == self.fails_at {
            let label = label.to_string();
            return Err(DeviceError::Memory { bytes, label });
        }
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        self.device.allocate(bytes, label)
    }

    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.device.share(bytes, label)
    }

    fn release(&mut self, buffer: Buffer) {
        self.taken.fetch_sub(buffer.len, Ordering::Relaxed);
        self.device.release(buffer);
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(buffer, offset, bytes)
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(buffer, offset, bytes)
    }

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        self.device.pipeline(key)
    }

    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        self.device.run_chain(plan, first, n)
    }
}

/// The model, and the counters of its device: allocations and bytes.
fn load(limit: Option<u64>, fails_at: usize) -> (Model, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let file = tiny_llama(DType::Q8_0);
    let (made, taken) = (Arc::default(), Arc::default());
    let device = Small {
        device: TwinDevice::new(ChipConfig::m1()),
        limit,
        fails_at,
        made: Arc::clone(&made),
        taken: Arc::clone(&taken),
    };
    let model = Model::load(&file.path, Box::new(device)).expect("a whole model");
    (model, made, taken)
}

fn with_context(context: u32) -> SessionOptions {
    SessionOptions {
        context: Some(context),
        chunk: 16,
    }
}

/// 2^20 positions of two layers with one head of 64 halves for k and for v are 512 MiB.
#[test]
fn a_context_larger_than_memory_is_refused_with_sizes() {
    let (model, made, _) = load(Some(300 << 20), usize::MAX);
    let before = made.load(Ordering::Relaxed);
    let error = model.session(with_context(1 << 20)).err();
    let message = error.expect("it does not fit").to_string();
    for part in [
        "1048576 tokens",
        "512.0 MiB",
        "4.1 MiB",
        "300.0 MiB",
        "choose a smaller context",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(
        made.load(Ordering::Relaxed),
        before,
        "nothing was allocated"
    );
    model
        .session(with_context(1 << 10))
        .expect("a smaller one fits");
}

/// The limit holds for all buffers together, to the byte; what was counted is what is allocated.
#[test]
fn what_is_asked_for_is_what_is_allocated() {
    let (model, _, taken) = load(None, usize::MAX);
    let before = taken.load(Ordering::Relaxed);
    let session = model.session(with_context(100)).expect("no limit is known");
    let divisors = 4 * 32;
    let needed = (taken.load(Ordering::Relaxed) - before - divisors) as u64;
    drop(session);
    assert_eq!(taken.load(Ordering::Relaxed), before, "all was given back");
    let (exact, ..) = load(Some(needed), usize::MAX);
    exact.session(with_context(100)).expect("it fits exactly");
    let (less, ..) = load(Some(needed - 1), usize::MAX);
    let error = less.session(with_context(100)).err();
    assert!(matches!(error, Some(EngineError::ContextMemory { .. })));
}

#[test]
fn an_allocation_that_fails_half_way_leaves_nothing_behind() {
    let (model, made, taken) = load(None, 12);
    assert!(made.load(Ordering::Relaxed) < 12, "loading takes few");
    let before = taken.load(Ordering::Relaxed);
    let error = model.session(with_context(100)).err();
    assert!(matches!(
        error,
        Some(EngineError::Device(DeviceError::Memory { .. }))
    ));
    assert_eq!(taken.load(Ordering::Relaxed), before);
}
