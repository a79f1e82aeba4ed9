//! A device that fails when a test says so.

use std::sync::{Arc, Mutex, MutexGuard};

use akunu_kernels::device::SharedBytes;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{Buffer, ChipConfig, Device, DeviceError, PipelineId, PipelineKey, Plan};

/// The twins, which fail once in a while.
pub struct Flaky {
    device: TwinDevice,
    hand: Hand,
}

/// What the test decides while the model has the device.
#[derive(Clone, Default)]
pub struct Hand(Arc<Mutex<Faults>>);

#[derive(Default)]
struct Faults {
    /// Runs that go well before one fails.
    run: Option<usize>,
    /// The same for writes of the host.
    write: Option<usize>,
    /// Called at the next write.
    on_write: Option<Box<dyn FnOnce() + Send>>,
}

impl Hand {
    /// The run after the next `n` fails.
    pub fn fail_run_after(&self, n: usize) {
        self.faults().run = Some(n);
    }

    /// The write after the next `n` fails.
    pub fn fail_write_after(&self, n: usize) {
        self.faults().write = Some(n);
    }

    /// Calls `act` at the next write.
    pub fn on_next_write(&self, act: impl FnOnce() + Send + 'static) {
        self.faults().on_write = Some(Box::new(act));
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.0.lock().expect("no test has panicked with it")
    }
}

impl Flaky {
    pub fn new() -> (Flaky, Hand) {
        let hand = Hand::default();
        let device = Flaky {
            device: TwinDevice::new(ChipConfig::m1()),
            hand: hand.clone(),
        };
        (device, hand)
    }
}

/// Counts down; an error at 0, once.
fn count(left: &mut Option<usize>) -> Result<(), DeviceError> {
    match left.take() {
        Some(0) => Err(DeviceError::Lost {
            why: "a planted failure".into(),
        }),
        more => {
            *left = more.map(|n| n - 1);
            Ok(())
        }
    }
}

impl Device for Flaky {
    fn name(&self) -> &'static str {
        "flaky"
    }

    fn chip(&self) -> &ChipConfig {
        self.device.chip()
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Result<Buffer, DeviceError> {
        self.device.allocate(bytes, label)
    }

    fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        self.device.share(bytes, label)
    }

    fn release(&mut self, buffer: Buffer) {
        self.device.release(buffer);
    }

    fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let mut faults = self.hand.faults();
        if let Some(act) = faults.on_write.take() {
            act();
        }
        self.device.write(buffer, offset, bytes)?;
        count(&mut faults.write)
    }

    fn read(&self, buffer: Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.device.read(buffer, offset, bytes)
    }

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        self.device.pipeline(key)
    }

    /// A run that fails has done its work before: what is in memory then is of no use.
    fn run_chain(&mut self, plan: &Plan, first: u32, n: u32) -> Result<(), DeviceError> {
        self.device.run_chain(plan, first, n)?;
        count(&mut self.hand.faults().run)
    }
}
