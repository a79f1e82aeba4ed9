//! The device that runs plans through the real `.metal` files.
//!
//! It is the device of a GPU ([`GpuDevice`]) over a backend that takes the same calls as Metal's:
//! a submission is recorded, checked for missing barriers when it is handed over, and executed when it
//! is waited for. Between two barriers the launches run in the order of the [`Schedule`], so that a
//! missing barrier also changes the result; a buffer that is gone by then is an error.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use akunu_kernels::PipelineKey;
use akunu_kernels::gpu::{
    Backend, Bound, Call, Compiled, Compiler, GpuDevice, Limits, Numbered, Recorder,
    ReplayedLaunch, Step, replay, unordered_pairs,
};
use akunu_program::{DeviceError, SharedBytes};

use crate::error::SimError;
use crate::executor::buffer::SimBuffer;
use crate::executor::schedule::{Orders, Schedule};
use crate::launch::{Binding, Launch};
use crate::simulator::Simulator;
use crate::table;

/// Most threads of a threadgroup on Apple GPUs.
const MAX_THREADS: u32 = 1024;

/// Runs plans in the simulator, by way of the calls that Metal would get.
pub type SimDevice = GpuDevice<SimBackend>;

/// A GPU that is the simulator. Shared weights are copied: its buffers have guards around them.
pub struct SimBackend {
    compiler: Arc<SimCompiler>,
    orders: Orders,
    schedule: Schedule,
    limits: Limits,
    memory: SharedMemory,
    n_buffers: u32,
    log: CallLog,
    keeps_rounds: bool,
    headroom: Arc<AtomicU64>,
}

/// The calls of each submission, shared by all clones.
#[derive(Clone, Default)]
pub struct CallLog {
    submissions: Arc<Mutex<Vec<Vec<Call>>>>,
    /// The key of each pipeline, by number.
    keys: Arc<Mutex<Vec<PipelineKey>>>,
}

impl CallLog {
    /// The calls of each submission so far.
    pub fn submissions(&self) -> Vec<Vec<Call>> {
        lock(&self.submissions).clone()
    }

    /// The keys of all pipelines, by the numbers that calls have.
    pub fn pipelines(&self) -> Vec<PipelineKey> {
        lock(&self.keys).clone()
    }
}

type SharedMemory = Arc<Mutex<HashMap<u32, SimBuffer>>>;

/// A buffer of the simulator; its memory goes with it.
pub struct SimMemory {
    number: u32,
    memory: SharedMemory,
    bytes: u64,
    headroom: Arc<AtomicU64>,
}

/// A kernel with its constants.
pub struct SimPipeline(u32);

/// Compiles `.metal` files.
pub struct SimCompiler {
    simulator: Simulator,
    max_threads: u32,
    keys: Arc<Mutex<Vec<PipelineKey>>>,
}

impl SimBackend {
    /// A backend over the kernels of `simulator`.
    pub fn new(simulator: Simulator, schedule: Schedule) -> SimBackend {
        SimBackend::with_thread_limit(simulator, schedule, MAX_THREADS)
    }

