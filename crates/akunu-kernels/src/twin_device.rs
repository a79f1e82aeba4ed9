//! The device that runs twins: slow, safe, and right by definition.

use crate::bytes::AlignedBytes;
use crate::chip::ChipConfig;
use crate::device::{Buffer, Device, DeviceError, SharedBytes};
use crate::host_buffers::{HostBuffers, HostMemory};
use crate::host_memory;
use crate::pipeline::{PipelineCache, PipelineId, PipelineKey};
use crate::plan::{Dispatch, Plan};
use crate::twin::Twin;

/// Runs each dispatch's twin.
pub struct TwinDevice {
    chip: ChipConfig,
    buffers: HostBuffers<AlignedBytes>,
    pipelines: PipelineCache<()>,
}

impl TwinDevice {
    /// A device without buffers; plans are laid out as for `chip`.
    pub fn new(chip: ChipConfig) -> TwinDevice {
        TwinDevice {
            chip,
            buffers: HostBuffers::default(),
            pipelines: PipelineCache::new(),
        }
    }

    fn dispatch(&mut self, dispatch: &Dispatch, position: u32) -> Result<(), DeviceError> {
        let row = dispatch.kernel.row();
        let params = dispatch.patch.apply(&dispatch.params, position);
        let mut whole = Vec::with_capacity(dispatch.bindings.len());
        for slice in &dispatch.bindings {
            whole.push(&self.buffers.bytes(slice.buffer)?[slice.offset..]);
        }
        let args = row.args(params.as_bytes(), &dispatch.constants);
        let written = Twin::new(&row, args, &whole).run(&row);
        for (at, bytes) in written {
            let slice = dispatch.bindings[at];
            self.buffers
                .write(slice.buffer, slice.offset, bytes.as_ref())?;
        }
        Ok(())
    }
}

impl Device for TwinDevice {
    fn name(&self) -> &'static str {
        "twin"
    }

    fn chip(&self) -> &ChipConfig {
        &self.chip
    }

    fn memory_limit(&self) -> Option<u64> {
        host_memory::available()
    }

    fn allocate(&mut self, bytes: usize, _label: &str) -> Result<Buffer, DeviceError> {
        Ok(self.buffers.add(AlignedBytes::zeroed(bytes)))
    }

    fn share(&mut self, bytes: SharedBytes, _label: &str) -> Result<Buffer, DeviceError> {
        Ok(self.buffers.add_read_only(HostMemory::Shared(bytes)))
    }

    fn release(&mut self, buffer: Buffer) {
        self.buffers.release(buffer);
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.buffers.write(buffer, offset, bytes)
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.buffers.read(buffer, offset, bytes)
    }

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        self.pipelines.get_or_make(key, |_| Ok(()))
    }

    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        plan.admit(first, n)?;
        for position in first..first + n {
            for dispatch in plan.dispatches() {
                self.dispatch(dispatch, position)?;
            }
        }
        Ok(())
    }
}
