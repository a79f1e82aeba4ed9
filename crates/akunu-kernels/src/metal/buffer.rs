//! Memory that host and GPU share.

use std::ptr::NonNull;
use std::sync::Arc;

use akunu_program::SharedBytes;
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_metal::MTLBuffer;

use super::residency::Residency;

/// A buffer in memory that host and GPU share.
pub struct MetalBuffer {
    pub(super) raw: Retained<ProtocolObject<dyn MTLBuffer>>,
    pub(super) residency: Option<Arc<Residency>>,
    /// The memory below a buffer that was not allocated for it; freed after `raw`.
    pub(super) owner: Option<SharedBytes>,
}

// SAFETY: Metal's buffers belong to no thread, and their reference count is atomic.
unsafe impl Send for MetalBuffer {}

impl MetalBuffer {
    pub(super) fn raw(&self) -> &ProtocolObject<dyn MTLBuffer> {
        &self.raw
    }

    /// The address of a range that the device has checked.
    pub(super) fn address(&self, offset: usize, len: usize) -> *mut u8 {
        debug_assert!(offset + len <= self.raw.length());
        let start: NonNull<u8> = self.raw.contents().cast();
        // SAFETY: the device has compared the range with the buffer's length.
        unsafe { start.as_ptr().add(offset) }
    }
}

impl Drop for MetalBuffer {
    fn drop(&mut self) {
        if let Some(residency) = &self.residency {
            match self.owner {
                Some(_) => residency.lock().remove_now(&self.raw),
                None => residency.lock().remove(&self.raw),
            }
        }
    }
}
