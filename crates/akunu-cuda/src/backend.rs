//! Submissions, graphs, waiting.

use std::ops::Range;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use akunu_kernels::ChipConfig;
use akunu_kernels::gpu::{Backend, Limits};
use akunu_kernels::lower::{NvidiaRules, Rules};
use akunu_program::{DeviceError, SharedBytes};
use cudarc::driver::sys;

use crate::compiler::{CudaCompiler, CudaPipeline};
use crate::context::{Context, Event, Stream};
use crate::driver::{Fault, call};
use crate::encoder::CudaEncoder;
use crate::gpus::GpuInfo;
use crate::memory::{CudaBuffer, upload};
use crate::sources::PtxSources;
use crate::specialise::Target;
use crate::unavailable;

/// Memory that is left to the driver for code, graphs and its own lists.
const RESERVE: u64 = 256 << 20;
/// The first driver that lets the kernels of a graph overlap.
const OVERLAPPING_DRIVER: (u32, u32) = (12, 4);

/// What was handed to the driver so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Kernels launched one by one.
    pub launches: u64,
    /// How many graphs were captured.
    pub captures: u64,
    /// Graphs launched: one for each token of a chain.
    pub graph_launches: u64,
}

/// The backend of one NVIDIA GPU.
pub struct Cuda {
    context: Arc<Context>,
    /// Where kernels run.
    stream: Stream,
    /// Where results are fetched while kernels run.
    copies: Stream,
    /// When the last bytes of the host have arrived.
    written: Event,
    compiler: Arc<CudaCompiler>,
    target: Target,
    spare_events: Vec<Event>,
    counters: Counters,
}

/// Work that has been handed over: where it begins and ends in the stream.
pub struct CudaSubmission {
    begin: Event,
    end: Event,
}

/// A captured graph.
pub struct CudaRound {
    graph: sys::CUgraphExec,
    context: Arc<Context>,
}

// SAFETY: a graph belongs to no thread.
unsafe impl Send for CudaRound {}

impl Drop for CudaRound {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: it was instantiated, and the device drops it when it does not run any more.
            unsafe { sys::cuGraphExecDestroy(self.graph) };
        }
    }
}

impl Cuda {
    pub(crate) fn new(gpu: GpuInfo, sources: PtxSources) -> Result<Cuda, DeviceError> {
        let version = gpu.driver.split_once('.').map(|(major, minor)| {
            let number = |text: &str| text.parse::<u32>().unwrap_or(0);
            (number(major), number(minor))
        });
        let target = Target {
            capability: gpu.capability,
            overlaps: gpu.capability >= 90 && version >= Some(OVERLAPPING_DRIVER),
        };
        Cuda::start(gpu.ordinal, sources, target)
            .map_err(|fault| unavailable(format!("the {} cannot be used: {fault}", gpu.name)))
    }

    fn start(ordinal: u32, sources: PtxSources, target: Target) -> Result<Cuda, Fault> {
        let context = Context::new(ordinal)?;
        Ok(Cuda {
            stream: Stream::new(&context)?,
            copies: Stream::new(&context)?,
            written: Event::new(&context)?,
            compiler: Arc::new(CudaCompiler::new(Arc::clone(&context), sources, target)),
            target,
            spare_events: Vec::new(),
            counters: Counters::default(),
            context,
        })
    }

    /// What was handed to the driver so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn event(&mut self) -> Result<Event, Fault> {
        match self.spare_events.pop() {
            Some(event) => Ok(event),
            None => Event::new(&self.context),
        }
    }

    /// Hands over what `work` puts into the stream.
    fn enclose(
        &mut self,
        work: impl FnOnce(&mut Cuda) -> Result<(), DeviceError>,
    ) -> Result<CudaSubmission, DeviceError> {
        self.context.enter().map_err(lost)?;
        let begin = self.event().map_err(lost)?;
        begin.record(&self.stream).map_err(lost)?;
        work(self)?;
        let end = self.event().map_err(lost)?;
        end.record(&self.stream).map_err(lost)?;
        Ok(CudaSubmission { begin, end })
    }

    /// A buffer with zeros.
    fn zeros(&self, bytes: usize) -> Result<CudaBuffer, Fault> {
        let buffer = CudaBuffer::new(&self.context, bytes)?;
        // SAFETY: the buffer has as many bytes, and nobody else knows of it.
        unsafe { call!(cuMemsetD8Async(buffer.address(), 0, bytes, self.stream.raw)) }?;
        self.stream.synchronize()?;
        Ok(buffer)
    }

    /// Captures what `encode` launches, without launching it.
    fn capture(
        &mut self,
        encode: impl FnOnce(&mut CudaEncoder<'_>) -> Result<(), DeviceError>,
    ) -> Result<sys::CUgraph, DeviceError> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        let mut graph = ptr::null_mut();
        let mut encoder = CudaEncoder::new(&self.stream, self.target.overlaps);
        // SAFETY: the stream lives, and nothing else is put into it before the capture ends.
        unsafe { call!(cuStreamBeginCapture_v2(self.stream.raw, mode)) }.map_err(lost)?;
        let encoded = encode(&mut encoder).and_then(|()| encoder.end().map_err(lost));
        // SAFETY: the capture has begun, and ends even where encoding failed.
        let ended = unsafe { call!(cuStreamEndCapture(self.stream.raw, &raw mut graph)) };
        if encoded.is_err() && !graph.is_null() {
            // SAFETY: it was captured, and nobody else knows of it.
            unsafe { sys::cuGraphDestroy(graph) };
        }
        encoded?;
        ended.map_err(lost)?;
        Ok(graph)
    }

    fn copy_out(&self, from: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        self.context.enter()?;
        self.copies.wait_for(&self.written)?;
        let to = bytes.as_mut_ptr().cast();
        // SAFETY: the device has checked the range; `bytes` is waited for while it is borrowed.
        unsafe { call!(cuMemcpyDtoHAsync_v2(to, from, bytes.len(), self.copies.raw)) }?;
        self.copies.synchronize()
    }

    fn copy_in(&self, to: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.context.enter()?;
        let from = bytes.as_ptr().cast();
        // SAFETY: the device has checked the range; the driver has read pageable memory when it returns.
        unsafe { call!(cuMemcpyHtoDAsync_v2(to, from, bytes.len(), self.stream.raw)) }?;
        self.written.record(&self.stream)
    }
}

