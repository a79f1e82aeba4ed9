//! The calls of a compute encoder.

use std::ptr::NonNull;

use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLBarrierScope, MTLComputeCommandEncoder, MTLSize};

use super::buffer::MetalBuffer;
use super::compiler::MetalPipeline;
use crate::gpu::Encoder;

/// An encoder that has not been ended; the backend ends it.
pub struct MetalEncoder<'a>(pub(super) &'a ProtocolObject<dyn MTLComputeCommandEncoder>);

impl Encoder for MetalEncoder<'_> {
    type Buffer = MetalBuffer;
    type Pipeline = MetalPipeline;

    fn set_pipeline(&mut self, pipeline: &MetalPipeline) {
        self.0.setComputePipelineState(&pipeline.0);
    }

    fn set_buffer(&mut self, index: u8, buffer: &MetalBuffer, offset: usize) {
        // SAFETY: the plan was checked: the kernel touches nothing outside of the buffer from this
        // offset on, and the device keeps the buffer until the work has ended. Indices are below 31,
        // as the sources declare them.
        unsafe {
            self.0
                .setBuffer_offset_atIndex(Some(buffer.raw()), offset, index.into());
        }
    }

    fn set_bytes(&mut self, index: u8, bytes: &[u8]) {
        // SAFETY: the bytes are copied before the call returns, and are as many as the slice has.
        unsafe {
            self.0
                .setBytes_length_atIndex(NonNull::from(bytes).cast(), bytes.len(), index.into());
        }
    }

    fn set_threadgroup_memory(&mut self, bytes: u32) {
        // SAFETY: index 0 exists; the length is a multiple of 16, and `encode` has compared it with
        // what the pipeline leaves.
        unsafe {
            self.0.setThreadgroupMemoryLength_atIndex(bytes as usize, 0);
        }
    }

    fn barrier(&mut self) {
        self.0.memoryBarrierWithScope(MTLBarrierScope::Buffers);
    }

    fn dispatch(&mut self, grid: [u32; 3], threads: [u32; 3]) {
        self.0
            .dispatchThreadgroups_threadsPerThreadgroup(size(grid), size(threads));
    }
}

fn size([width, height, depth]: [u32; 3]) -> MTLSize {
    MTLSize {
        width: width as usize,
        height: height as usize,
        depth: depth as usize,
    }
}
