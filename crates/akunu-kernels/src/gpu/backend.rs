//! What remains to be done by a GPU's own interface.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::device::{DeviceError, SharedBytes};

use super::encode::Encoder;
use super::pipelines::Compiler;

/// What the memory of a GPU can take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the largest buffer.
    pub max_buffer: usize,
    /// Bytes of all buffers together.
    pub budget: u64,
    /// Buffers over existing memory begin at a multiple of this.
    pub page: usize,
}

/// A GPU. The device that uses it has checked every range, and keeps every buffer and pipeline alive
/// until the submissions that use it were waited for.
pub trait Backend: Send {
    /// A buffer. Dropping it gives the memory back.
    type Buffer: Send;
    /// A compiled kernel.
    type Pipeline: Send + 'static;
    /// Makes pipelines.
    type Compiler: Compiler<Pipeline = Self::Pipeline>;
    /// Takes the calls of one submission.
    type Encoder<'a>: Encoder<Buffer = Self::Buffer, Pipeline = Self::Pipeline>;
    /// Work that has been handed to the GPU.
    type Submission: Send;

    /// The name that `--device` takes.
    fn name(&self) -> &'static str;

    /// What its memory can take.
    fn limits(&self) -> Limits;

    /// The compiler, which several threads call at once.
    fn compiler(&self) -> Arc<Self::Compiler>;

    /// A zeroed buffer of at least one byte; `None` when there is no memory.
    fn allocate(&mut self, bytes: usize, label: &str) -> Option<Self::Buffer>;

    /// A buffer over a part of existing memory, which it keeps alive. The part begins at a multiple of
    /// the page size from the first byte. `None` when there is no memory.
    fn wrap(
        &mut self,
        bytes: &SharedBytes,
        part: Range<usize>,
        label: &str,
    ) -> Option<Self::Buffer>;

    /// Copies host bytes into a buffer.
    fn write(&mut self, buffer: &Self::Buffer, offset: usize, bytes: &[u8]);

    /// Copies bytes of a buffer to the host.
    fn read(&self, buffer: &Self::Buffer, offset: usize, bytes: &mut [u8]);

    /// Lets `encode` fill one encoder, ends it and hands the work to the GPU. When `encode` fails,
    /// nothing is handed over.
    fn submit(
        &mut self,
        encode: impl FnOnce(&mut Self::Encoder<'_>) -> Result<(), DeviceError>,
    ) -> Result<Self::Submission, DeviceError>;

    /// Waits until the work has ended; returns how long the GPU took, or why it failed.
    fn wait(&mut self, submission: Self::Submission) -> Result<Duration, String>;
}
