//! Launches on a stream.

use std::ffi::c_void;
use std::ptr;

use akunu_kernels::gpu::Encoder;
use akunu_kernels::plan::Params;
use cudarc::driver::sys;

use crate::compiler::CudaPipeline;
use crate::context::Stream;
use crate::driver::{Fault, call};
use crate::memory::CudaBuffer;

/// Most bindings of a kernel.
const MAX_BINDINGS: usize = 32;
/// Bytes of the largest block of arguments: pointers, params, an offset.
const MAX_ARGUMENTS: usize = 8 * MAX_BINDINGS + Params::CAPACITY + 4;

/// Launches kernels one after another. The stream keeps their order, so that barriers need no call.
pub struct CudaEncoder<'a> {
    stream: &'a Stream,
    overlaps: bool,
    function: sys::CUfunction,
    /// The indices of the function's buffers, in the order of its arguments.
    buffers: Vec<u8>,
    has_offset: bool,
    addresses: [u64; MAX_BINDINGS],
    params: [u8; Params::CAPACITY],
    threadgroup_bytes: u32,
    n_launches: u64,
    fault: Option<Fault>,
}

impl<'a> CudaEncoder<'a> {
    pub(crate) fn new(stream: &'a Stream, overlaps: bool) -> CudaEncoder<'a> {
        CudaEncoder {
            stream,
            overlaps,
            function: ptr::null_mut(),
            buffers: Vec::with_capacity(MAX_BINDINGS),
            has_offset: false,
            addresses: [0; MAX_BINDINGS],
            params: [0; Params::CAPACITY],
            threadgroup_bytes: 0,
            n_launches: 0,
            fault: None,
        }
    }

    /// How many kernels were launched, or the first fault.
    pub(crate) fn end(self) -> Result<u64, Fault> {
        self.fault.map_or(Ok(self.n_launches), Err)
    }

    /// The arguments of the function, and how many bytes they have.
    fn arguments(&self) -> ([u8; MAX_ARGUMENTS], usize) {
        let (mut block, mut len) = ([0; MAX_ARGUMENTS], 0);
        let mut push = |bytes: &[u8]| {
            block[len..len + bytes.len()].copy_from_slice(bytes);
            len += bytes.len();
        };
        for &index in &self.buffers {
            push(&self.addresses[usize::from(index)].to_ne_bytes());
        }
        push(&self.params);
        if self.has_offset {
            push(&0u32.to_ne_bytes());
        }
        (block, len)
    }

    fn launch(&self, grid: [u32; 3], threads: [u32; 3]) -> Result<(), Fault> {
        /// `CU_LAUNCH_PARAM_BUFFER_POINTER`, `CU_LAUNCH_PARAM_BUFFER_SIZE` and `…_END`.
        const POINTER: *mut c_void = ptr::without_provenance_mut(1);
        const SIZE: *mut c_void = ptr::without_provenance_mut(2);
        const END: *mut c_void = ptr::null_mut();
        let (mut block, mut len) = self.arguments();
        let block = block.as_mut_ptr().cast();
        let mut extra = [POINTER, block, SIZE, (&raw mut len).cast(), END];
        // SAFETY: all zero is what an attribute of this kind is before its value is set.
        let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
        attribute.id =
            sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
        let config = sys::CUlaunchConfig {
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: threads[0],
            blockDimY: threads[1],
            blockDimZ: threads[2],
            sharedMemBytes: self.threadgroup_bytes,
            hStream: self.stream.raw,
            attrs: &raw mut attribute,
            // The first kernel begins after everything before it: the others may read what earlier steps have left before they
            // wait for their inputs.
            numAttrs: (self.overlaps && self.n_launches > 0).into(),
        };
        // SAFETY: the block has what the entry point takes, which the compiler has compared with the kernel's row; the
        // driver copies it before it returns. The device keeps the buffers alive and has checked their sizes.
        unsafe {
            call!(cuLaunchKernelEx(
                &raw const config,
                self.function,
                ptr::null_mut(),
                extra.as_mut_ptr(),
            ))
        }
    }
}

impl Encoder for CudaEncoder<'_> {
    type Buffer = CudaBuffer;
    type Pipeline = CudaPipeline;

    fn set_pipeline(&mut self, pipeline: &CudaPipeline) {
        self.function = pipeline.function;
        self.buffers.clone_from(&pipeline.buffers);
        self.has_offset = pipeline.has_offset;
        self.threadgroup_bytes = 0;
    }

    fn set_buffer(&mut self, index: u8, buffer: &CudaBuffer, offset: usize) {
        self.addresses[usize::from(index)] = buffer.address() + offset as u64;
    }

    fn set_bytes(&mut self, _: u8, bytes: &[u8]) {
        self.params[..bytes.len()].copy_from_slice(bytes);
    }

    fn set_threadgroup_memory(&mut self, bytes: u32) {
        self.threadgroup_bytes = bytes;
    }

    fn barrier(&mut self) {}

    fn dispatch(&mut self, grid: [u32; 3], threads: [u32; 3]) {
        if self.fault.is_none() {
            self.fault = self.launch(grid, threads).err();
            self.n_launches += 1;
        }
    }
}