fn lost(fault: Fault) -> DeviceError {
    DeviceError::Lost {
        why: fault.to_string(),
    }
}

impl Backend for Cuda {
    type Buffer = CudaBuffer;
    type Pipeline = CudaPipeline;
    type Compiler = CudaCompiler;
    type Encoder<'a> = CudaEncoder<'a>;
    type Submission = CudaSubmission;
    type Round = CudaRound;

    fn name(&self) -> &'static str {
        "cuda"
    }

    fn rules(&self, chip: &ChipConfig) -> Box<dyn Rules> {
        Box::new(NvidiaRules::new(chip))
    }

    fn limits(&self) -> Limits {
        let free = self.context.free_memory().unwrap_or(0);
        Limits {
            max_buffer: usize::MAX,
            budget: free.saturating_sub(RESERVE),
            page: 256,
        }
    }

    fn compiler(&self) -> Arc<CudaCompiler> {
        Arc::clone(&self.compiler)
    }

    fn allocate(&mut self, bytes: usize, label: &str) -> Option<CudaBuffer> {
        let filled = self.zeros(bytes);
        filled.inspect_err(|fault| log(fault, bytes, label)).ok()
    }

    /// A copy; the host's pages may be given back as they are read.
    fn wrap(&mut self, bytes: &SharedBytes, part: Range<usize>, label: &str) -> Option<CudaBuffer> {
        let contents = (**bytes).as_ref().get(part.clone())?;
        let forget =
            |read: Range<usize>| bytes.forget(part.start + read.start..part.start + read.end);
        let copy = || -> Result<CudaBuffer, Fault> {
            let buffer = CudaBuffer::new(&self.context, contents.len())?;
            upload(&self.context, &self.stream, &buffer, contents, forget)?;
            Ok(buffer)
        };
        copy()
            .inspect_err(|fault| log(fault, contents.len(), label))
            .ok()
    }

    /// Bytes go through the stream that kernels run in.
    fn writes_in_turn(&self) -> bool {
        true
    }

    fn write(&mut self, buffer: &CudaBuffer, offset: usize, bytes: &[u8]) -> Result<(), String> {
        let written = self.copy_in(buffer.address() + offset as u64, bytes);
        written.map_err(|fault| fault.to_string())
    }

    fn read(&self, buffer: &CudaBuffer, offset: usize, bytes: &mut [u8]) -> Result<(), String> {
        let read = self.copy_out(buffer.address() + offset as u64, bytes);
        read.map_err(|fault| fault.to_string())
    }

    fn submit(
        &mut self,
        encode: impl FnOnce(&mut CudaEncoder<'_>) -> Result<(), DeviceError>,
    ) -> Result<CudaSubmission, DeviceError> {
        self.enclose(|cuda| {
            let mut encoder = CudaEncoder::new(&cuda.stream, cuda.target.overlaps);
            encode(&mut encoder)?;
            cuda.counters.launches += encoder.end().map_err(lost)?;
            Ok(())
        })
    }

    fn keep(
        &mut self,
        encode: impl FnOnce(&mut CudaEncoder<'_>) -> Result<(), DeviceError>,
    ) -> Result<Option<CudaRound>, DeviceError> {
        self.context.enter().map_err(lost)?;
        let graph = self.capture(encode)?;
        let mut round = CudaRound {
            graph: ptr::null_mut(),
            context: Arc::clone(&self.context),
        };
        // SAFETY: the graph was captured; the driver writes its executable form, which does not need it any more.
        let made = unsafe {
            let made = call!(cuGraphInstantiateWithFlags(&raw mut round.graph, graph, 0));
            sys::cuGraphDestroy(graph);
            made
        };
        made.map_err(lost)?;
        self.counters.captures += 1;
        Ok(Some(round))
    }

    fn repeat(&mut self, round: &CudaRound, times: u32) -> Result<CudaSubmission, DeviceError> {
        self.enclose(|cuda| {
            for _ in 0..times {
                // SAFETY: the graph lives, and the device keeps what it names alive.
                unsafe { call!(cuGraphLaunch(round.graph, cuda.stream.raw)) }.map_err(lost)?;
            }
            cuda.counters.graph_launches += u64::from(times);
            Ok(())
        })
    }

    fn wait(&mut self, submission: CudaSubmission) -> Result<Duration, String> {
        let CudaSubmission { begin, end } = submission;
        let waited = self.context.enter().and_then(|()| end.synchronize());
        let took = waited.and_then(|()| end.since(&begin));
        let took = took.map_err(|fault| fault.to_string())?;
        self.spare_events.extend([begin, end]);
        Ok(took)
    }
}

fn log(fault: &Fault, bytes: usize, label: &str) {
    if !fault.is_out_of_memory() {
        tracing::error!(%fault, bytes, label, "no buffer");
    }
}
