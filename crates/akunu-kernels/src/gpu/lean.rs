//! An encoder that leaves out what is set already.
//!
//! Launches that follow each other often have the same kernel, the same vectors and the same cache. Each call of Metal's encoder
//! costs a fraction of a microsecond, and a token of a small model has thousands of them.

use super::encode::Encoder;

/// Most bindings of a kernel.
const MAX_BINDINGS: usize = 32;

/// What a binding is set to: the buffer by its address, which stays the same while something is encoded.
type Bound = Option<(usize, usize)>;

/// Passes on the calls that change something. Buffers and pipelines must stay where they are as long as it is used.
pub struct Lean<E> {
    encoder: E,
    pipeline: Option<usize>,
    bound: [Bound; MAX_BINDINGS],
}

impl<E: Encoder> Lean<E> {
    /// Passes on to an encoder in which nothing is set.
    pub fn new(encoder: E) -> Lean<E> {
        Lean {
            encoder,
            pipeline: None,
            bound: [None; MAX_BINDINGS],
        }
    }

    /// The encoder itself.
    pub fn into_inner(self) -> E {
        self.encoder
    }
}

impl<E: Encoder> Encoder for Lean<E> {
    type Buffer = E::Buffer;
    type Pipeline = E::Pipeline;

    fn set_pipeline(&mut self, pipeline: &E::Pipeline) {
        let address = std::ptr::from_ref(pipeline).addr();
        if self.pipeline != Some(address) {
            self.encoder.set_pipeline(pipeline);
            self.pipeline = Some(address);
        }
    }

    fn set_buffer(&mut self, index: u8, buffer: &E::Buffer, offset: usize) {
        let wanted = (std::ptr::from_ref(buffer).addr(), offset);
        let bound = self.bound.get_mut(usize::from(index));
        if bound.as_ref().is_none_or(|bound| **bound != Some(wanted)) {
            self.encoder.set_buffer(index, buffer, offset);
        }
        if let Some(bound) = bound {
            *bound = Some(wanted);
        }
    }

    fn set_bytes(&mut self, index: u8, bytes: &[u8]) {
        self.encoder.set_bytes(index, bytes);
        if let Some(bound) = self.bound.get_mut(usize::from(index)) {
            *bound = None;
        }
    }

    fn set_threadgroup_memory(&mut self, bytes: u32) {
        self.encoder.set_threadgroup_memory(bytes);
    }

    fn barrier(&mut self) {
        self.encoder.barrier();
    }

    fn dispatch(&mut self, grid: [u32; 3], threads: [u32; 3]) {
        self.encoder.dispatch(grid, threads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::{Call, Numbered, Recorder, replay};

    struct Number(u32);

    impl Numbered for Number {
        fn number(&self) -> u32 {
            self.0
        }
    }

    /// Launches of two kernels with buffers that stay, move and make room for bytes.
    fn encode(encoder: &mut impl Encoder<Buffer = Number, Pipeline = Number>) {
        let (kernels, buffers) = ([Number(0), Number(1)], [Number(0), Number(1)]);
        for (kernel, buffer, offset, params) in [
            (0, 0, 0, 2),
            (0, 0, 0, 2),
            (0, 1, 0, 1),
            (1, 1, 16, 2),
            (1, 1, 16, 2),
        ] {
            encoder.set_pipeline(&kernels[kernel]);
            encoder.set_buffer(0, &buffers[buffer], offset);
            encoder.set_buffer(3 - params, &buffers[0], 0);
            encoder.set_bytes(params, &[7]);
            encoder.dispatch([1, 1, 1], [32, 1, 1]);
            encoder.barrier();
        }
    }

    /// Breaks when a launch gets what an earlier one had, or nothing is left out.
    #[test]
    fn launches_stay_the_same_with_fewer_calls() {
        let mut whole = Recorder::new();
        encode(&mut whole);
        let whole = whole.end();
        let mut lean = Lean::new(Recorder::new());
        encode(&mut lean);
        let lean = lean.into_inner().end();
        assert_eq!(replay(&lean), replay(&whole));
        let count = |calls: &[Call], is: fn(&Call) -> bool| calls.iter().filter(|c| is(c)).count();
        let is_pipeline: fn(&Call) -> bool = |call| matches!(call, Call::SetPipeline(_));
        let is_buffer: fn(&Call) -> bool = |call| matches!(call, Call::SetBuffer { .. });
        assert_eq!(
            (count(&whole, is_pipeline), count(&lean, is_pipeline)),
            (5, 2)
        );
        // The second binding is set anew when the params have stood in its place.
        assert_eq!((count(&whole, is_buffer), count(&lean, is_buffer)), (10, 6));
    }
}
