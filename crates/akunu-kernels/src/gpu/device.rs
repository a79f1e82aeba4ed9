//! The device over a backend.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use akunu_program::{
    Buffer, Checked, Counts, Device, DeviceError, PlanId, Plans, Program, Room, SharedBytes, Slice,
    Ticket,
};

use crate::chip::ChipConfig;
use crate::kernel_device::KernelDevice;
use crate::lower::{self, Rules};
use crate::pipeline::{self, PipelineId, PipelineKey};
use crate::plan::{Dispatch, KernelCall, Plan};

use super::backend::Backend;
use super::buffers::Buffers;
use super::dry_run::DryRun;
use super::encode::{Encoder, Resources, encode_part};
use super::flight::Flights;
use super::loaded::Loaded;
use super::pace::{MAX_FLOPS, Pace, STOPPABLE_FLOPS};
use super::pipelines::{Compiled, Compiler, Pipelines};

/// Most chains under way: what double buffering needs, and one more. A command queue would block at 64
/// command buffers.
const MAX_IN_FLIGHT: usize = 3;

/// Most command buffers under way of a submission that can be stopped: the GPU always has the next one, and little is left to
/// wait for.
const MAX_STOPPABLE: usize = 2;

/// Runs programs on a GPU.
pub struct GpuDevice<B: Backend> {
    backend: B,
    chip: ChipConfig,
    rules: Box<dyn Rules>,
    buffers: Buffers<B>,
    pipelines: Pipelines<B::Compiler>,
    plans: Plans<Loaded<B>>,
    flights: Flights<B>,
    pace: Pace,
    /// Memory for what kernels of one operation leave for each other: programs run one after another and share it.
    scratch: Vec<Buffer>,
    /// The flag that ends submissions early.
    stop: Option<Arc<AtomicBool>>,
    /// Why the GPU failed: what its memory holds is unknown from then on.
    lost: Option<String>,
}

impl<B: Backend> GpuDevice<B> {
    /// What it runs on.
    pub fn chip(&self) -> &ChipConfig {
        &self.chip
    }

    /// A device without buffers. `chip` is what the backend runs on.
    pub fn over(backend: B, chip: ChipConfig) -> GpuDevice<B> {
        GpuDevice {
            rules: backend.rules(&chip),
            chip,
            buffers: Buffers::new(backend.limits()),
            pipelines: Pipelines::new(backend.compiler()),
            plans: Plans::default(),
            flights: Flights::new(),
            pace: Pace::default(),
            scratch: Vec::new(),
            stop: None,
            lost: None,
            backend,
        }
    }

    /// The backend of the device.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// What a program was lowered to.
    pub fn plan(&self, id: PlanId) -> Result<&Plan, DeviceError> {
        Ok(&self.plans.get(id)?.plan)
    }

    fn check_alive(&self) -> Result<(), DeviceError> {
        match &self.lost {
            None => Ok(()),
            Some(why) => Err(DeviceError::Lost { why: why.clone() }),
        }
    }

    /// Scratch memory of at least this many bytes. What a program was loaded with stays, so a larger one is a new one.
    fn scratch(&mut self, bytes: usize) -> Result<Option<Buffer>, DeviceError> {
        let found = self.scratch.iter().find(|buffer| buffer.len >= bytes);
        if bytes == 0 || found.is_some() {
            return Ok(found.copied());
        }
        let buffer = self
            .buffers
            .allocate(&mut self.backend, bytes, "scratch of kernels")?;
        self.scratch.push(buffer);
        Ok(Some(buffer))
    }

    fn wait_all(&mut self) -> Result<(), DeviceError> {
        while self.flights.len() > 0 {
            self.wait_oldest()?;
        }
        Ok(())
    }

