//! A device that fails when a test says so.

use std::sync::{Arc, Mutex, MutexGuard};

use akunu_kernels::twin_device::TwinDevice;
use akunu_program::{Checked, Device, DeviceError, PlanId};

use super::support::watched::{Hooks, Watched};

/// What the test decides while the model has the device.
#[derive(Clone, Default)]
pub struct Hand(Arc<Mutex<Faults>>);

#[derive(Default)]
struct Faults {
    /// Runs that go well before one fails.
    run: Option<usize>,
    /// The same for writes of the host.
    write: Option<usize>,
    /// The same for what is waited for.
    wait: Option<usize>,
    runs_ahead: bool,
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

    /// From now on submissions return before they have ended, and what is waited for after the next `n` has failed.
    pub fn run_ahead_and_fail_after(&self, n: usize) {
        let mut faults = self.faults();
        faults.runs_ahead = true;
        faults.wait = Some(n);
    }

    /// Calls `act` at the next write.
    pub fn on_next_write(&self, act: impl FnOnce() + Send + 'static) {
        self.faults().on_write = Some(Box::new(act));
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.0.lock().expect("no test has panicked with it")
    }
}

/// Twins that fail once in a while.
pub fn flaky() -> (Box<dyn Device>, Hand) {
    let hand = Hand::default();
    let device = Watched::new(TwinDevice::new(), hand.clone());
    (Box::new(device), hand)
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

impl Hooks for Hand {
    fn runs_ahead(&self) -> Option<bool> {
        Some(self.faults().runs_ahead)
    }

    fn waited(&mut self) -> Result<(), DeviceError> {
        count(&mut self.faults().wait)
    }

    fn written(&mut self) -> Result<(), DeviceError> {
        let mut faults = self.faults();
        if let Some(act) = faults.on_write.take() {
            act();
        }
        count(&mut faults.write)
    }

    /// A run that fails has done its work before: what is in memory then is of no use.
    fn ran(&mut self, _: PlanId, _: Option<&Checked>) -> Result<(), DeviceError> {
        count(&mut self.faults().run)
    }
}
