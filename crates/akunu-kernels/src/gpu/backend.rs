//! What remains to be done by a GPU's own interface.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use akunu_program::{DeviceError, SharedBytes};

use super::encode::Encoder;
use super::pipelines::Compiler;
use crate::chip::ChipConfig;
use crate::lower::{GpuRules, Rules};

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
    /// Launches that were encoded once and can be run again and again, where the GPU has such a thing: a CUDA graph.
    type Round: Send;

    /// The name that `--device` takes.
    fn name(&self) -> &'static str;

    /// How it lowers operations to kernels.
    fn rules(&self, chip: &ChipConfig) -> Box<dyn Rules> {
        Box::new(GpuRules::new(chip))
    }

    /// What its memory can take.
    fn limits(&self) -> Limits;

    /// Bytes that the system would still give now: other devices of this process, or other processes, may have taken
    /// some since [`Backend::limits`].
    fn headroom(&self) -> u64 {
        u64::MAX
    }

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

    /// Whether [`Backend::write`] takes its turn behind all that was submitted before. Where it does not, the device waits for the
    /// GPU first.
    fn writes_in_turn(&self) -> bool {
        false
    }

    /// Copies host bytes into a buffer; says why the GPU failed.
    fn write(&mut self, buffer: &Self::Buffer, offset: usize, bytes: &[u8]) -> Result<(), String>;

    /// Copies bytes of a buffer to the host; says why the GPU failed.
    fn read(&self, buffer: &Self::Buffer, offset: usize, bytes: &mut [u8]) -> Result<(), String>;

    /// A program was loaded: its buffers and pipelines will be used again and again.
    fn settle(&mut self) {}

    /// Lets `encode` fill one encoder, ends it and hands the work to the GPU. When `encode` fails,
    /// nothing is handed over.
    fn submit(
        &mut self,
        encode: impl FnOnce(&mut Self::Encoder<'_>) -> Result<(), DeviceError>,
    ) -> Result<Self::Submission, DeviceError>;

    /// Keeps what `encode` says as a round; `None` from a backend that encodes each submission anew. The device keeps
    /// the buffers and pipelines of a round alive as long as the round.
    fn keep(
        &mut self,
        encode: impl FnOnce(&mut Self::Encoder<'_>) -> Result<(), DeviceError>,
    ) -> Result<Option<Self::Round>, DeviceError>;

    /// Hands a kept round to the GPU, as often as it is to run. Each begins when all before it has ended.
    fn repeat(&mut self, round: &Self::Round, times: u32) -> Result<Self::Submission, DeviceError>;

    /// Waits until the work has ended; returns how long the GPU took, or why it failed.
    fn wait(&mut self, submission: Self::Submission) -> Result<Duration, String>;
}
