//! The residency set of a device, from macOS 15 on; [`crate::gpu::Residency`] decides when it changes.
//!
//! Without a residency set the system makes every buffer of a submission resident anew, and may take
//! the weights of an idle model away. Before macOS 15, nothing here does anything.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use objc2::Message;
use objc2::available;
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSRange;
use objc2_metal::{
    MTLAllocation, MTLBlitCommandEncoder, MTLBuffer, MTLCommandBuffer, MTLCommandEncoder,
    MTLCommandQueue, MTLDevice, MTLResidencySet, MTLResidencySetDescriptor, MTLResourceOptions,
};

use super::system::Gpu;
use crate::gpu::{self, BEAT, WiredSet};

type RawQueue = Retained<ProtocolObject<dyn MTLCommandQueue>>;

/// The set of all buffers of a device.
pub(super) struct Residency(Mutex<gpu::Residency<QueueSet>>);

/// A set and the queue that has it.
pub(super) struct QueueSet {
    set: Retained<ProtocolObject<dyn MTLResidencySet>>,
    queue: RawQueue,
    /// Buffers that were removed and not committed: the set may still use them.
    leaving: Vec<Retained<RawBuffer>>,
}

// SAFETY: residency sets, queues and buffers belong to no thread; this set is only used under the mutex, one call at a time.
unsafe impl Send for QueueSet {}

impl Residency {
    /// A set that the queue makes resident; `None` where there are no sets.
    pub(super) fn new(gpu: &Gpu, queue: &RawQueue) -> Option<Residency> {
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
        let queue = queue.clone();
        Some(Residency(Mutex::new(gpu::Residency::new(QueueSet {
            set,
            queue,
            leaving: Vec::new(),
        }))))
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

    pub(super) fn lock(&self) -> MutexGuard<'_, gpu::Residency<QueueSet>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer in the set.
type RawBuffer = ProtocolObject<dyn MTLBuffer>;

fn beat(residency: &Weak<Residency>) {
    loop {
        std::thread::sleep(BEAT);
        let Some(residency) = residency.upgrade() else {
            return;
        };
        autoreleasepool(|_| residency.lock().beat());
    }
}

impl WiredSet for QueueSet {
    type Buffer = RawBuffer;

    fn add(&mut self, buffer: &RawBuffer) {
        self.set.addAllocation(as_allocation(buffer));
    }

    fn remove(&mut self, buffer: &RawBuffer) {
        self.set.removeAllocation(as_allocation(buffer));
        self.leaving.push(buffer.retain());
    }

    fn clear(&mut self) {
        self.set.removeAllAllocations();
    }

    fn commit(&mut self) {
        self.set.commit();
        self.leaving.clear();
    }

    fn request(&mut self) {
        self.set.requestResidency();
    }

    fn end(&mut self) {
        self.set.endResidency();
        self.queue.removeResidencySet(&self.set);
    }

    /// Fills a buffer of 16 bytes: a command buffer without commands may never reach the GPU.
    fn work(&mut self) {
        autoreleasepool(|_| {
            let options = MTLResourceOptions::StorageModeShared;
            let buffer = self.queue.device().newBufferWithLength_options(16, options);
            let (Some(buffer), Some(commands)) = (buffer, self.queue.commandBuffer()) else {
                return;
            };
            if let Some(encoder) = commands.blitCommandEncoder() {
                encoder.fillBuffer_range_value(&buffer, NSRange::new(0, 16), 0);
                encoder.endEncoding();
            }
            commands.commit();
            commands.waitUntilCompleted();
        });
    }
}

fn as_allocation(buffer: &RawBuffer) -> &ProtocolObject<dyn MTLAllocation> {
    ProtocolObject::from_ref(buffer)
}
