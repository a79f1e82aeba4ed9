//! The device of a GPU over the simulator: what it tells the GPU, and what it does with the answers.

mod calls;
mod lifetime;
mod limits;

use std::mem::offset_of;
use std::path::Path;

use akunu_kernels::plan::Slice;
use akunu_kernels::{Buffer, ChipConfig, Device, Dispatch, KernelId, Patch, PipelineKey, Plan};
use akunu_sim::{CallLog, Schedule, SimBackend, SimDevice, Simulator};
use akunu_types::params::{ElementwiseParams, KVCacheWriteParams};

/// Elements of each vector.
const COUNT: u32 = 8;
const BYTES: usize = 4 * COUNT as usize;
/// Positions of the cache.
const SLOTS: u32 = 8;

fn simulator() -> Simulator {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"))
        .expect("clang is there: `apt-get install clang-19`")
}

/// A little model: vectors in one buffer, and a cache that is written at the position.
struct Bench {
    device: SimDevice,
    log: CallLog,
    /// Number 0 in the calls.
    vectors: Buffer,
    /// Number 1 in the calls: one head, a vector a slot.
    cache: Buffer,
}

impl Bench {
    fn new() -> Bench {
        Bench::over(SimBackend::new(simulator(), Schedule::Descending))
    }

    fn over(backend: SimBackend) -> Bench {
        let log = backend.log();
        let mut device = SimDevice::over(backend, ChipConfig::m1());
        let vectors = device.allocate(8 * BYTES, "vectors").expect("memory");
        let cache = device
            .allocate(SLOTS as usize * BYTES / 2, "cache")
            .expect("memory");
        Bench {
            device,
            log,
            vectors,
            cache,
        }
    }

    fn vector(&self, n: usize) -> Slice {
        Slice {
            buffer: self.vectors,
            offset: n * BYTES,
        }
    }

    /// `vector[y] = vector[a] + vector[b]`.
    fn add(&mut self, [a, b, y]: [usize; 3]) -> Dispatch {
        let params = ElementwiseParams {
            count: COUNT,
            ..Default::default()
        };
        let bindings = [a, b, y].map(|n| self.vector(n)).to_vec();
        let key = PipelineKey::plain(KernelId::VectorAdd);
        Dispatch::new(&mut self.device, key, &params, bindings, "add").expect("compiles")
    }

    /// `cache[position] = vector[x]`.
    fn keep(&mut self, x: usize) -> Dispatch {
        let params = KVCacheWriteParams {
            n_kv_heads: 1,
            head_dim: COUNT,
            max_seq_len: SLOTS,
            seq_len: 1,
            ..Default::default()
        };
        let bindings = vec![self.vector(x), self.cache.into()];
        let key = PipelineKey::plain(KernelId::KvCacheWrite);
        let dispatch = Dispatch::new(&mut self.device, key, &params, bindings, "keep");
        let patch = Patch::position(offset_of!(KVCacheWriteParams, pos));
        dispatch.expect("compiles").patched(patch)
    }

    /// Doubles vector 0 twice by way of vectors 1 and 2, and keeps the double of each round.
    fn plan(&mut self) -> Plan {
        let dispatches = vec![
            self.add([0, 0, 1]),
            self.add([0, 0, 2]),
            self.keep(1),
            self.add([1, 2, 0]),
        ];
        Plan::check(dispatches, SLOTS - 1).expect("sizes are right")
    }

    fn set(&mut self, n: usize, value: f32) {
        let bytes = [value; COUNT as usize];
        let bytes = bytemuck::cast_slice(&bytes);
        self.device
            .write(self.vectors, n * BYTES, bytes)
            .expect("fits");
    }

    fn get(&self, n: usize) -> f32 {
        let mut value = [0f32];
        let bytes = bytemuck::cast_slice_mut(&mut value);
        self.device
            .read(self.vectors, n * BYTES, bytes)
            .expect("fits");
        value[0]
    }

    /// The first element of each slot of the cache.
    fn kept(&self) -> Vec<f32> {
        let mut halves = vec![half::f16::ZERO; (SLOTS * COUNT) as usize];
        let bytes = bytemuck::cast_slice_mut(&mut halves);
        self.device.read(self.cache, 0, bytes).expect("fits");
        let firsts = halves.chunks(COUNT as usize).map(|slot| slot[0].to_f32());
        firsts.collect()
    }
}
