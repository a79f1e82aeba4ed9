//! An encoder that records its calls.

use std::marker::PhantomData;

use super::encode::Encoder;

/// One call, with buffers and pipelines by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// `set_pipeline`.
    SetPipeline(u32),
    /// `set_buffer`.
    SetBuffer {
        /// Index of the binding.
        index: u8,
        /// The buffer's number.
        buffer: u32,
        /// Byte offset.
        offset: usize,
    },
    /// `set_bytes`.
    SetBytes {
        /// Index of the binding.
        index: u8,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// `set_threadgroup_memory`.
    SetThreadgroupMemory(u32),
    /// `barrier`.
    Barrier,
    /// `dispatch`.
    Dispatch {
        /// Threadgroups.
        grid: [u32; 3],
        /// Threads of each.
        threads: [u32; 3],
    },
    /// The encoder was ended.
    End,
}

/// Something that a backend has numbered.
pub trait Numbered {
    /// Its number.
    fn number(&self) -> u32;
}

/// Records calls with buffers `B` and pipelines `P`.
#[derive(Debug)]
pub struct Recorder<B, P> {
    calls: Vec<Call>,
    kinds: PhantomData<fn(&B, &P)>,
}

impl<B, P> Recorder<B, P> {
    /// A recorder without calls.
    pub fn new() -> Recorder<B, P> {
        Recorder {
            calls: Vec::new(),
            kinds: PhantomData,
        }
    }

    /// Ends the encoder: no call may follow.
    pub fn end(mut self) -> Vec<Call> {
        self.calls.push(Call::End);
        self.calls
    }
}

impl<B, P> Default for Recorder<B, P> {
    fn default() -> Recorder<B, P> {
        Recorder::new()
    }
}

impl<B: Numbered, P: Numbered> Encoder for Recorder<B, P> {
    type Buffer = B;
    type Pipeline = P;

    fn set_pipeline(&mut self, pipeline: &P) {
        self.calls.push(Call::SetPipeline(pipeline.number()));
    }

    fn set_buffer(&mut self, index: u8, buffer: &B, offset: usize) {
        let buffer = buffer.number();
        self.calls.push(Call::SetBuffer {
            index,
            buffer,
            offset,
        });
    }

    fn set_bytes(&mut self, index: u8, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.calls.push(Call::SetBytes { index, bytes });
    }

    fn set_threadgroup_memory(&mut self, bytes: u32) {
        self.calls.push(Call::SetThreadgroupMemory(bytes));
    }

    fn barrier(&mut self) {
        self.calls.push(Call::Barrier);
    }

    fn dispatch(&mut self, grid: [u32; 3], threads: [u32; 3]) {
        self.calls.push(Call::Dispatch { grid, threads });
    }
}
