//! A device that a test looks at, and that fails when the test says so.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use akunu_program::{Buffer, Checked, Device, DeviceError, PlanId, Program, SharedBytes, Ticket};

/// What a test does at each call; by default nothing.
pub trait Hooks: Send {
    /// What the device says it has left.
    fn memory_limit(&self) -> Option<u64> {
        None
    }
    /// Whether submissions are made ahead; `None` for what the device says.
    fn runs_ahead(&self) -> Option<bool> {
        None
    }
    /// Before a buffer is made.
    fn allocate(&mut self, _bytes: usize, _label: &str) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Before memory of the host is shared.
    fn share(&mut self, _bytes: &SharedBytes) {}
    /// Before a buffer is given back.
    fn release(&mut self, _buffer: Buffer) {}
    /// After the host has written.
    fn written(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    /// After a program was loaded.
    fn loaded(&mut self, _plan: PlanId, _program: &Program) {}
    /// After a program has run.
    fn ran(&mut self, _plan: PlanId, _step: Option<&Checked>) -> Result<(), DeviceError> {
        Ok(())
    }
    /// After a submission was waited for.
    fn waited(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Says that submissions return before they have ended.
pub struct Ahead;

impl Hooks for Ahead {
    fn runs_ahead(&self) -> Option<bool> {
        Some(true)
    }
}

/// A device with hooks, on which the test may keep a hand while a model has it.
pub struct Watched<D, H> {
    device: Arc<Mutex<D>>,
    hooks: H,
}

impl<D: Device, H: Hooks> Watched<D, H> {
    pub fn new(device: D, hooks: H) -> Watched<D, H> {
        Watched {
            device: Arc::new(Mutex::new(device)),
            hooks,
        }
    }

    /// The device itself.
    pub fn device(&self) -> Arc<Mutex<D>> {
        Arc::clone(&self.device)
    }

    fn get(&self) -> MutexGuard<'_, D> {
        self.device.lock().expect("no test has panicked with it")
    }
}

impl<D: Device, H: Hooks> Device for Watched<D, H> {
    fn name(&self) -> &'static str {
        self.get().name()
    }
    fn description(&self) -> String {
        self.get().description()
    }
    fn memory_limit(&self) -> Option<u64> {
        self.hooks.memory_limit()
    }
    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.hooks.allocate(bytes, label)?;
        self.get().allocate(bytes, label)
    }
    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.hooks.share(&bytes);
        self.get().share(bytes, label)
    }
    fn keep(&mut self, bytes: &[u8], label: &str) -> Result<Buffer, DeviceError> {
        self.hooks.allocate(bytes.len(), label)?;
        self.get().keep(bytes, label)
    }
    fn longest_binding(&self, bytes: usize) -> usize {
        self.get().longest_binding(bytes)
    }
    fn release(&mut self, buffer: Buffer) {
        self.hooks.release(buffer);
        self.get().release(buffer);
    }
    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.get().write(buffer, offset, bytes)?;
        self.hooks.written()
    }
    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.get().read(buffer, offset, bytes)
    }
    fn load(&mut self, program: &Program) -> Result<PlanId, DeviceError> {
        let plan = self.get().load(program)?;
        self.hooks.loaded(plan, program);
        Ok(plan)
    }
    fn unload(&mut self, plan: PlanId) {
        self.get().unload(plan);
    }
    fn runs_ahead(&self) -> bool {
        let said = self.hooks.runs_ahead();
        said.unwrap_or_else(|| self.get().runs_ahead())
    }
    fn exact_rows(&self) -> usize {
        self.get().exact_rows()
    }
    fn submit(&mut self, plan: PlanId, step: Option<&Checked>) -> Result<Ticket, DeviceError> {
        let ticket = self.get().submit(plan, step)?;
        self.hooks.ran(plan, step)?;
        Ok(ticket)
    }
    fn stop_when(&mut self, stop: Option<Arc<AtomicBool>>) {
        self.get().stop_when(stop);
    }
    fn wait(&mut self, ticket: Ticket) -> Result<(), DeviceError> {
        self.get().wait(ticket)?;
        self.hooks.waited()
    }
}