    /// Starts the kept round of these rows, which is encoded at the first time; `None` from a backend that keeps none.
    fn submit_kept(
        &mut self,
        id: PlanId,
        (counts, steps): (Counts, u32),
    ) -> Result<Option<B::Submission>, DeviceError> {
        let loaded = self.plans.get_mut(id)?;
        if loaded.round(counts).is_none() {
            let part = loaded.part(counts);
            let table = Table::<B>(&self.buffers, &self.pipelines);
            let kept = self
                .backend
                .keep(|encoder| encode_part(&loaded.plan, &part, &self.chip, &table, encoder))?;
            let Some(round) = kept else { return Ok(None) };
            if let Some(oldest) = loaded.add(counts, round) {
                self.flights.keep_round(oldest);
            }
        }
        let Some(round) = loaded.round(counts) else {
            return Ok(None);
        };
        self.backend.repeat(round, steps).map(Some)
    }

    /// Encodes a step and starts it, in as many parts as the pace wants.
    fn submit_parts(
        &mut self,
        id: PlanId,
        (counts, steps): (Counts, u32),
    ) -> Result<Ticket, DeviceError> {
        let plan = &self.plans.get(id)?.plan;
        let table = Table::<B>(&self.buffers, &self.pipelines);
        let (mut parts, mut result) = (Vec::new(), Ok(()));
        for part in self.pace.parts(plan, counts, steps, MAX_FLOPS) {
            let submitted = self
                .backend
                .submit(|encoder| encode_part(plan, &part, &self.chip, &table, encoder));
            result = submitted.map(|submission| parts.push((part.rounds as usize, submission)));
            if result.is_err() {
                break;
            }
        }
        let ticket = self.flights.push(parts);
        result.map(|()| ticket)
    }

    /// Like [`GpuDevice::submit_parts`], in shorter parts, most of which have ended when it returns. Before each it looks whether
    /// it is to go on.
    fn submit_until(
        &mut self,
        stop: &AtomicBool,
        id: PlanId,
        (counts, steps): (Counts, u32),
    ) -> Result<Ticket, DeviceError> {
        let plan = &self.plans.get(id)?.plan;
        let parts = self.pace.parts(plan, counts, steps, STOPPABLE_FLOPS);
        let mut last = self.flights.push(Vec::new());
        for part in parts {
            while self.flights.len() >= MAX_STOPPABLE {
                self.wait_oldest()?;
            }
            if stop.load(Ordering::Relaxed) {
                self.wait_all()?;
                return Err(DeviceError::Stopped);
            }
            let plan = &self.plans.get(id)?.plan;
            let table = Table::<B>(&self.buffers, &self.pipelines);
            let submission = self
                .backend
                .submit(|encoder| encode_part(plan, &part, &self.chip, &table, encoder))?;
            last = self.flights.push(vec![(part.rounds as usize, submission)]);
        }
        Ok(last)
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

/// The chip and the pipelines, while a plan is made.
struct Making<'a, C: Compiler>(&'a ChipConfig, &'a mut Pipelines<C>);

impl<C: Compiler> pipeline::Pipelines for Making<'_, C> {
    fn chip(&self) -> &ChipConfig {
        self.0
    }

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        self.1.id(key)
    }

    fn thread_limit(&mut self, pipeline: PipelineId) -> Result<u32, DeviceError> {
        Ok(self.1.wait(pipeline)?.max_threads)
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
    ) -> Result<(&B::Buffer, usize), DeviceError> {
        self.0.place(dispatch, binding)
    }

    fn pipeline(&self, id: PipelineId) -> Result<&Compiled<B::Pipeline>, DeviceError> {
        self.1.made(id)
    }
}

