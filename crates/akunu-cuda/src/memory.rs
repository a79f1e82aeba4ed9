//! Memory of the GPU, and the way of weights into it.
//!
//! A mapped file is copied through two pinned blocks: while the GPU fetches one, the next part of the file is read into
//! the other.
//!
//! ```text
//! file ─▶ block 0 ─▶ GPU        block 1 is filled meanwhile
//! file ─▶ block 1 ─▶ GPU        block 0 is filled meanwhile
//! ```

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys;

use crate::context::{Context, Event, Stream};
use crate::driver::{Fault, call};

/// Bytes of a pinned block.
const BLOCK: usize = 16 << 20;

/// A buffer in the GPU's memory.
pub struct CudaBuffer {
    address: sys::CUdeviceptr,
    context: Arc<Context>,
}

impl CudaBuffer {
    /// A buffer that holds anything.
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<CudaBuffer, Fault> {
        let mut address = 0;
        context.enter()?;
        // SAFETY: the context is current, and the driver writes the address. The size is not 0: the device asks for one
        // byte at least.
        unsafe { call!(cuMemAlloc_v2(&raw mut address, bytes)) }?;
        Ok(CudaBuffer {
            address,
            context: Arc::clone(context),
        })
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for CudaBuffer {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: it came from the allocator, and the device drops it when no work uses it any more.
            unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

/// A pinned block, and when the GPU has fetched what it holds.
struct Block {
    bytes: *mut u8,
    fetched: Event,
    context: Arc<Context>,
}

// SAFETY: the memory belongs to the block alone.
unsafe impl Send for Block {}

impl Block {
    fn new(context: &Arc<Context>) -> Result<Block, Fault> {
        let mut bytes: *mut c_void = ptr::null_mut();
        let fetched = Event::new(context)?;
        // SAFETY: the context is current, and the driver writes the address.
        unsafe { call!(cuMemAllocHost_v2(&raw mut bytes, BLOCK)) }?;
        Ok(Block {
            bytes: bytes.cast(),
            fetched,
            context: Arc::clone(context),
        })
    }

    /// Fills the block when the GPU has fetched the last filling, and lets it fetch this one.
    fn send(&self, bytes: &[u8], to: u64, stream: &Stream) -> Result<(), Fault> {
        debug_assert!(bytes.len() <= BLOCK);
        self.fetched.synchronize()?;
        // SAFETY: the block has room for `bytes`, and the GPU does not read it now. The caller gives an address with
        // room for as many.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.bytes, bytes.len());
            let from = self.bytes.cast_const().cast();
            call!(cuMemcpyHtoDAsync_v2(to, from, bytes.len(), stream.raw))?;
        }
        self.fetched.record(stream)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.context.enter().is_ok() && self.fetched.synchronize().is_ok() {
            // SAFETY: the GPU has fetched everything.
            unsafe { sys::cuMemFreeHost(self.bytes.cast()) };
        }
    }
}

/// Copies `bytes` to the beginning of a buffer that has room for them, and waits for it. `read` is told what was read of
/// them, block by block.
pub(crate) fn upload(
    context: &Arc<Context>,
    stream: &Stream,
    buffer: &CudaBuffer,
    bytes: &[u8],
    read: impl Fn(Range<usize>),
) -> Result<(), Fault> {
    let blocks = [Block::new(context)?, Block::new(context)?];
    let places = (0..).step_by(BLOCK);
    for ((part, at), block) in bytes.chunks(BLOCK).zip(places).zip(blocks.iter().cycle()) {
        block.send(part, buffer.address() + at as u64, stream)?;
        read(at..at + part.len());
    }
    stream.synchronize()
}