    /// The same with pipelines that allow no more than `max_threads`, as those that need many registers
    /// do on a GPU.
    pub fn with_thread_limit(
        simulator: Simulator,
        schedule: Schedule,
        max_threads: u32,
    ) -> SimBackend {
        let log = CallLog::default();
        let keys = Arc::clone(&log.keys);
        SimBackend {
            compiler: Arc::new(SimCompiler {
                simulator,
                max_threads,
                keys,
            }),
            orders: schedule.orders(0),
            schedule,
            limits: Limits {
                max_buffer: usize::MAX,
                budget: u64::MAX,
                page: 4096,
            },
            memory: Arc::default(),
            n_buffers: 0,
            log,
            keeps_rounds: false,
            headroom: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// The same with other limits of memory.
    pub fn with_limits(self, limits: Limits) -> SimBackend {
        SimBackend { limits, ..self }
    }

    /// The same with rounds that are encoded once and repeated, as on a GPU that has graphs.
    pub fn with_kept_rounds(self) -> SimBackend {
        let keeps_rounds = true;
        SimBackend {
            keeps_rounds,
            ..self
        }
    }

    /// The same on a machine that has only `headroom` bytes left: buffers take from it, and so may the test.
    pub fn with_headroom(self, headroom: Arc<AtomicU64>) -> SimBackend {
        SimBackend { headroom, ..self }
    }

    /// The calls of all submissions, so far and from now on.
    pub fn log(&self) -> CallLog {
        self.log.clone()
    }

    fn add(&mut self, buffer: std::io::Result<SimBuffer>) -> Option<SimMemory> {
        let (number, buffer) = (self.n_buffers, buffer.ok()?);
        let bytes = buffer.bytes().len() as u64;
        self.headroom.fetch_sub(bytes, Ordering::Relaxed);
        lock(&self.memory).insert(number, buffer);
        self.n_buffers += 1;
        Some(SimMemory {
            number,
            memory: Arc::clone(&self.memory),
            bytes,
            headroom: Arc::clone(&self.headroom),
        })
    }

    /// Runs the launches of one group, which no barrier separates.
    fn run_group(&mut self, group: &[&ReplayedLaunch]) -> Result<(), String> {
        let mut order: Vec<u32> = (0..group.len() as u32).collect();
        self.orders.arrange(&mut order);
        for at in order {
            self.launch(group[at as usize])?;
        }
        Ok(())
    }

    fn launch(&self, launch: &ReplayedLaunch) -> Result<(), String> {
        let key = lock(&self.compiler.keys)[launch.pipeline as usize].clone();
        let kernel = key.kernel.row().name();
        let memory = lock(&self.memory);
        let mut inline = HashMap::new();
        for (index, bound) in &launch.bound {
            if let Bound::Bytes(bytes) = bound {
                let copy = SimBuffer::from_bytes(bytes).map_err(|error| error.to_string())?;
                inline.insert(*index, copy);
            }
        }
        let handle = self.compiler.simulator.kernel(&kernel);
        let handle = handle.map_err(|error| error.to_string())?;
        let mut bindings = Vec::new();
        // What an earlier kernel had bound elsewhere stays bound, and is not looked at.
        for (index, ..) in handle.signature().buffers() {
            let (buffer, offset) = match launch.bound.get(&(index as u8)) {
                Some(Bound::Bytes(_)) => (inline.get(&(index as u8)), 0),
                Some(&Bound::Buffer { buffer, offset }) => (memory.get(&buffer), offset),
                None => return Err(format!("{kernel}: nothing is bound to buffer({index})")),
            };
            let buffer = buffer.ok_or_else(|| {
                format!("{kernel}: buffer({index}) was released before the kernel ran")
            })?;
            bindings.push(Binding {
                index,
                buffer,
                offset,
            });
        }
        let launched = handle.launch(&Launch {
            grid: launch.grid,
            threads: launch.threads,
            bindings: &bindings,
            threadgroup_bytes: &table::threadgroup_bytes(launch.threadgroup_bytes),
            constants: &table::constants(&key.constants),
            schedule: self.schedule,
            host_threads: None,
        });
        launched.map_err(|error: SimError| error.to_string())
    }
}

impl Backend for SimBackend {
    type Buffer = SimMemory;
    type Pipeline = SimPipeline;
    type Compiler = SimCompiler;
    type Encoder<'a> = Recorder<SimMemory, SimPipeline>;
    type Submission = Vec<Step>;
    type Round = Vec<Step>;

    fn name(&self) -> &'static str {
        "sim"
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn headroom(&self) -> u64 {
        self.headroom.load(Ordering::Relaxed)
    }

    fn compiler(&self) -> Arc<SimCompiler> {
        Arc::clone(&self.compiler)
    }

    fn allocate(&mut self, bytes: usize, _label: &str) -> Option<SimMemory> {
        self.add(SimBuffer::zeroed(bytes))
    }

    fn wrap(&mut self, bytes: &SharedBytes, part: Range<usize>, _label: &str) -> Option<SimMemory> {
        self.add(SimBuffer::from_bytes((**bytes).as_ref().get(part)?))
    }

    fn write(&mut self, buffer: &SimMemory, offset: usize, bytes: &[u8]) -> Result<(), String> {
        if let Some(memory) = lock(&self.memory).get_mut(&buffer.number) {
            memory.bytes_mut()[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn read(&self, buffer: &SimMemory, offset: usize, bytes: &mut [u8]) -> Result<(), String> {
        if let Some(memory) = lock(&self.memory).get(&buffer.number) {
            bytes.copy_from_slice(&memory.bytes()[offset..offset + bytes.len()]);
        }
        Ok(())
    }

    fn submit(
        &mut self,
        encode: impl FnOnce(&mut Self::Encoder<'_>) -> Result<(), DeviceError>,
    ) -> Result<Vec<Step>, DeviceError> {
        let mut recorder = Recorder::new();
        let encoded = encode(&mut recorder);
        let calls = recorder.end();
        encoded?;
        let refused = |why: String| DeviceError::Lost { why };
        let steps = replay(&calls).map_err(|error| refused(error.to_string()))?;
        let keys = lock(&self.compiler.keys);
        let pairs = unordered_pairs(&steps, |number| &keys[number as usize]);
        if let Some(pair) = pairs.first() {
            return Err(refused(format!("a barrier is missing: {pair:?}")));
        }
        drop(keys);
        lock(&self.log.submissions).push(calls);
        Ok(steps)
    }

    fn keep(
        &mut self,
        encode: impl FnOnce(&mut Self::Encoder<'_>) -> Result<(), DeviceError>,
    ) -> Result<Option<Vec<Step>>, DeviceError> {
        if self.keeps_rounds {
            return self.submit(encode).map(Some);
        }
        Ok(None)
    }

    fn repeat(&mut self, round: &Vec<Step>, times: u32) -> Result<Vec<Step>, DeviceError> {
        let mut steps = Vec::new();
        for _ in 0..times {
            steps.extend_from_slice(round);
            steps.push(Step::Barrier);
        }
        Ok(steps)
    }

    fn wait(&mut self, steps: Vec<Step>) -> Result<Duration, String> {
        let mut group = Vec::new();
        for step in &steps {
            match step {
                Step::Launch(launch) => group.push(launch),
                Step::Barrier => self.run_group(&std::mem::take(&mut group))?,
            }
        }
        self.run_group(&group)?;
        Ok(Duration::ZERO)
    }
}

impl Compiler for SimCompiler {
    type Pipeline = SimPipeline;

    fn compile(&self, key: &PipelineKey) -> Result<Compiled<SimPipeline>, String> {
        let kernel = self.simulator.kernel(&key.kernel.row().name());
        let handle = kernel.map_err(|error| error.to_string())?;
        let declared = handle.signature().max_threads.unwrap_or(MAX_THREADS);
        let mut keys = lock(&self.keys);
        keys.push(key.clone());
        Ok(Compiled {
            pipeline: SimPipeline(keys.len() as u32 - 1),
            max_threads: self.max_threads.min(declared),
            threadgroup_room: handle.threadgroup_limit() as u32,
        })
    }
}

impl Numbered for SimMemory {
    fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for SimMemory {
    fn drop(&mut self) {
        lock(&self.memory).remove(&self.number);
        self.headroom.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

impl Numbered for SimPipeline {
    fn number(&self) -> u32 {
        self.0
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
