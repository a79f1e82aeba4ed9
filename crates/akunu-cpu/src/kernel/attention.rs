//! Attention: one kernel for all five rows of the table, which have one formula.
//!
//! [`few`] is for decoding: each key and value is read once for all query heads that share it, and
//! the arithmetic hides behind the reading. [`many`] is for prompts: blocks of queries and keys as
//! products of small matrices that stay in the cache. [`groups`] says which rows of a dispatch are of which kind.
//!
//! Keys are taken in blocks that end at multiples of [`blocks::BLOCK`], whatever the pages: what a row gives depends neither
//! on the size of a page nor on who is in its batch.

mod blocks;
mod few;
mod groups;
mod many;
mod problem;
mod product;
mod rows;
mod work;

use akunu_kernels::KernelId;
use akunu_kernels::kernel::pages::Pages;
use akunu_kernels::table::Args;
use akunu_types::KvFormat;

use super::stored::{Eights, Halves};
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::simd::Lanes;

#[cfg(target_arch = "x86_64")]
use few::Bytes;
use few::Floats;
use groups::Groups;
use problem::Problem;

pub(crate) use rows::RowAttention;

/// The kernel.
pub(crate) struct Attention;

impl Body for Attention {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let problem = Problem::of(call);
        let shared = few::Shared::of(call, &problem);
        let shared = shared.filter(|_| problem.head_dim.is_multiple_of(L::N));
        let mut groups = std::mem::take(part.kept.get::<Groups>());
        groups.fill(&problem, shared.is_some());
        many::run::<L>(&problem, &groups.prompts, part, call.level);
        if let Some(shared) = shared {
            let singles = &groups.singles;
            match problem.pages.format {
                KvFormat::F16 => few::run::<L, Floats<Halves>>(&problem, singles, part, shared),
                KvFormat::Q8 => attend_to_bytes::<L>(&problem, singles, part, shared),
            }
        }
        *part.kept.get() = groups;
    }
}

/// Single rows with keys and values in 8 bits.
#[inline(always)]
fn attend_to_bytes<L: Lanes>(
    problem: &Problem,
    singles: &[few::Single],
    part: &mut Part,
    shared: few::Shared,
) {
    #[cfg(target_arch = "x86_64")]
    // Only vectors of AVX-512 have 16 floats: for others this is not compiled.
    if const { L::N == 16 } {
        match problem.head_dim {
            64 => return few::run::<L, Bytes<64>>(problem, singles, part, shared),
            128 => return few::run::<L, Bytes<128>>(problem, singles, part, shared),
            256 => return few::run::<L, Bytes<256>>(problem, singles, part, shared),
            _ => {}
        }
    }
    few::run::<L, Floats<Eights>>(problem, singles, part, shared);
}

/// Whether a kernel of the table is one of those that this one stands for.
pub(crate) fn is_attention(kernel: KernelId) -> bool {
    matches!(
        kernel,
        KernelId::FlashAttentionDecode
            | KernelId::FlashAttentionDecodeFast
            | KernelId::FlashAttentionPrefill
            | KernelId::FlashAttentionPrefillV2
    )
}

/// Floats that all parts share in the attention of a dispatch, whatever its rows are.
pub(crate) fn shared_len(args: &Args) -> usize {
    let p = args.params();
    few::shared_len(&p, &Pages::from((&p, args.constants)))
}
