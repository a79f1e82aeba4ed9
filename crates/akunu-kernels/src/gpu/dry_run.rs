//! An encoder that does nothing: what cannot be encoded is refused before it is submitted.

use std::marker::PhantomData;

use super::encode::Encoder;

/// Takes buffers `B` and pipelines `P`, and forgets them.
pub(super) struct DryRun<B, P>(PhantomData<fn(&B, &P)>);

impl<B, P> DryRun<B, P> {
    pub(super) fn new() -> DryRun<B, P> {
        DryRun(PhantomData)
    }
}

impl<B, P> Encoder for DryRun<B, P> {
    type Buffer = B;
    type Pipeline = P;

    fn set_pipeline(&mut self, _: &P) {}
    fn set_buffer(&mut self, _: u8, _: &B, _: usize) {}
    fn set_bytes(&mut self, _: u8, _: &[u8]) {}
    fn set_threadgroup_memory(&mut self, _: u32) {}
    fn barrier(&mut self) {}
    fn dispatch(&mut self, _: [u32; 3], _: [u32; 3]) {}
}
