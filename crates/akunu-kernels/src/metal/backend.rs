//! Buffers, submissions, waiting.

use std::convert::Infallible;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use akunu_program::{DeviceError, SharedBytes};
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{
    MTLBuffer, MTLCommandBuffer, MTLCommandBufferDescriptor, MTLCommandBufferErrorOption,
    MTLCommandBufferStatus, MTLCommandEncoder, MTLCommandQueue, MTLDevice, MTLDispatchType,
    MTLResource, MTLResourceOptions,
};

use super::Order;
use super::buffer::MetalBuffer;
use super::compiler::MetalCompiler;
use super::encoder::MetalEncoder;
use super::residency::Residency;
use super::system::Gpu;
use crate::gpu::{Backend, Lean, Limits, wirable_bytes};

/// Pages of Apple's processors, in bytes.
const PAGE: usize = 16 * 1024;

/// One GPU and one queue.
pub struct Metal {
    gpu: Gpu,
    queue: Retained<ProtocolObject<dyn MTLCommandQueue>>,
    order: Order,
    residency: Option<Arc<Residency>>,
    compiler: Arc<MetalCompiler>,
}

/// A command buffer that was committed.
pub struct MetalSubmission(Retained<ProtocolObject<dyn MTLCommandBuffer>>);

// SAFETY: a command buffer belongs to no thread; this one is committed, and is only waited for.
unsafe impl Send for MetalSubmission {}

impl Metal {
    pub(super) fn new(gpu: Gpu, order: Order) -> Result<Metal, DeviceError> {
        let queue = gpu.newCommandQueue().ok_or(DeviceError::Unavailable {
            device: "metal",
            why: "the GPU gives no command queue".into(),
        })?;
        queue.setLabel(Some(&NSString::from_str("akunu")));
        let residency = Residency::new(&gpu, &queue).map(Arc::new);
        if let Some(residency) = &residency {
            Residency::keep_alive(residency);
        }
        Ok(Metal {
            compiler: Arc::new(MetalCompiler::new(gpu.clone())),
            gpu,
            queue,
            order,
            residency,
        })
    }

    fn adopt(
        &self,
        raw: Retained<ProtocolObject<dyn MTLBuffer>>,
        owner: Option<SharedBytes>,
        label: &str,
    ) -> MetalBuffer {
        raw.setLabel(Some(&NSString::from_str(label)));
        if let Some(residency) = &self.residency {
            residency.lock().add(&raw);
        }
        MetalBuffer {
            raw,
            residency: self.residency.clone(),
            owner,
        }
    }

    /// A command buffer that does not retain what it uses: the device does.
    fn command_buffer(&self) -> Option<Retained<ProtocolObject<dyn MTLCommandBuffer>>> {
        if cfg!(debug_assertions) {
            let descriptor = MTLCommandBufferDescriptor::new();
            descriptor.setRetainedReferences(false);
            descriptor.setErrorOptions(MTLCommandBufferErrorOption::EncoderExecutionStatus);
            return self.queue.commandBufferWithDescriptor(&descriptor);
        }
        self.queue.commandBufferWithUnretainedReferences()
    }
}

impl Backend for Metal {
    type Buffer = MetalBuffer;
    type Pipeline = super::MetalPipeline;
    type Compiler = MetalCompiler;
    type Encoder<'a> = Lean<MetalEncoder<'a>>;
    type Submission = MetalSubmission;
    type Round = Infallible;

