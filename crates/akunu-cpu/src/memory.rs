//! The memory of buffers: pages of the process's own, or a mapped file.

use akunu_program::{Buffer, DeviceError, HostBuffers, HostMemory, SharedBytes};
use memmap2::MmapMut;

use crate::place::Place;

/// Zeroed pages. They begin at a page, so that every element type is aligned, and none is taken from
/// the system before it is written to.
pub(crate) struct Pages {
    /// Gives the pages back; all accesses go through `first`.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only held"))]
    map: MmapMut,
    first: *mut u8,
    len: usize,
}

// SAFETY: the pages belong to this value alone; the pointer stands for them as a box would.
unsafe impl Send for Pages {}
// SAFETY: `&Pages` gives out bytes for reading, and a raw pointer whose users take care of themselves.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` zero bytes; `None` if the system has not as many.
    pub fn zeroed(len: usize) -> Option<Pages> {
        let mut map = MmapMut::map_anon(len.max(1)).ok()?;
        let first = map.as_mut_ptr();
        Some(Pages { map, first, len })
    }

    /// The same in large pages, where the system has them: fewer look-ups for what is read in a row. The system is asked before
    /// anything is written. Pages that are filled already become large ones in its own time, which is minutes.
    pub fn large(len: usize) -> Option<Pages> {
        let pages = Pages::zeroed(len)?;
        #[cfg(target_os = "linux")]
        if pages.map.advise(memmap2::Advice::HugePage).is_err() {
            tracing::debug!(len, "no large pages");
        }
        Some(pages)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the pages are mapped as long as `self` lives, and writers hold `&mut self` or are
        // kernels, which run while the device is borrowed mutably.
        unsafe { std::slice::from_raw_parts(self.first, self.len) }
    }

    /// The first byte, for threads that write parts of the pages.
    pub fn pointer(&self) -> *mut u8 {
        self.first
    }

    /// `len` bytes from `at` on, to be written.
    ///
    /// # Safety
    /// `own`: nothing else reads or writes them as long as the slice lives.
    #[expect(clippy::mut_from_ref, reason = "the caller keeps the parts apart")]
    pub unsafe fn part(&self, at: usize, len: usize) -> &mut [u8] {
        assert!(at.checked_add(len).is_some_and(|end| end <= self.len));
        // SAFETY: within the pages; nobody else has them, passes on `own`.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(at), len) }
    }

    /// The bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len) }
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl AsMut<[u8]> for Pages {
    fn as_mut(&mut self) -> &mut [u8] {
        self.bytes_mut()
    }
}

/// The buffers of the device.
#[derive(Default)]
pub(crate) struct Buffers(HostBuffers<Pages>);

/// Shared memory is used as it is if it begins at a multiple of this.
const SHARED_ALIGNMENT: usize = 16;

impl Buffers {
    /// A zeroed buffer.
    pub fn allocate(&mut self, len: usize, label: &str) -> Result<Buffer, DeviceError> {
        let pages = Pages::zeroed(len).ok_or_else(|| no_memory(len, label))?;
        Ok(self.0.add(pages))
    }

    /// A zeroed buffer in large pages, where the system has them.
    pub fn allocate_filled(&mut self, len: usize, label: &str) -> Result<Buffer, DeviceError> {
        let pages = Pages::large(len).ok_or_else(|| no_memory(len, label))?;
        Ok(self.0.add(pages))
    }

    /// A read-only buffer over existing memory; memory that is not aligned is copied.
    pub fn share(&mut self, bytes: SharedBytes, label: &str) -> Result<Buffer, DeviceError> {
        let whole: &[u8] = (*bytes).as_ref();
        if whole.as_ptr().addr().is_multiple_of(SHARED_ALIGNMENT) {
            return Ok(self.0.add_read_only(HostMemory::Shared(bytes)));
        }
        let len = whole.len();
        let mut pages = Pages::zeroed(len).ok_or_else(|| no_memory(len, label))?;
        pages.bytes_mut().copy_from_slice(whole);
        Ok(self.0.add_read_only(HostMemory::Owned(pages)))
    }

    /// Frees a buffer; its number stays taken and stands for nothing.
    pub fn release(&mut self, buffer: Buffer) {
        self.0.release(buffer);
    }

    /// Refuses a buffer that is not, or no longer, one of ours.
    pub fn check(&self, buffer: Buffer) -> Result<(), DeviceError> {
        self.0.bytes(buffer).map(|_| ())
    }

    /// All of a buffer from an offset on; nothing, if it is not one of ours.
    pub fn place(&self, buffer: Buffer, offset: usize) -> Place<'_> {
        let (first, len) = match self.0.memory(buffer) {
            Some(HostMemory::Owned(pages)) => (pages.first, pages.len),
            Some(HostMemory::Shared(bytes)) => {
                let bytes: &[u8] = (**bytes).as_ref();
                (bytes.as_ptr().cast_mut(), bytes.len())
            }
            None => (std::ptr::dangling_mut(), 0),
        };
        let offset = offset.min(len);
        Place::new(first.wrapping_add(offset), len - offset)
    }

    /// Says that `len` bytes of a shared buffer will hardly be read again.
    pub fn forget(&self, buffer: Buffer, offset: usize, len: usize) {
        if let Some(HostMemory::Shared(bytes)) = self.0.memory(buffer) {
            bytes.forget(offset..offset + len);
        }
    }

    /// Copies host bytes into a buffer.
    pub fn write(&mut self, buffer: Buffer, at: usize, from: &[u8]) -> Result<(), DeviceError> {
        self.0.write(buffer, at, from)
    }

    /// Copies bytes of a buffer to the host.
    pub fn read(&self, buffer: Buffer, at: usize, into: &mut [u8]) -> Result<(), DeviceError> {
        self.0.read(buffer, at, into)
    }
}

/// The error of memory that the system does not have.
pub fn no_memory(bytes: usize, label: &str) -> DeviceError {
    DeviceError::Memory {
        bytes,
        label: label.into(),
    }
}
