//! The device: buffers, pipelines, and plans as jobs of the threads.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use akunu_kernels::device::SharedBytes;
use akunu_kernels::host_memory;
use akunu_kernels::pipeline::PipelineCache;
use akunu_kernels::{
    Buffer, ChipConfig, Device, DeviceError, Dispatch, PipelineId, PipelineKey, Plan,
};
use akunu_types::DType;

use crate::call::{Call, Kernel, MAX_BINDINGS, Place};
use crate::cores::default_threads;
use crate::isa::Isa;
use crate::join;
use crate::kernel::norm::PrivateRmsNorm;
use crate::matmul::Panels;
use crate::memory::Buffers;
use crate::part::Part;
use crate::pool::{MAX_THREADS, ThreadPool};
use crate::select::select;
use crate::simd;

/// How the device runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    /// Number of threads; `None` for one on each fast core that the process may use, and fewer while other programs
    /// want those cores.
    pub threads: Option<usize>,
    /// The instructions; `None` for the best that the machine has.
    pub isa: Option<Isa>,
}

/// Why there is no device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CpuError {
    /// Instructions that the machine lacks.
    #[error("this machine has no {wanted}; it has {available}")]
    Isa {
        /// The level asked for.
        wanted: Isa,
        /// The levels it has.
        available: String,
    },
    /// A number of threads that makes no sense.
    #[error("{found} threads asked for, 1 to {max} are possible")]
    Threads {
        /// The number asked for.
        found: usize,
        /// The most.
        max: usize,
    },
    /// The system refused a thread.
    #[error("cannot start a thread: {0}")]
    Spawn(#[from] io::Error),
}

/// What a pipeline is on this device.
struct Pipeline {
    kernel: Kernel,
    dtype: Option<DType>,
}

/// Runs plans on the cores of this machine.
pub struct CpuDevice {
    chip: ChipConfig,
    isa: Isa,
    buffers: Buffers,
    pipelines: PipelineCache<Pipeline>,
    panels: Panels,
    pool: ThreadPool,
}

impl CpuDevice {
    /// A device without buffers; its threads are started here.
    pub fn new(options: CpuOptions) -> Result<CpuDevice, CpuError> {
        let isa = options.isa.unwrap_or_else(Isa::detect);
        if !isa.is_available() {
            let available: Vec<&str> = Isa::available().iter().map(|isa| isa.name()).collect();
            return Err(CpuError::Isa {
                wanted: isa,
                available: available.join(", "),
            });
        }
        let n_threads = options.threads.unwrap_or_else(default_threads);
        if !(1..=MAX_THREADS).contains(&n_threads) {
            return Err(CpuError::Threads {
                found: n_threads,
                max: MAX_THREADS,
            });
        }
        tracing::info!(%isa, n_threads, "CPU device");
        Ok(CpuDevice {
            chip: ChipConfig {
                name: format!("CPU, {isa}"),
                ..ChipConfig::m1()
            },
            isa,
            buffers: Buffers::default(),
            pipelines: PipelineCache::new(),
            panels: Panels::default(),
            pool: match options.threads {
                Some(_) => ThreadPool::new(n_threads)?,
                None => ThreadPool::yielding(n_threads)?,
            },
        })
    }

    /// The instructions that its kernels use.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Its number of threads.
    pub fn threads(&self) -> usize {
        self.pool.n_threads()
    }

    /// Refuses a plan with buffers or pipelines that are not ours.
    fn check(&self, plan: &Plan) -> Result<(), DeviceError> {
        for dispatch in plan.dispatches() {
            if self.pipelines.get(dispatch.pipeline).is_none() {
                return Err(DeviceError::Foreign {
                    what: "pipeline",
                    id: dispatch.pipeline.0,
                });
            }
            for slice in &dispatch.bindings {
                self.buffers.check(slice.buffer)?;
            }
        }
        Ok(())
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

/// A plan on its way through the threads.
struct Walk<'a> {
    plan: &'a Plan,
    first: u32,
    n: u32,
    isa: Isa,
    buffers: &'a Buffers,
    pipelines: &'a PipelineCache<Pipeline>,
    panels: &'a Panels,
    /// The dispatch that the furthest thread has begun, for the message of a failure.
    begun: AtomicUsize,
}

impl Walk<'_> {
    /// One thread's way: every position, every dispatch, its part of each.
    fn walk(&self, part: &mut Part) {
        for position in self.first..self.first + self.n {
            // Whether the next dispatch needs no barrier, whatever the plan says.
            let mut is_joined = false;
            for (index, dispatch) in self.plan.dispatches().iter().enumerate() {
                if self.plan.barrier_before(index) && !is_joined {
                    part.wait_between_dispatches();
                }
                if part.index == 0 {
                    self.begun.store(index, Ordering::Relaxed);
                }
                is_joined = part.count > 1 && join::joins_next(self.plan, index, self.isa);
                let kernel = is_joined.then(|| simd::kernel::<PrivateRmsNorm>(self.isa));
                self.dispatch(dispatch, position, part, kernel);
            }
        }
    }

    /// Runs a dispatch, by another kernel than its pipeline's if one is given.
    fn dispatch(
        &self,
        dispatch: &Dispatch,
        position: u32,
        part: &mut Part,
        kernel: Option<Kernel>,
    ) {
        let Some((_, pipeline)) = self.pipelines.get(dispatch.pipeline) else {
            unreachable!("pipelines are checked before a run");
        };
        let params = dispatch.patch.apply(&dispatch.params, position);
        let (places, n) = places(self.buffers, dispatch);
        let call = Call {
            kernel: dispatch.kernel,
            args: akunu_kernels::table::Args {
                dtype: pipeline.dtype,
                params: params.as_bytes(),
                constants: &dispatch.constants,
            },
            slices: &dispatch.bindings,
            places: &places[..n],
            isa: self.isa,
            panels: self.panels,
        };
        kernel.unwrap_or(pipeline.kernel)(&call, part);
    }
}

impl Device for CpuDevice {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn chip(&self) -> &ChipConfig {
        &self.chip
    }

    fn memory_limit(&self) -> Option<u64> {
        host_memory::available()
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.buffers.allocate(bytes, label)
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

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        let isa = self.isa;
        self.pipelines.get_or_make(key, |key| {
            Ok(Pipeline {
                kernel: select(key.kernel, isa),
                dtype: key.kernel.row().dtype,
            })
        })
    }

    fn prepare(&mut self, plan: &Plan) -> Result<(), DeviceError> {
        self.check(plan)?;
        self.panels
            .prepare(plan, &self.buffers, self.isa, &mut self.pool)
    }

    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        plan.admit(first, n)?;
        self.check(plan)?;
        let walk = Walk {
            plan,
            first,
            n,
            isa: self.isa,
            buffers: &self.buffers,
            pipelines: &self.pipelines,
            panels: &self.panels,
            begun: AtomicUsize::new(0),
        };
        let result = self.pool.run(&|part| walk.walk(part));
        result.map_err(|why| {
            let index = walk.begun.load(Ordering::Relaxed);
            DeviceError::Dispatch {
                index,
                kernel: plan.dispatches()[index].kernel.row().name(),
                why,
            }
        })
    }
}
