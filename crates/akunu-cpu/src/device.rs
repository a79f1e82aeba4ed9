//! The device: buffers, programs, and steps as jobs of the threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use akunu_kernels::pipeline::HostPipelines;
use akunu_kernels::{Dispatch, KernelCall, KernelDevice, Plan, lower};
use akunu_program::{
    Buffer, Checked, Counts, Device, DeviceError, PlanId, Plans, Program, Room, SharedBytes,
    Ticket, host_memory,
};

use crate::body::kernel;
use crate::call::{Call, Kernel, MAX_BINDINGS};
use crate::cores::default_threads;
use crate::isa::{Isa, Level};
use crate::join;
use crate::kernel::norm::PrivateRmsNorm;
use crate::matmul::batch::FEW;
use crate::matmul::prepare::Means;
use crate::memory::Buffers;
use crate::panels::Panels;
use crate::part::Part;
use crate::place::Place;
use crate::pool::{MAX_THREADS, ThreadPool};
use crate::select::select;
use crate::slow_build;

/// Options of the CPU device.
///
/// Later versions may have further fields: end a value with `..CpuOptions::default()`.
///
/// ```
/// use akunu_cpu::{CpuDevice, CpuOptions};
///
/// let device = CpuDevice::new(CpuOptions { threads: Some(2), ..CpuOptions::default() })?;
/// # drop(device);
/// # Ok::<(), akunu_cpu::CpuError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    /// Number of threads; `None` for one on each fast core that the process may use, and fewer while other programs
    /// need those cores.
    pub threads: Option<usize>,
    /// The instruction set; `None` for the best that the machine has.
    pub isa: Option<Isa>,
    /// Multiplies quantised weights with many rows, a prompt, as exactly as with one. Otherwise the activations of more than
    /// eight rows are rounded further where that is faster: to bf16 for the tiles of AMX, and for weights in K formats to 8
    /// bits with AVX2 and AVX-512.
    pub exact: bool,
    /// Bytes of memory that weights may take; `None` for what the host has free when a program is loaded. Experts that do not fit
    /// stay in the file.
    pub free_memory: Option<u64>,
    /// Gets a sentence when the device works, but perhaps not as fast as expected.
    pub warn: Option<fn(&str)>,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

/// Why the device cannot be opened.
///
/// ```
/// use akunu_cpu::{CpuDevice, CpuError, CpuOptions};
///
/// let none = CpuDevice::new(CpuOptions { threads: Some(0), ..CpuOptions::default() });
/// assert!(matches!(none, Err(CpuError::Threads { found: 0, .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// An instruction set that the machine lacks.
    #[error("this machine has no {wanted}; it has {available}")]
    Isa {
        /// The level asked for.
        wanted: Isa,
        /// The levels it has.
        available: String,
    },
    /// A number of threads that is not possible.
    #[error("{found} threads asked for, 1 to {max} are possible")]
    Threads {
        /// The number asked for.
        found: usize,
        /// The maximum.
        max: usize,
    },
    /// The system refused a thread.
    #[error("cannot start a thread: {0}")]
    Spawn(#[from] io::Error),
}

/// A program as the threads walk through it.
struct Loaded {
    plan: Plan,
    /// What runs each dispatch.
    kernels: Vec<Kernel>,
    /// Whether the barrier after each dispatch can go in a step of one row.
    joins: Vec<bool>,
}

/// Runs programs on the cores of this machine.
pub struct CpuDevice {
    level: Level,
    exact: bool,
    free_memory: Option<u64>,
    warn: Option<fn(&str)>,
    buffers: Buffers,
    pipelines: HostPipelines<()>,
    plans: Plans<Loaded>,
    panels: Panels,
    pool: ThreadPool,
    /// Ends a submission early.
    stop: Option<Arc<AtomicBool>>,
}