    fn name(&self) -> &'static str {
        "metal"
    }

    fn limits(&self) -> Limits {
        Limits {
            // Whole pages: buffers over existing memory are rounded up to them.
            max_buffer: self.gpu.maxBufferLength() / PAGE * PAGE,
            budget: self.headroom(),
            page: PAGE,
        }
    }

    fn headroom(&self) -> u64 {
        if let Some(residency) = &self.residency {
            residency.lock().free_removed();
        }
        let allocated = self.gpu.currentAllocatedSize() as u64;
        wirable_bytes(self.gpu.recommendedMaxWorkingSetSize(), allocated)
    }

    fn compiler(&self) -> Arc<MetalCompiler> {
        Arc::clone(&self.compiler)
    }

    /// A new buffer is cleared by Metal: pages of a cache that no token reaches are never touched.
    fn allocate(&mut self, bytes: usize, label: &str) -> Option<MetalBuffer> {
        let options = MTLResourceOptions::StorageModeShared;
        let raw = self.gpu.newBufferWithLength_options(bytes, options)?;
        Some(self.adopt(raw, None, label))
    }

    /// Without a copy where the memory begins at a page, as a mapped file does.
    fn wrap(
        &mut self,
        bytes: &SharedBytes,
        part: Range<usize>,
        label: &str,
    ) -> Option<MetalBuffer> {
        let slice = (**bytes).as_ref().get(part)?;
        let start = NonNull::from(slice).cast::<u8>();
        if !start.addr().get().is_multiple_of(PAGE) {
            tracing::debug!(label, "memory that does not begin at a page is copied");
            let buffer = self.allocate(slice.len(), label)?;
            self.write(&buffer, 0, slice).ok()?;
            return Some(buffer);
        }
        // SAFETY: the memory begins at a page and is rounded up to whole pages: the last one is mapped
        // because its first bytes are ours. It stays alive with `owner`, which the buffer holds, and
        // nobody frees it: there is no deallocator. Kernels only read it: the plan check refuses a
        // plan that writes to it.
        let raw = unsafe {
            self.gpu
                .newBufferWithBytesNoCopy_length_options_deallocator(
                    start.cast(),
                    slice.len().next_multiple_of(PAGE),
                    MTLResourceOptions::StorageModeShared,
                    None,
                )
        };
        Some(self.adopt(raw?, Some(Arc::clone(bytes)), label))
    }

    fn write(&mut self, buffer: &MetalBuffer, offset: usize, bytes: &[u8]) -> Result<(), String> {
        let to = buffer.address(offset, bytes.len());
        // SAFETY: the range is inside the buffer; `bytes` is memory of the host, not of a buffer. The
        // device has waited for all work, so that the GPU does not look.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    fn read(&self, buffer: &MetalBuffer, offset: usize, bytes: &mut [u8]) -> Result<(), String> {
        let from = buffer.address(offset, bytes.len());
        // SAFETY: the range is inside the buffer and no Rust reference points there. The GPU may be
        // writing to bytes that nobody has waited for: any value is a valid byte.
        unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    /// The first token does not wait for the weights to be wired.
    fn settle(&mut self) {
        if let Some(residency) = &self.residency {
            residency.lock().use_now();
        }
    }

    fn submit(
        &mut self,
        encode: impl FnOnce(&mut Lean<MetalEncoder<'_>>) -> Result<(), DeviceError>,
    ) -> Result<MetalSubmission, DeviceError> {
        let no = |what: &str| DeviceError::Lost {
            why: format!("the queue gives no {what}"),
        };
        if let Some(residency) = &self.residency {
            residency.lock().use_now();
        }
        autoreleasepool(|_| {
            let commands = self.command_buffer().ok_or_else(|| no("command buffer"))?;
            let kind = match self.order {
                Order::Concurrent => MTLDispatchType::Concurrent,
                Order::Serial => MTLDispatchType::Serial,
            };
            let encoder = commands
                .computeCommandEncoderWithDispatchType(kind)
                .ok_or_else(|| no("encoder"))?;
            let encoded = encode(&mut Lean::new(MetalEncoder(&encoder)));
            // Even when encoding failed: an encoder that is dropped before its end is a crash.
            encoder.endEncoding();
            encoded?;
            commands.commit();
            Ok(MetalSubmission(commands))
        })
    }

    /// A command buffer runs once.
    fn keep(
        &mut self,
        _: impl FnOnce(&mut Lean<MetalEncoder<'_>>) -> Result<(), DeviceError>,
    ) -> Result<Option<Infallible>, DeviceError> {
        Ok(None)
    }

    fn repeat(&mut self, round: &Infallible, _: u32) -> Result<MetalSubmission, DeviceError> {
        match *round {}
    }

    fn wait(&mut self, submission: MetalSubmission) -> Result<Duration, String> {
        autoreleasepool(|_| {
            let commands = submission.0;
            commands.waitUntilCompleted();
            if commands.status() == MTLCommandBufferStatus::Completed {
                let seconds = commands.GPUEndTime() - commands.GPUStartTime();
                return Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default());
            }
            Err(match commands.error() {
                Some(error) => format!("{} (code {})", error.localizedDescription(), error.code()),
                None => "the command buffer ended without an error message".into(),
            })
        })
    }
}
