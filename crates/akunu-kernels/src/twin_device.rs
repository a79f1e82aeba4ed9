//! The device that runs twins: slow, safe, and right by definition.

use crate::bytes::AlignedBytes;
use crate::chip::ChipConfig;
use crate::device::{Buffer, Device, DeviceError, SharedBytes};
use crate::host_memory;
use crate::pipeline::{PipelineCache, PipelineId, PipelineKey};
use crate::plan::{Dispatch, Plan};
use crate::twin::Twin;

/// Host memory of a device without a GPU.
enum Memory {
    Owned(AlignedBytes),
    Shared(SharedBytes),
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Owned(bytes) => bytes.as_ref(),
            Memory::Shared(bytes) => (**bytes).as_ref(),
        }
    }
}

/// The buffers of a device that lives in host memory.
#[derive(Default)]
pub struct HostBuffers(Vec<Memory>);

impl HostBuffers {
    /// A zeroed buffer.
    pub fn allocate(&mut self, bytes: usize) -> Buffer {
        self.push(Memory::Owned(AlignedBytes::zeroed(bytes)), bytes, true)
    }

    /// A read-only buffer over existing memory.
    pub fn share(&mut self, bytes: SharedBytes) -> Buffer {
        let len = (*bytes).as_ref().len();
        self.push(Memory::Shared(bytes), len, false)
    }

    /// Frees a buffer; its number stays taken and stands for nothing.
    pub fn release(&mut self, buffer: Buffer) {
        if let Some(memory) = self.0.get_mut(buffer.id as usize) {
            *memory = Memory::Owned(AlignedBytes::zeroed(0));
        }
    }

    fn push(&mut self, memory: Memory, len: usize, writable: bool) -> Buffer {
        self.0.push(memory);
        Buffer {
            id: self.0.len() as u32 - 1,
            len,
            writable,
        }
    }

    /// A buffer's bytes.
    pub fn bytes(&self, buffer: Buffer) -> Result<&[u8], DeviceError> {
        let memory = self.0.get(buffer.id as usize);
        memory.map(Memory::bytes).ok_or(DeviceError::Foreign {
            what: "buffer",
            id: buffer.id,
        })
    }

    /// Copies bytes into a buffer.
    pub fn write(
        &mut self,
        buffer: Buffer,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        match self.0.get_mut(buffer.id as usize) {
            None => Err(DeviceError::Foreign {
                what: "buffer",
                id: buffer.id,
            }),
            Some(Memory::Shared(_)) => Err(DeviceError::ReadOnly { buffer: buffer.id }),
            Some(Memory::Owned(memory)) => {
                let len = memory.as_ref().len();
                let end = offset.saturating_add(bytes.len());
                let range = memory.as_mut().get_mut(offset..end);
                let out_of_range = DeviceError::OutOfRange {
                    buffer: buffer.id,
                    offset,
                    end,
                    len,
                };
                range.ok_or(out_of_range)?.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Copies bytes out of a buffer.
    pub fn read(&self, buffer: Buffer, offset: usize, out: &mut [u8]) -> Result<(), DeviceError> {
        let bytes = self.bytes(buffer)?;
        let end = offset.saturating_add(out.len());
        let range = bytes.get(offset..end);
        let len = bytes.len();
        out.copy_from_slice(range.ok_or(DeviceError::OutOfRange {
            buffer: buffer.id,
            offset,
            end,
            len,
        })?);
        Ok(())
    }
}

/// Runs each dispatch's twin.
pub struct TwinDevice {
    chip: ChipConfig,
    buffers: HostBuffers,
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
        Ok(self.buffers.allocate(bytes))
    }

    fn share(&mut self, bytes: SharedBytes, _label: &str) -> Result<Buffer, DeviceError> {
        Ok(self.buffers.share(bytes))
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
