//! The device that runs plans through the real `.metal` files.

use akunu_kernels::device::SharedBytes;
use akunu_kernels::pipeline::PipelineCache;
use akunu_kernels::{
    Buffer, ChipConfig, Device, DeviceError, Dispatch, PipelineId, PipelineKey, Plan,
};

use crate::error::SimError;
use crate::executor::buffer::SimBuffer;
use crate::executor::schedule::Schedule;
use crate::launch::{Binding, ConstantValue, Launch};
use crate::simulator::Simulator;
use crate::table;

/// A pipeline: the kernel's name and its constants, ready for a launch.
struct Pipeline {
    kernel: String,
    constants: Vec<(u32, ConstantValue)>,
}

/// Runs plans in the simulator. Shared weights are copied: its buffers have guards around them.
pub struct SimDevice {
    simulator: Simulator,
    chip: ChipConfig,
    schedule: Schedule,
    buffers: Vec<SimBuffer>,
    pipelines: PipelineCache<Pipeline>,
}

impl SimDevice {
    /// A device over the kernels of `simulator`, laid out as for `chip`.
    pub fn new(simulator: Simulator, chip: ChipConfig, schedule: Schedule) -> SimDevice {
        let pipelines = PipelineCache::new();
        SimDevice {
            simulator,
            chip,
            schedule,
            buffers: Vec::new(),
            pipelines,
        }
    }

    fn add(
        &mut self,
        buffer: std::io::Result<SimBuffer>,
        bytes: usize,
        label: &str,
    ) -> Result<u32, DeviceError> {
        self.buffers.push(buffer.map_err(|_| DeviceError::Memory {
            bytes,
            label: label.into(),
        })?);
        Ok(self.buffers.len() as u32 - 1)
    }

    fn buffer(&self, buffer: Buffer) -> Result<&SimBuffer, DeviceError> {
        let foreign = DeviceError::Foreign {
            what: "buffer",
            id: buffer.id,
        };
        self.buffers.get(buffer.id as usize).ok_or(foreign)
    }

    fn dispatch(
        &self,
        index: usize,
        dispatch: &Dispatch,
        position: u32,
    ) -> Result<(), DeviceError> {
        let row = dispatch.kernel.row();
        let foreign = DeviceError::Foreign {
            what: "pipeline",
            id: dispatch.pipeline.0,
        };
        let (_, pipeline) = self.pipelines.get(dispatch.pipeline).ok_or(foreign)?;
        let failed = |error: SimError| DeviceError::Dispatch {
            index,
            kernel: pipeline.kernel.clone(),
            why: error.to_string(),
        };
        let patched = dispatch.patch.apply(&dispatch.params, position);
        let params = SimBuffer::from_bytes(patched.as_bytes());
        let params = params.map_err(|source| {
            failed(SimError::Io {
                path: "params".into(),
                source,
            })
        })?;
        let mut bindings = vec![Binding::whole(row.params_index.into(), &params)];
        for (slice, binding) in dispatch.bindings.iter().zip(row.bindings) {
            bindings.push(Binding {
                index: binding.index.into(),
                buffer: self.buffer(slice.buffer)?,
                offset: slice.offset,
            });
        }
        let handle = self.simulator.kernel(&pipeline.kernel).map_err(failed)?;
        let launch = Launch {
            grid: dispatch.launch.grid,
            threads: dispatch.launch.threads,
            bindings: &bindings,
            threadgroup_bytes: &table::threadgroup_bytes(dispatch.launch.threadgroup_bytes),
            constants: &pipeline.constants,
            schedule: self.schedule,
            host_threads: None,
        };
        handle.launch(&launch).map_err(failed)
    }
}

impl Device for SimDevice {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn chip(&self) -> &ChipConfig {
        &self.chip
    }

    fn memory_limit(&self) -> Option<u64> {
        akunu_kernels::host_memory::available()
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        let id = self.add(SimBuffer::zeroed(bytes), bytes, label)?;
        Ok(Buffer {
            id,
            len: bytes,
            writable: true,
        })
    }

    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        let contents = (*bytes).as_ref();
        let id = self.add(SimBuffer::from_bytes(contents), contents.len(), label)?;
        Ok(Buffer {
            id,
            len: contents.len(),
            writable: false,
        })
    }

    fn release(&mut self, buffer: Buffer) {
        let memory = self.buffers.get_mut(buffer.id as usize);
        if let (Some(memory), Ok(empty)) = (memory, SimBuffer::zeroed(0)) {
            *memory = empty;
        }
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        if !buffer.writable {
            return Err(DeviceError::ReadOnly { buffer: buffer.id });
        }
        let foreign = DeviceError::Foreign {
            what: "buffer",
            id: buffer.id,
        };
        let memory = self.buffers.get_mut(buffer.id as usize).ok_or(foreign)?;
        let (len, end) = (memory.len(), offset.saturating_add(bytes.len()));
        let range = memory.bytes_mut().get_mut(offset..end);
        let out = DeviceError::OutOfRange {
            buffer: buffer.id,
            offset,
            end,
            len,
        };
        range.ok_or(out)?.copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let memory = self.buffer(buffer)?;
        let (len, end) = (memory.len(), offset.saturating_add(bytes.len()));
        let range = memory.bytes().get(offset..end);
        let out = DeviceError::OutOfRange {
            buffer: buffer.id,
            offset,
            end,
            len,
        };
        bytes.copy_from_slice(range.ok_or(out)?);
        Ok(())
    }

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        let simulator = &self.simulator;
        self.pipelines.get_or_make(key, |key| {
            let kernel = key.kernel.row().name();
            let made = simulator.kernel(&kernel).map(|_| ());
            made.map_err(|error| DeviceError::Pipeline {
                kernel: kernel.clone(),
                why: error.to_string(),
            })?;
            Ok(Pipeline {
                kernel,
                constants: table::constants(&key.constants),
            })
        })
    }

    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        plan.admit(first, n)?;
        for position in first..first + n {
            for (index, dispatch) in plan.dispatches().iter().enumerate() {
                self.dispatch(index, dispatch, position)?;
            }
        }
        Ok(())
    }
}
