//! What a format must say: how one block is decoded and encoded. The loops over blocks are here.

use bytemuck::{Pod, bytes_of, pod_read_unaligned};

/// A block of `N` values as it lies in a file.
pub(super) trait Block<const N: usize>: Pod {
    /// The values that this block stands for.
    fn decode(&self) -> [f32; N];

    /// The block that stands for these values, all of them finite.
    fn encode(values: &[f32; N]) -> Self;
}

/// Decodes block after block. The caller has checked that the sizes agree.
pub(super) fn decode_all<B: Block<N>, const N: usize>(bytes: &[u8], values: &mut [f32]) {
    let blocks = bytes.chunks_exact(size_of::<B>());
    let (groups, _) = values.as_chunks_mut::<N>();
    for (block, group) in blocks.zip(groups) {
        // A tensor may begin at an odd byte of a foreign buffer, hence the unaligned read.
        *group = pod_read_unaligned::<B>(block).decode();
    }
}

/// Encodes group after group. The caller has checked that the sizes agree.
pub(super) fn encode_all<B: Block<N>, const N: usize>(values: &[f32], bytes: &mut [u8]) {
    let blocks = bytes.chunks_exact_mut(size_of::<B>());
    let (groups, _) = values.as_chunks::<N>();
    for (block, group) in blocks.zip(groups) {
        block.copy_from_slice(bytes_of(&B::encode(group)));
    }
}