impl CpuDevice {
    /// Opens the device and starts its threads.
    pub fn new(options: CpuOptions) -> Result<CpuDevice, CpuError> {
        let mut isa = options.isa.unwrap_or_else(Isa::detect);
        if isa == Isa::Amx && options.exact {
            isa = Isa::Avx512;
        }
        let Some(level) = isa.level() else {
            let available: Vec<&str> = Isa::available().iter().map(|isa| isa.name()).collect();
            return Err(CpuError::Isa {
                wanted: isa,
                available: available.join(", "),
            });
        };
        let n_threads = options.threads.unwrap_or_else(default_threads);
        if !(1..=MAX_THREADS).contains(&n_threads) {
            return Err(CpuError::Threads {
                found: n_threads,
                max: MAX_THREADS,
            });
        }
        tracing::info!(%isa, n_threads, "CPU device");
        if let Some(warning) = slow_build::warning(env!("AKUNU_OPT_LEVEL")) {
            tracing::warn!("{warning}");
        }
        Ok(CpuDevice {
            level,
            exact: options.exact,
            free_memory: options.free_memory,
            warn: options.warn,
            buffers: Buffers::default(),
            pipelines: HostPipelines::default(),
            plans: Plans::default(),
            panels: Panels::default(),
            pool: match options.threads {
                Some(_) => ThreadPool::new(n_threads)?,
                None => ThreadPool::yielding(n_threads)?,
            },
            stop: None,
        })
    }

    /// The instructions that its kernels use.
    pub fn isa(&self) -> Isa {
        self.level.isa()
    }

    /// Its number of threads.
    pub fn threads(&self) -> usize {
        self.pool.n_threads()
    }

    /// Refuses a plan with buffers that are not, or no longer, ours.
    fn check(&self, plan: &Plan) -> Result<(), DeviceError> {
        let slices = plan
            .dispatches()
            .iter()
            .flat_map(|dispatch| &dispatch.bindings);
        slices
            .map(|slice| slice.buffer)
            .try_for_each(|buffer| self.buffers.check(buffer))
    }
}

/// The memory of each binding of a dispatch, and how many there are.
fn places<'a>(buffers: &'a Buffers, dispatch: &Dispatch) -> ([Place<'a>; MAX_BINDINGS], usize) {
    let mut places = [Place::new(std::ptr::dangling_mut(), 0); MAX_BINDINGS];
    for (place, slice) in places.iter_mut().zip(&dispatch.bindings) {
        *place = buffers.place(slice.buffer, slice.offset);
    }
    (places, dispatch.bindings.len().min(MAX_BINDINGS))
}

/// A program on its way through the threads.
struct Walk<'a> {
    loaded: &'a Loaded,
    counts: Counts,
    steps: u32,
    level: Level,
    exact: bool,
    buffers: &'a Buffers,
    panels: &'a Panels,
    /// The dispatch that the furthest thread has begun, for the message of a failure.
    begun: AtomicUsize,
    /// Ends the walk at the next barrier.
    stop: Option<&'a AtomicBool>,
    /// The barrier at which all threads leave, counted over all rounds: part 0 names it before it gets there.
    last_barrier: AtomicUsize,
}

/// A barrier that no walk comes to.
const NO_BARRIER: usize = usize::MAX;

impl Walk<'_> {
    /// Waits for the other threads. Returns whether all of them leave the walk here.
    fn wait(&self, part: &mut Part, barrier: usize) -> bool {
        let is_stopped = || self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        if part.index == 0 && is_stopped() {
            self.last_barrier.store(barrier, Ordering::Relaxed);
        }
        part.wait_between_dispatches();
        // A thread that is late may see that of a later barrier, and goes on to it.
        self.last_barrier.load(Ordering::Relaxed) == barrier
    }

    fn was_stopped(&self) -> bool {
        self.last_barrier.load(Ordering::Relaxed) != NO_BARRIER
    }

    /// One thread's way: every round, every dispatch, its part of each.
    fn walk(&self, part: &mut Part) {
        let plan = &self.loaded.plan;
        let mut n_barriers = 0;
        for _ in 0..self.steps {
            // Whether the next dispatch needs no barrier, whatever the plan says.
            let mut is_joined = false;
            for (index, dispatch) in plan.dispatches().iter().enumerate() {
                if plan.barrier_before(index) && !is_joined {
                    n_barriers += 1;
                    if self.wait(part, n_barriers) {
                        return;
                    }
                }
                if part.index == 0 {
                    self.begun.store(index, Ordering::Relaxed);
                }
                is_joined = part.count > 1
                    && self.loaded.joins[index]
                    && join::has_one_row(dispatch, &self.counts);
                let kernel = match is_joined {
                    true => kernel::<PrivateRmsNorm>,
                    false => self.loaded.kernels[index],
                };
                self.dispatch(dispatch, part, kernel);
            }
        }
    }

    fn dispatch(&self, dispatch: &Dispatch, part: &mut Part, kernel: Kernel) {
        let params = dispatch.params_for(&self.counts);
        let (places, n) = places(self.buffers, dispatch);
        let call = Call {
            kernel: dispatch.kernel,
            args: akunu_kernels::table::Args {
                dtype: dispatch.dtype,
                params: params.as_bytes(),
                constants: &dispatch.constants,
            },
            slices: &dispatch.bindings,
            places: &places[..n],
            level: self.level,
            exact: self.exact,
            panels: self.panels,
        };
        kernel(&call, part);
    }
}

