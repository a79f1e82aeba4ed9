//! What a format must say: how one block is encoded. The loop over blocks is here.

use bytemuck::{Pod, bytes_of};

/// A block of `N` values as it lies in a file.
pub(super) trait Encode<const N: usize>: Pod {
    /// The block that stands for these values, all of them finite.
    fn encode(values: &[f32; N]) -> Self;
}

/// Encodes group after group. The caller has checked that the sizes agree.
pub(super) fn encode_all<B: Encode<N>, const N: usize>(values: &[f32], bytes: &mut [u8]) {
    let blocks = bytes.chunks_exact_mut(size_of::<B>());
    let (groups, _) = values.as_chunks::<N>();
    for (block, group) in blocks.zip(groups) {
        block.copy_from_slice(bytes_of(&B::encode(group)));
    }
}