impl<B: Backend> Device for GpuDevice<B> {
    fn name(&self) -> &'static str {
        self.backend.name()
    }

    fn description(&self) -> String {
        self.chip.name.clone()
    }

    fn memory_limit(&self) -> Option<u64> {
        Some(self.buffers.room(&self.backend))
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        match self.buffers.allocate(&mut self.backend, bytes, label) {
            // What was released under way is freed when that has ended.
            Err(DeviceError::Budget { .. }) if self.flights.len() > 0 => {
                self.wait_all()?;
                self.buffers.allocate(&mut self.backend, bytes, label)
            }
            done => done,
        }
    }

    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.buffers.share(&mut self.backend, bytes, label)
    }

    /// In memory of the GPU alone.
    fn keep(&mut self, bytes: &[u8], label: &str) -> Result<Buffer, DeviceError> {
        let buffer = self.allocate(bytes.len(), label)?;
        self.write(buffer, 0, bytes)?;
        Ok(Buffer {
            writable: false,
            ..buffer
        })
    }

    /// Windows that overlap by a quarter are a third more than those that do not overlap.
    fn longest_binding(&self, bytes: usize) -> usize {
        self.buffers.longest_binding(bytes)
    }

    /// Kept rounds may name the buffer, and are encoded again where they are still wanted.
    fn release(&mut self, buffer: Buffer) {
        let Some(memory) = self.buffers.release(buffer) else {
            return;
        };
        self.flights.keep(memory);
        for round in self.plans.iter_mut().flat_map(Loaded::forget) {
            self.flights.keep_round(round);
        }
    }

    /// What is under way may be reading these bytes.
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        if !self.backend.writes_in_turn() {
            self.wait_all()?;
        }
        self.check_alive()?;
        self.buffers.write(&mut self.backend, buffer, offset, bytes)
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check_alive()?;
        self.buffers.read(&self.backend, buffer, offset, bytes)
    }

    /// Waits for everything under way first: it may be writing what is copied.
    fn copy(&mut self, from: Slice, to: Slice, bytes: usize) -> Result<(), DeviceError> {
        self.wait_all()?;
        let mut copied = vec![0; bytes];
        self.read(from.buffer, from.offset, &mut copied)?;
        self.write(to.buffer, to.offset, &copied)
    }

    fn load(&mut self, program: &Program) -> Result<PlanId, DeviceError> {
        let scratch = self.scratch(lower::scratch_bytes(program, &*self.rules))?;
        let calls = lower::by_rules(program, &*self.rules, scratch);
        self.load_kernels(calls, program.plan_room())
    }

    fn unload(&mut self, plan: PlanId) {
        let rounds = self.plans.remove(plan).map(|mut plan| plan.forget());
        for round in rounds.into_iter().flatten() {
            self.flights.keep_round(round);
        }
    }

    fn runs_ahead(&self) -> bool {
        true
    }

    fn submit(&mut self, id: PlanId, step: Option<&Checked>) -> Result<Ticket, DeviceError> {
        let (counts, steps) = self.plans.get(id)?.plan.room().admit(step)?;
        self.check_alive()?;
        self.pipelines.wait_all()?;
        if let Some(step) = step {
            self.upload(step)?;
        }
        while self.flights.len() >= MAX_IN_FLIGHT {
            self.wait_oldest()?;
        }
        // A prompt has another number of rows each time; the next tokens of some sequences have the same ones for long.
        if counts.run == 0
            && let Some(submission) = self.submit_kept(id, (counts, steps))?
        {
            return Ok(self.flights.push(vec![(steps as usize, submission)]));
        }
        match self.stop.clone() {
            Some(stop) => self.submit_until(&stop, id, (counts, steps)),
            None => self.submit_parts(id, (counts, steps)),
        }
    }

    fn stop_when(&mut self, stop: Option<Arc<AtomicBool>>) {
        self.stop = stop;
    }

    fn wait(&mut self, ticket: Ticket) -> Result<(), DeviceError> {
        while self.flights.oldest().is_some_and(|oldest| oldest <= ticket) {
            self.wait_oldest()?;
        }
        self.check_alive()
    }
}

impl<B: Backend> KernelDevice for GpuDevice<B> {
    /// Waits for the pipelines, and encodes a full step into nothing: what does not fit a pipeline or a buffer is
    /// refused now, not when the first token is wanted.
    fn load_kernels(&mut self, calls: Vec<KernelCall>, room: Room) -> Result<PlanId, DeviceError> {
        let mut making = Making(&self.chip, &mut self.pipelines);
        let plan = Plan::make(calls, room, &mut making)?;
        self.pipelines.wait_all()?;
        let loaded = Loaded::new(plan);
        let part = loaded.part(loaded.plan.room().counts);
        let table = Table::<B>(&self.buffers, &self.pipelines);
        encode_part(&loaded.plan, &part, &self.chip, &table, &mut DryRun::new())?;
        self.backend.settle();
        Ok(self.plans.add(loaded))
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
