//! Memory that stays wired between submissions, where the system can do it.
//!
//! Without a residency set the system makes every buffer of a submission resident anew, and may take
//! the weights of an idle model away. macOS 15 has sets; before it, nothing here does anything.

use std::sync::{Mutex, PoisonError};

use objc2::available;
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::{
    MTLAllocation, MTLBuffer, MTLCommandQueue, MTLDevice, MTLResidencySet,
    MTLResidencySetDescriptor,
};

use super::system::Gpu;

/// The set of all buffers of a device.
pub(super) struct Residency(Mutex<State>);

struct State {
    set: Retained<ProtocolObject<dyn MTLResidencySet>>,
    /// Whether it changed since the last commit.
    is_changed: bool,
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
        let is_changed = false;
        Some(Residency(Mutex::new(State { set, is_changed })))
    }

    /// Adds a buffer.
    pub(super) fn add(&self, buffer: &ProtocolObject<dyn MTLBuffer>) {
        self.change(|set| set.addAllocation(as_allocation(buffer)));
    }

    /// Removes a buffer.
    pub(super) fn remove(&self, buffer: &ProtocolObject<dyn MTLBuffer>) {
        self.change(|set| set.removeAllocation(as_allocation(buffer)));
    }

    /// Makes changes count, before a submission.
    pub(super) fn commit(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

fn as_allocation(buffer: &ProtocolObject<dyn MTLBuffer>) -> &ProtocolObject<dyn MTLAllocation> {
    ProtocolObject::from_ref(buffer)
}
