//! The device over a backend.

use crate::chip::ChipConfig;
use crate::device::{Buffer, Device, DeviceError, SharedBytes, Ticket};
use crate::pipeline::{PipelineId, PipelineKey};
use crate::plan::{Dispatch, Plan};

use super::backend::Backend;
use super::buffers::Buffers;
use super::dry_run::DryRun;
use super::encode::{Encoder, Part, Resources, encode_part};
use super::flight::Flights;
use super::pace::Pace;
use super::pipelines::{Compiled, Pipelines};

/// Most chains under way: what double buffering needs, and one more. A command queue would block at 64
/// command buffers.
const MAX_IN_FLIGHT: usize = 3;

/// Runs plans on a GPU.
pub struct GpuDevice<B: Backend> {
    backend: B,
    chip: ChipConfig,
    buffers: Buffers<B>,
    pipelines: Pipelines<B::Compiler>,
    flights: Flights<B>,
    pace: Pace,
    /// Why the GPU failed: what its memory holds is unknown from then on.
    lost: Option<String>,
}

impl<B: Backend> GpuDevice<B> {
    /// A device without buffers. `chip` is what the backend runs on.
    pub fn over(backend: B, chip: ChipConfig) -> GpuDevice<B> {
        GpuDevice {
            chip,
            buffers: Buffers::new(backend.limits()),
            pipelines: Pipelines::new(backend.compiler()),
            flights: Flights::new(),
            pace: Pace::default(),
            lost: None,
            backend,
        }
    }

    /// The backend.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    fn check_alive(&self) -> Result<(), DeviceError> {
        match &self.lost {
            None => Ok(()),
            Some(why) => Err(DeviceError::Lost { why: why.clone() }),
        }
    }

    fn wait_all(&mut self) -> Result<(), DeviceError> {
        while self.flights.len() > 0 {
            self.wait_oldest()?;
        }
        Ok(())
    }

    fn wait_oldest(&mut self) -> Result<(), DeviceError> {
        match self.flights.wait_oldest(&mut self.backend) {
            Ok(times) => {
                for (rounds, took) in times {
                    self.pace.measured(rounds as u32, took);
                }
                Ok(())
            }
            Err(why) => {
                self.lost = Some(why);
                self.check_alive()
            }
        }
    }
}

/// Buffers and pipelines as the encoding sees them.
struct Table<'a, B: Backend>(&'a Buffers<B>, &'a Pipelines<B::Compiler>);

impl<B: Backend, E> Resources<E> for Table<'_, B>
where
    E: Encoder<Buffer = B::Buffer, Pipeline = B::Pipeline>,
{
    fn place(
        &self,
        dispatch: &Dispatch,
        binding: usize,
        position: u32,
    ) -> Result<(&B::Buffer, usize), DeviceError> {
        self.0.place(dispatch, binding, position)
    }

    fn pipeline(&self, id: PipelineId) -> Result<&Compiled<B::Pipeline>, DeviceError> {
        self.1.made(id)
    }
}

impl<B: Backend> Device for GpuDevice<B> {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn chip(&self) -> &ChipConfig {
        &self.chip
    }

    fn memory_limit(&self) -> Option<u64> {
        Some(self.buffers.room())
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.buffers.allocate(&mut self.backend, bytes, label)
    }

    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.buffers.share(&mut self.backend, bytes, label)
    }

    fn release(&mut self, buffer: Buffer) {
        if let Some(memory) = self.buffers.release(buffer) {
            self.flights.keep(memory);
        }
    }

    /// Waits for everything under way first: it may be reading these bytes.
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.wait_all()?;
        self.check_alive()?;
        self.buffers.write(&mut self.backend, buffer, offset, bytes)
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check_alive()?;
        self.buffers.read(&self.backend, buffer, offset, bytes)
    }

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        self.pipelines.id(key)
    }

    fn thread_limit(&mut self, pipeline: PipelineId) -> Result<u32, DeviceError> {
        Ok(self.pipelines.wait(pipeline)?.max_threads)
    }

    /// Waits for the pipelines, and encodes the plan's last position into nothing: what does not fit a
    /// pipeline or a buffer is refused now, not when the first token is wanted.
    fn prepare(&mut self, plan: &Plan) -> Result<(), DeviceError> {
        self.pipelines.wait_all()?;
        let last = plan.max_position();
        let part = Part {
            positions: last..last.saturating_add(1),
            dispatches: 0..plan.dispatches().len(),
        };
        let table = Table::<B>(&self.buffers, &self.pipelines);
        encode_part(plan, &part, &table, &mut DryRun::new())
    }

    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        self.submit_chain(plan, first, n)?;
        self.wait_all()
    }

    fn runs_ahead(&self) -> bool {
        true
    }

    fn submit_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<Ticket, DeviceError> {
        plan.admit(first, n)?;
        self.check_alive()?;
        self.pipelines.wait_all()?;
        while self.flights.len() >= MAX_IN_FLIGHT {
            self.wait_oldest()?;
        }
        let table = Table::<B>(&self.buffers, &self.pipelines);
        let (mut parts, mut result) = (Vec::new(), Ok(()));
        for part in self.pace.parts(plan, first, n) {
            let submitted = self
                .backend
                .submit(|encoder| encode_part(plan, &part, &table, encoder));
            result = submitted.map(|submission| parts.push((part.positions.len(), submission)));
            if result.is_err() {
                break;
            }
        }
        let ticket = self.flights.push(parts);
        result.map(|()| ticket)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<(), DeviceError> {
        while self.flights.oldest().is_some_and(|oldest| oldest <= ticket) {
            self.wait_oldest()?;
        }
        self.check_alive()
    }
}

impl<B: Backend> Drop for GpuDevice<B> {
    /// Buffers go only when nothing uses them any more.
    fn drop(&mut self) {
        while self.flights.len() > 0 {
            // Whoever drops the device does not ask how it ended.
            let _ = self.flights.wait_oldest(&mut self.backend);
        }
    }
}
