//! Buffers that detect reads and writes outside of them.
//!
//! ```text
//! | no access | 0xff … | the bytes, aligned as asked | 0xff, under 16 bytes | no access |
//! ```
//!
//! The end of the buffer lies at the end of a page: an access 16 bytes or more behind it traps at once
//! and names the thread; nearer ones, and those before the beginning, change the filling, which is
//! checked after a launch. Reads of the filling give NaN in every float format.
//!
//! A wrong row is megabytes away, where by chance some other memory of the program may lie. So the parts without access reach
//! as far as an index of 32 bits; they are addresses only, no memory.

use std::ptr::NonNull;

/// Every buffer begins at a multiple of this, and its neighbours begin behind one.
const ALIGN: usize = 16;
/// Filling in front of a buffer, at least.
const LEAD: usize = 64;
const FILL: u8 = 0xff;
/// Addresses without access on each side; a multiple of every system's pages.
const GUARD: usize = 4 << 30;

/// Memory that kernels read and write.
#[derive(Debug)]
pub struct SimBuffer {
    map: NonNull<u8>,
    map_len: usize,
    start: usize,
    len: usize,
}

// SAFETY: the mapping is owned by this value alone. It is not `Sync`: a launch writes through `&self`.
unsafe impl Send for SimBuffer {}

impl SimBuffer {
    /// A buffer of `len` zero bytes.
    ///
    /// # Errors
    /// When the system has no memory left.
    pub fn zeroed(len: usize) -> std::io::Result<SimBuffer> {
        // SAFETY: a plain system call without pointers.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let too_large = || std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let padded = len.checked_next_multiple_of(ALIGN).ok_or_else(too_large)?;
        let inner = padded
            .checked_add(LEAD)
            .and_then(|sum| sum.checked_next_multiple_of(page))
            .ok_or_else(too_large)?;
        let map_len = inner.checked_add(2 * GUARD).ok_or_else(too_large)?;
        // SAFETY: a fresh anonymous mapping; the result is checked.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                map_len,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let map = NonNull::new(map.cast::<u8>()).ok_or_else(too_large)?;
        let mut buffer = SimBuffer {
            map,
            map_len,
            start: GUARD + inner - padded,
            len,
        };
        buffer.protect(true)?;
        let (start, end) = (buffer.start, buffer.start + len);
        buffer.inner_mut()[..start - GUARD].fill(FILL);
        buffer.inner_mut()[end - GUARD..].fill(FILL);
        Ok(buffer)
    }

    /// A buffer with a copy of `bytes`.
    ///
    /// # Errors
    /// When the system has no memory left.
    pub fn from_bytes(bytes: &[u8]) -> std::io::Result<SimBuffer> {
        let mut buffer = SimBuffer::zeroed(bytes.len())?;
        buffer.bytes_mut().copy_from_slice(bytes);
        Ok(buffer)
    }

    /// The contents.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the range is mapped and initialised; no launch runs while `&self` is borrowed here,
        // because a launch happens on the thread that holds the buffer and returns before.
        unsafe { std::slice::from_raw_parts(self.address(), self.len) }
    }

    /// The contents, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.len) }
    }

    /// Bytes it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first byte's address.
    pub(crate) fn address(&self) -> *mut u8 {
        // SAFETY: `start` lies inside the mapping.
        unsafe { self.map.as_ptr().add(self.start) }
    }

    /// From which address to which its contents lie.
    pub(crate) fn addresses(&self) -> (usize, usize) {
        let start = self.address() as usize;
        (start, start + self.len)
    }

    /// Allows or forbids writing.
    pub(crate) fn protect(&self, writable: bool) -> std::io::Result<()> {
        let access = if writable {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        // SAFETY: whole pages of our own mapping.
        let result = unsafe {
            libc::mprotect(
                self.map.as_ptr().add(GUARD).cast(),
                self.map_len - 2 * GUARD,
                access,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error())
        }
    }

    /// How far from the contents the nearest changed byte of the filling lies: negative before the
    /// beginning, 0 is the first byte behind the end.
    pub(crate) fn broken_filling(&self) -> Option<isize> {
        let inner = self.inner();
        let (start, end) = (self.start - GUARD, self.start + self.len - GUARD);
        // A page in front is enough: beyond it nothing near the buffer wrote.
        let before = inner[..start].iter().rposition(|&byte| byte != FILL);
        let behind = inner[end..].iter().position(|&byte| byte != FILL);
        before
            .map(|at| at as isize - start as isize)
            .or(behind.map(|at| at as isize))
    }

    /// Where `address` lies seen from the contents, when it is within this mapping.
    pub(crate) fn locate(&self, address: usize) -> Option<isize> {
        let base = self.map.as_ptr() as usize;
        (base..base + self.map_len)
            .contains(&address)
            .then(|| address as isize - self.address() as isize)
    }

    fn inner(&self) -> &[u8] {
        // SAFETY: the pages between the two guards are readable and initialised.
        unsafe {
            std::slice::from_raw_parts(self.map.as_ptr().add(GUARD), self.map_len - 2 * GUARD)
        }
    }

    fn inner_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `inner`, and writable: `protect(true)` is undone only during a launch.
        unsafe {
            std::slice::from_raw_parts_mut(self.map.as_ptr().add(GUARD), self.map_len - 2 * GUARD)
        }
    }
}

impl Drop for SimBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing borrows from it any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.map_len) };
    }
}
