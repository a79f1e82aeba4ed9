//! A context larger than memory is refused before anything is allocated.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::tiny_llama;
use crate::support::watched::{Hooks, Watched};
use akunu_cpu::{CpuDevice, CpuOptions};
use akunu_engine::{EngineError, KvFormat, Model, ModelOptions, SessionOptions};
use akunu_kernels::twin_device::TwinDevice;
use akunu_program::{Buffer, DeviceError};
use akunu_types::DType;

/// A device with little memory that knows how much of it is taken.
struct Small {
    limit: Option<u64>,
    /// The allocation with this number fails.
    fails_at: usize,
    made: Arc<AtomicUsize>,
    taken: Arc<AtomicUsize>,
}

impl Hooks for Small {
    fn memory_limit(&self) -> Option<u64> {
        self.limit
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<(), DeviceError> {
        if self.made.fetch_add(1, Ordering::Relaxed) == self.fails_at {
            let label = label.to_string();
            return Err(DeviceError::Memory { bytes, label });
        }
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn release(&mut self, buffer: Buffer) {
        self.taken.fetch_sub(buffer.len, Ordering::Relaxed);
    }
}

/// The model, and the counters of its device: allocations and bytes.
fn load(limit: Option<u64>, fails_at: usize) -> (Model, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let file = tiny_llama(DType::Q8_0);
    let (made, taken) = (Arc::default(), Arc::default());
    let hooks = Small {
        limit,
        fails_at,
        made: Arc::clone(&made),
        taken: Arc::clone(&taken),
    };
    let device = Watched::new(TwinDevice::new(), hooks);
    let model = Model::load(&file.path, Box::new(device)).expect("a whole model");
    (model, made, taken)
}

fn with_context(context: u32) -> SessionOptions {
    SessionOptions {
        context: Some(context),
        chunk: 16,
        ..SessionOptions::default()
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

/// Whatever fails while the pool and the tables grow, nothing is left behind that nobody can give back, and a smaller
/// session can be made afterwards.
#[test]
fn an_allocation_that_fails_half_way_leaves_nothing_behind() {
    let (_, made, _) = load(None, usize::MAX);
    let at_load = made.load(Ordering::Relaxed);
    for more in 0..4 {
        let (model, made, taken) = load(None, at_load + more);
        let before = taken.load(Ordering::Relaxed);
        let error = model.session(with_context(100)).err();
        assert!(matches!(
            error,
            Some(EngineError::Device(DeviceError::Memory { .. }))
        ));
        assert!(made.load(Ordering::Relaxed) > at_load, "it got as far");
        assert_eq!(taken.load(Ordering::Relaxed), before, "{more}");
        model.session(with_context(100)).expect("only one failed");
    }
}

/// Sessions have pages and nothing else: a hundred more of them take no memory of the device.
#[test]
fn sessions_share_everything_but_their_pages() {
    let (model, _, taken) = load(None, usize::MAX);
    let first = model.session(with_context(100)).expect("memory");
    let before = taken.load(Ordering::Relaxed);
    let more: Vec<_> = (0..100).map(|_| model.session(with_context(100))).collect();
    assert!(more.iter().all(Result::is_ok));
    assert_eq!(taken.load(Ordering::Relaxed), before);
    drop((first, more));
}

/// A device that counts the bytes of keys and values.
struct Caches(Arc<AtomicUsize>);

impl Hooks for Caches {
    fn allocate(&mut self, bytes: usize, label: &str) -> Result<(), DeviceError> {
        if ["keys", "values"].contains(&label) {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// `inspect` and the errors say what a session takes: a model without windows, and one with windows in most layers, whose
/// pages depend on the chunk too. Breaks when the pages are counted by another formula than the one that is told.
#[test]
fn the_memory_that_is_told_is_what_a_session_allocates() {
    for (asset, file) in [
        ("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
        ("gemma3-270m", "gemma-3-270m.Q4_K_M.gguf"),
    ] {
        let path = akunu_assets::path(asset, file);
        for (kv, context, chunk) in [(KvFormat::F16, 2000, 512), (KvFormat::Q8, 1024, 64)] {
            let taken = Arc::new(AtomicUsize::new(0));
            let device = CpuDevice::new(CpuOptions::default()).expect("a CPU");
            let device = Watched::new(device, Caches(Arc::clone(&taken)));
            let options = ModelOptions {
                kv,
                ..ModelOptions::default()
            };
            let model = Model::load_with(&path, Box::new(device), options).expect("a model");
            let options = SessionOptions {
                context: Some(context),
                chunk,
                ..SessionOptions::default()
            };
            let told = options.kv_bytes(model.config(), kv).expect("possible");
            taken.store(0, Ordering::Relaxed);
            let _session = model.session(options).expect("memory");
            assert_eq!(told, taken.load(Ordering::Relaxed) as u64, "{asset} {kv:?}");
        }
    }
}