impl Device for CpuDevice {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn exact_rows(&self) -> usize {
        FEW
    }

    fn description(&self) -> String {
        format!("CPU, {}", self.level.isa())
    }

    fn memory_limit(&self) -> Option<u64> {
        host_memory::available()
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.buffers.allocate(bytes, label)
    }

    fn allocate_filled(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.buffers.allocate_filled(bytes, label)
    }

    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.buffers.share(bytes, label)
    }

    fn release(&mut self, buffer: Buffer) {
        self.panels.release(buffer.id);
        self.buffers.release(buffer);
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.buffers.write(buffer, offset, bytes)
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.buffers.read(buffer, offset, bytes)
    }

    fn load(&mut self, program: &Program) -> Result<PlanId, DeviceError> {
        self.load_kernels(lower::plain(program), program.plan_room())
    }

    fn unload(&mut self, plan: PlanId) {
        self.plans.remove(plan);
    }

    fn submit(&mut self, id: PlanId, step: Option<&Checked>) -> Result<Ticket, DeviceError> {
        let (counts, steps) = self.plans.get(id)?.plan.room().admit(step)?;
        if let Some(step) = step {
            self.upload(step)?;
        }
        let loaded = self.plans.get(id)?;
        self.check(&loaded.plan)?;
        let walk = Walk {
            loaded,
            counts,
            steps,
            level: self.level,
            exact: self.exact,
            buffers: &self.buffers,
            panels: &self.panels,
            begun: AtomicUsize::new(0),
            stop: self.stop.as_deref(),
            last_barrier: AtomicUsize::new(NO_BARRIER),
        };
        let result = self.pool.run(&|part| walk.walk(part));
        result.map_err(|why| {
            let index = walk.begun.load(Ordering::Relaxed);
            DeviceError::Dispatch {
                index,
                kernel: loaded.plan.dispatches()[index].kernel.row().name(),
                why,
            }
        })?;
        match walk.was_stopped() {
            true => Err(DeviceError::Stopped),
            false => Ok(Ticket::default()),
        }
    }

    fn stop_when(&mut self, stop: Option<Arc<AtomicBool>>) {
        self.stop = stop;
    }
}

impl KernelDevice for CpuDevice {
    fn load_kernels(&mut self, calls: Vec<KernelCall>, room: Room) -> Result<PlanId, DeviceError> {
        let plan = Plan::make(calls, room, &mut self.pipelines)?;
        self.check(&plan)?;
        let free = self.free_memory.or_else(host_memory::available);
        let was_in_file = self.panels.in_file;
        self.panels.prepare(
            &plan,
            &self.buffers,
            (self.level, self.exact),
            Means {
                pool: &mut self.pool,
                free,
                stop: self.stop.as_deref(),
            },
        )?;
        if let (None, Some(in_file), Some(warn)) = (was_in_file, self.panels.in_file, self.warn) {
            warn(&in_file.to_string());
        }
        let kernels = plan.dispatches().iter();
        let kernels = kernels.map(|dispatch| select(dispatch.kernel, self.level.isa()));
        Ok(self.plans.add(Loaded {
            kernels: kernels.collect(),
            joins: join::joins(&plan, self.level.isa()),
            plan,
        }))
    }
}
