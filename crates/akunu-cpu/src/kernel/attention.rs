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

use std::marker::PhantomData;

use akunu_kernels::KernelId;
use akunu_kernels::kernel::pages::Pages;
use akunu_kernels::table::Args;
use akunu_types::KvFormat;

use super::stored::{Eights, Halves};
use crate::call::Call;
use crate::isa::Level;
use crate::part::Part;
use crate::simd::{self, Lanes, WithLanes};

#[cfg(target_arch = "x86_64")]
use few::Bytes;
use few::{Floats, Way};
use groups::Groups;
use problem::Problem;

pub(crate) use rows::RowAttention;

/// Runs the kernel. Each form is compiled by itself: together they are a function that takes a compiler long.
pub(crate) fn attention(call: &Call, part: &mut Part) {
    let (problem, level) = (Problem::of(call), call.level);
    let shared = few::Shared::of(call, &problem);
    let shared = shared.filter(|_| problem.head_dim.is_multiple_of(simd::lanes(level)));
    let mut groups = std::mem::take(part.kept.get::<Groups>());
    groups.fill(&problem, shared.is_some());
    let prompts = Prompts {
        problem: &problem,
        prompts: &groups.prompts,
        part: &mut *part,
        level,
    };
    simd::run(level, prompts);
    if let Some(shared) = shared {
        let singles = few::All {
            problem: &problem,
            singles: &groups.singles,
            part: &mut *part,
            shared,
        };
        match problem.pages.format {
            KvFormat::F16 => simd::run(level, Singles(singles, PhantomData::<Floats<Halves>>)),
            KvFormat::Q8 => attend_to_bytes(level, singles),
        }
    }
    *part.kept.get() = groups;
}

/// All prompts, on their way to vectors.
struct Prompts<'a, 'p> {
    problem: &'a Problem<'a>,
    prompts: &'a [many::Prompt],
    part: &'a mut Part<'p>,
    level: Level,
}

impl WithLanes for Prompts<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        many::run::<L>(self.problem, self.prompts, self.part, self.level);
    }
}

/// All single rows, on their way to vectors.
struct Singles<'a, 'p, W>(few::All<'a, 'p>, PhantomData<W>);

impl<W: Way> WithLanes for Singles<'_, '_, W> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self) {
        // For vectors that a way does not have it is not compiled; nobody asks for that.
        if const { fits(W::LANES, L::N) } {
            few::run::<L, W>(self.0);
        }
    }
}

const fn fits(wanted: Option<usize>, lanes: usize) -> bool {
    match wanted {
        Some(wanted) => wanted == lanes,
        None => true,
    }
}

/// Single rows with keys and values in 8 bits.
fn attend_to_bytes(level: Level, singles: few::All) {
    #[cfg(target_arch = "x86_64")]
    match (simd::lanes(level), singles.problem.head_dim) {
        (16, 64) => return simd::run(level, Singles(singles, PhantomData::<Bytes<64>>)),
        (16, 128) => return simd::run(level, Singles(singles, PhantomData::<Bytes<128>>)),
        (16, 256) => return simd::run(level, Singles(singles, PhantomData::<Bytes<256>>)),
        _ => {}
    }
    simd::run(level, Singles(singles, PhantomData::<Floats<Eights>>));
}

/// Whether a kernel of the table is one of those that this one stands for.
pub(crate) fn is_attention(kernel: KernelId) -> bool {
    matches!(
        kernel,
        KernelId::FlashAttentionDecode
            | KernelId::FlashAttentionDecodeFast
            | KernelId::FlashAttentionPrefill
            | KernelId::FlashAttentionPrefillV2
            | KernelId::FlashAttentionSinks
    )
}

/// Floats that all parts share in the attention of a dispatch, whatever its rows are.
pub(crate) fn shared_len(args: &Args) -> usize {
    let p = args.params();
    few::shared_len(&p, &Pages::from((&p, args.constants)))
}
