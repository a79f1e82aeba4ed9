//! What a format must say: how one block is encoded. The loop over blocks is here.

use super::importance::Importance;
use bytemuck::{Pod, bytes_of};

/// A block of `N` values as it lies in a file.
pub(super) trait Encode<const N: usize>: Pod {
    /// The largest magnitude of a value. Most blocks store their scale as `f16`, so a block of larger values could not say so.
    const LARGEST: f32 = 65504.0;

    /// The block that stands for these values, all of them finite. Where their columns' importances are
    /// given, the error is smallest where it matters most.
    fn encode(values: &[f32; N], importance: Option<&[f32; N]>) -> Self;
}

/// Encodes group after group, the values from position `first` of a tensor on. The caller has checked
/// that the sizes agree, and that rows are whole blocks.
pub(super) fn encode_all<B: Encode<N>, const N: usize>(
    values: &[f32],
    importance: Option<&Importance>,
    first: usize,
    bytes: &mut [u8],
) {
    let blocks = bytes.chunks_exact_mut(size_of::<B>());
    let (groups, _) = values.as_chunks::<N>();
    for (i, (block, group)) in blocks.zip(groups).enumerate() {
        let importance = importance.and_then(|all| all.block::<N>(first + i * N));
        block.copy_from_slice(bytes_of(&B::encode(group, importance)));
    }
}
