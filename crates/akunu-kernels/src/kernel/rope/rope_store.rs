//! `rope_store_f16`, `rope_neox_store_f16`: RoPE of q and k of some rows, and the storing of k and v.
//!
//! For each active row: q turns in place by the row's position; the turned k and the plain v go to the
//! row's slot, in the pages of its sequence ([`crate::kernel::pages`]). Idle rows change nothing. Of keys with
//! a centre what is stored is `turned k - centre`.

#[cfg(feature = "testing")]
pub(crate) mod cases;

use akunu_program::Pairing;
use akunu_types::KvFormat;
use akunu_types::params::{RopeStoreParams, Row};

use super::{
    Centre, Frequencies, HeadNorm, Projection, can_turn, centre_len, head_launch, pair_launch,
    table_len, turned_dim,
};
use crate::chip::ChipConfig;
use crate::constant::{Constant, Constants};
use crate::cost::{Traffic, Work};
use crate::extent::{bytes, strided};
use crate::kernel::pages::{self, Pages};
use crate::table::{Args, BufferSet, Family, KernelRow, Launch, Pool, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(|args| (p, pages) = sizes(args), RopeStoreParams at 5) {
        q: change f32 = q_len(&p),
        k: read f32 = kv_len(&p),
        v: read f32 = kv_len(&p),
        k_pages: change Pool = pages.pool_bytes(),
        v_pages: change Pool = pages.pool_bytes(),
        rows: read Row = [p.n_rows],
        table: read u32 = pages.table_len(),
        freqs: read f32 = table_len(args, p.head_dim),
        centre: read f32 = centre_len(args, p.n_kv_heads, p.head_dim),
    }
}

/// The row of the kernel with interleaved pairs.
pub const INTERLEAVED: KernelRow = KernelRow {
    name: ("rope_store_f16", ""),
    source: "rope_store",
    constants: &[
        Constant::FreqTable,
        Constant::KeyCentre,
        Constant::TurnedDim,
        Constant::KvQ8,
    ],
    launch,
    twin: |t| plain_twin(t, Pairing::Interleaved),
    #[cfg(feature = "testing")]
    cases: |_| cases::all(Pairing::Interleaved),
    ..row::<Buffers<()>>()
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("rope_neox_store_f16", ""),
    twin: |t| plain_twin(t, Pairing::Halves),
    #[cfg(feature = "testing")]
    cases: |_| cases::all(Pairing::Halves),
    ..INTERLEAVED
};

/// The fields that are the same in the rows of all three kernels.
pub(super) const fn row<B: BufferSet>() -> KernelRow {
    KernelRow {
        family: Family::Rope,
        work,
        ..KernelRow::of::<B>()
    }
}

/// In 8 bits a threadgroup has whole heads: their blocks share scales.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: RopeStoreParams = args.params();
    let n_heads = p.n_heads.max(p.n_kv_heads);
    match pages::format(args.constants) {
        KvFormat::F16 => pair_launch(n_heads, p.head_dim, n_rows(args), chip),
        KvFormat::Q8 => head_launch(n_heads, p.head_dim, n_rows(args), chip.max_threads),
    }
}

/// Rows to launch: none, which the plan check refuses, where pages cannot be read or heads not turned.
pub(super) fn n_rows(args: &Args) -> u32 {
    let p: RopeStoreParams = args.params();
    if Pages::from((&p, args.constants)).are_usable() && can_turn(args, p.head_dim) {
        p.n_rows
    } else {
        0
    }
}

/// Elements between rows of q.
fn q_stride(p: &RopeStoreParams) -> u32 {
    match p.q_stride {
        0 => p.n_heads.saturating_mul(p.head_dim),
        stride => stride,
    }
}

/// Elements between rows of k and of v.
fn kv_stride(p: &RopeStoreParams) -> u32 {
    match p.kv_stride {
        0 => p.n_kv_heads.saturating_mul(p.head_dim),
        stride => stride,
    }
}

/// The params and the pages.
pub(super) fn sizes(args: &Args) -> (RopeStoreParams, Pages) {
    let p: RopeStoreParams = args.params();
    (p, Pages::from((&p, args.constants)))
}

/// Elements of q.
pub(super) fn q_len(p: &RopeStoreParams) -> usize {
    let row = p.n_heads.saturating_mul(p.head_dim);
    strided(p.n_rows, q_stride(p), row)
}

/// Elements of k and of v.
pub(super) fn kv_len(p: &RopeStoreParams) -> usize {
    let row = p.n_kv_heads.saturating_mul(p.head_dim);
    strided(p.n_rows, kv_stride(p), row)
}

/// Of each pool a slot a row is written, and of the page table an entry a row is read.
fn work(args: &Args, once: Work) -> Work {
    let p: RopeStoreParams = args.params();
    let pages = Pages::from((&p, args.constants));
    let written = pages.slot_bytes(&[p.n_rows]);
    let written = Traffic::written(written.min(pages.pool_bytes()));
    let places = Buffers::PLACES;
    let entries = bytes::<u32>(&[p.n_rows]).min(once.traffic[places.table].read);
    once.with(places.k_pages, written)
        .with(places.v_pages, written)
        .with(places.table, Traffic::read(entries))
}

fn plain_twin(t: &mut Twin, pairing: Pairing) {
    let (p, constants) = (t.params(), t.constants());
    store(&p, constants, Slices::of(t), pairing, None);
}

/// The formula; with a norm it is that of the fused kernel as well.
pub(super) fn store(
    p: &RopeStoreParams,
    constants: &Constants,
    b: Slices,
    pairing: Pairing,
    norm: Option<&HeadNorm>,
) {
    let pages = Pages::from((p, constants));
    let head_dim = p.head_dim as usize;
    let frequencies = Frequencies {
        table: constants.bool(Constant::FreqTable).then_some(b.freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim,
        turned_dim: turned_dim(constants, p.head_dim) as usize,
    };
    let turn = |head: &[f32], position: u32, projection| {
        let normal = norm.map_or_else(|| head.to_vec(), |norm| norm.before(head, projection));
        let mut turned = frequencies.turn(&normal, position as f32, pairing);
        if let Some(norm) = norm {
            norm.after(&mut turned, projection);
        }
        turned
    };
    let rows = b.rows.iter().enumerate();
    for (index, row) in rows.filter(|(_, row)| row.is_active()) {
        for head in 0..p.n_heads as usize {
            let start = index * q_stride(p) as usize + head * head_dim;
            let q = &mut b.q[start..][..head_dim];
            let turned = turn(q, row.position, Projection::Query);
            q.copy_from_slice(&turned);
        }
        for head in 0..p.n_kv_heads as usize {
            let start = index * kv_stride(p) as usize + head * head_dim;
            let turned = turn(&b.k[start..][..head_dim], row.position, Projection::Key);
            let at = pages.slot_at(b.table, row.sequence, row.slot as usize, head);
            let centre = Centre::of(b.centre, head, head_dim);
            pages.store(b.k_pages, at, &centre.subtract(&turned));
            pages.store(b.v_pages, at, &b.v[start..][..head_dim]);
        }
    }
}
