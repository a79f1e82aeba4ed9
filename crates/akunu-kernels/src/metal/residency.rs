//! Memory that stays wired between submissions, where the system can do it.
//!
//! Without a residency set the system makes every buffer of a submission resident anew, and may take
//! the weights of an idle model away. macOS 15 has sets; before it, nothing here does anything.
//!
//! A set counts from its commit on: when a program is loaded, when a buffer goes, and before a submission if something
//! has changed since. The system gives up a set that no work has used for a while, so that a thread asks for it again twice
//! a second for some minutes after the last work; what is idle for longer may go. With the device the set ends.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use objc2::available;
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::{
    MTLAllocation, MTLBuffer, MTLCommandQueue, MTLDevice, MTLResidencySet,
    MTLResidencySetDescriptor,
};

use super::system::Gpu;

/// How often residency is asked for again.
const BEAT: Duration = Duration::from_millis(500);
/// For how long after the last submission.
const KEPT: Duration = Duration::from_secs(180);

/// The set of all buffers of a device.
pub(super) struct Residency(Mutex<State>);

struct State {
    set: Retained<ProtocolObject<dyn MTLResidencySet>>,
    /// Whether it changed since the last commit.
    is_changed: bool,
    /// When it was committed or used last.
    used: Instant,
}

// SAFETY: a residency set belongs to no thread; it is only used under the mutex, one call at a time.
unsafe impl Send for State {}

impl Residency {
    /// A set that the queue makes resident; `None` where there are no sets.
    pub(super) fn new(gpu: &Gpu, queue: &ProtocolObject<dyn MTLCommandQueue>) -> Option<Residency> {
        if !available!(macos = 15.0) {
            return None;
        }
        let made = gpu.newResidencySetWithDescriptor_error(&MTLResidencySetDescriptor::new());
        let set = made
            .inspect_err(|error| {
                tracing::warn!(error = %error.localizedDescription(), "no residency set");
            })
            .ok()?;
        queue.addResidencySet(&set);
        Some(Residency(Mutex::new(State {
            set,
            is_changed: false,
            used: Instant::now(),
        })))
    }

    /// Starts the thread that keeps it alive, which ends when the last other owner is gone.
    pub(super) fn keep_alive(residency: &Arc<Residency>) {
        let weak = Arc::downgrade(residency);
        let spawned = std::thread::Builder::new()
            .name("residency".into())
            .spawn(move || beat(&weak));
        if let Err(error) = spawned {
            tracing::warn!(%error, "an idle model may lose its place in memory");
        }
    }

    /// Adds a buffer.
    pub(super) fn add(&self, buffer: &ProtocolObject<dyn MTLBuffer>) {
        self.change(|set| set.addAllocation(as_allocation(buffer)));
    }

    /// Removes a buffer.
    pub(super) fn remove(&self, buffer: &ProtocolObject<dyn MTLBuffer>) {
        self.change(|set| set.removeAllocation(as_allocation(buffer)));
    }

    /// Makes changes count. Called when a program was loaded, when a buffer goes, and before each submission.
    pub(super) fn commit(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.used = Instant::now();
        if state.is_changed {
            state.set.commit();
            state.set.requestResidency();
            state.is_changed = false;
        }
    }

    fn change(&self, change: impl FnOnce(&ProtocolObject<dyn MTLResidencySet>)) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(&state.set);
        state.is_changed = true;
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.set.endResidency();
    }
}

/// Requests residency repeatedly, as long as the set has an owner and was used recently.
fn beat(residency: &Weak<Residency>) {
    loop {
        std::thread::sleep(BEAT);
        let Some(residency) = residency.upgrade() else {
            return;
        };
        let state = residency.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.used.elapsed() < KEPT {
            state.set.requestResidency();
        }
    }
}

fn as_allocation(buffer: &ProtocolObject<dyn MTLBuffer>) -> &ProtocolObject<dyn MTLAllocation> {
    ProtocolObject::from_ref(buffer)
}
