//! The device that runs twins, the specifications of the kernels: slow and safe.

use akunu_program::{
    AlignedBytes, Buffer, Checked, Counts, Device, DeviceError, HostBuffers, HostMemory, PlanId,
    Plans, Program, Room, SharedBytes, Ticket, host_memory,
};

use crate::kernel_device::KernelDevice;
use crate::lower;
use crate::pipeline::HostPipelines;
use crate::plan::{Dispatch, KernelCall, Plan};

/// A device that runs the twin of each dispatch.
#[derive(Default)]
pub struct TwinDevice {
    buffers: HostBuffers<AlignedBytes>,
    pipelines: HostPipelines<()>,
    plans: Plans<Plan>,
}

impl TwinDevice {
    /// A device without buffers.
    pub fn new() -> TwinDevice {
        TwinDevice::default()
    }

    fn dispatch(
        buffers: &mut HostBuffers<AlignedBytes>,
        (index, dispatch): (usize, &Dispatch),
        counts: &Counts,
    ) -> Result<(), DeviceError> {
        let row = dispatch.kernel.row();
        let params = dispatch.params_for(counts);
        let mut whole = Vec::with_capacity(dispatch.bindings.len());
        for slice in &dispatch.bindings {
            whole.push(&buffers.bytes(slice.buffer)?[slice.offset..]);
        }
        let args = row.args(params.as_bytes(), &dispatch.constants);
        let written = row.run_twin(args, &whole);
        let written = written.map_err(|short| DeviceError::Dispatch {
            index,
            kernel: row.name(),
            why: short.to_string(),
        })?;
        for (at, bytes) in written {
            let slice = dispatch.bindings[at];
            buffers.write(slice.buffer, slice.offset, bytes.as_ref())?;
        }
        Ok(())
    }
}

impl Device for TwinDevice {
    fn name(&self) -> &'static str {
        "twin"
    }

    fn description(&self) -> String {
        "the specification of every kernel, in one thread".into()
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

    fn load(&mut self, program: &Program) -> Result<PlanId, DeviceError> {
        self.load_kernels(lower::plain(program), program.plan_room())
    }

    fn unload(&mut self, plan: PlanId) {
        self.plans.remove(plan);
    }

    fn submit(&mut self, plan: PlanId, step: Option<&Checked>) -> Result<Ticket, DeviceError> {
        let (counts, steps) = self.plans.get(plan)?.room().admit(step)?;
        if let Some(step) = step {
            self.upload(step)?;
        }
        let plan = self.plans.get(plan)?;
        for _ in 0..steps {
            for dispatch in plan.dispatches().iter().enumerate() {
                TwinDevice::dispatch(&mut self.buffers, dispatch, &counts)?;
            }
        }
        Ok(Ticket::default())
    }
}

impl KernelDevice for TwinDevice {
    fn load_kernels(&mut self, calls: Vec<KernelCall>, room: Room) -> Result<PlanId, DeviceError> {
        let plan = Plan::make(calls, room, &mut self.pipelines)?;
        Ok(self.plans.add(plan))
    }
}
