//! Buffers of a device, and the host memory that one can share.

use std::ops::Range;
use std::sync::Arc;

use crate::bytes::AlignedBytes;

/// A buffer of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// Its place among the device's buffers.
    pub id: u32,
    /// How often the place was used before, so that the handle of a released buffer is not valid again.
    pub generation: u32,
    /// Size in bytes.
    pub len: usize,
    /// Whether kernels may write to it; mapped weights are read-only.
    pub writable: bool,
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The buffer.
    pub buffer: Buffer,
    /// Byte offset.
    pub offset: usize,
}

impl From<Buffer> for Slice {
    fn from(buffer: Buffer) -> Slice {
        Slice { buffer, offset: 0 }
    }
}

/// Memory that outlives the device's use of it and is never written: a mapped weight file.
pub trait SharedMemory: AsRef<[u8]> + Send + Sync {
    /// Says that these bytes will hardly be read again, because the device has made its own copy: their
    /// memory may be released, if they can be read again from elsewhere.
    fn forget(&self, range: Range<usize>) {
        let _ = range;
    }

    /// Bytes of the longest part that is ever bound, the largest tensor; `None` if it is not known.
    fn longest_part(&self) -> Option<usize> {
        None
    }
}

impl SharedMemory for Vec<u8> {}
impl SharedMemory for AlignedBytes {}

/// Shared memory, held as long as a device uses it.
pub type SharedBytes = Arc<dyn SharedMemory>;
