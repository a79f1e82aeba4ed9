//! `rope_store_f16`, `rope_neox_store_f16`: RoPE of q and k of some rows, and the storing of k and v.
//!
//! For each active row: q turns in place by the row's position; the turned k and the plain v go to the
//! row's slot, in the pages of its sequence ([`crate::kernel::pages`]). Idle rows change nothing. Of keys with
//! a centre what is stored is `turned k - centre`.

use akunu_program::Pairing;
use akunu_types::KvFormat;
use akunu_types::params::{RopeStoreParams, Row};

use super::{
    Centre, Frequencies, HeadNorm, Projection, can_turn, case_centres, case_table, centre_len,
    centring, head_launch, move_to_centres, pair_launch, rounding, table_len, tolerance,
    turned_dim,
};
use crate::case::{Case, Rng};
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
    cases: |_| cases(Pairing::Interleaved),
    ..row::<Buffers<()>>()
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("rope_neox_store_f16", ""),
    twin: |t| plain_twin(t, Pairing::Halves),
    cases: |_| cases(Pairing::Halves),
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
        KvFormat::F16 => pair_launch(n_heads, p.head_dim, n_rows(args)),
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

/// Shape, rows and what is bound.
pub(super) struct Setting {
    pub head_dim: u32,
    heads: (u32, u32),
    page_shift: u32,
    /// Sequence, position and slot of each row; `None` for an idle one.
    rows: &'static [Option<(u32, u32, u32)>],
    gap: u32,
    pub has_table: bool,
    turned: u32,
}

/// The settings of all three kernels: GQA 1, 3, 4 and 8, first and last slots of pages, several sequences,
/// positions that are not slots, idle rows, gaps, heads of which some elements do not turn.
#[rustfmt::skip]
pub(super) const SETTINGS: [Setting; 8] = [
    Setting { head_dim: 64, heads: (9, 3), page_shift: 5, rows: &[Some((0, 0, 0))], gap: 0, has_table: false, turned: 64 },
    Setting { head_dim: 80, heads: (8, 1), page_shift: 5, rows: &[Some((0, 30, 31)), Some((0, 31, 32)), Some((0, 32, 33))], gap: 16, has_table: true, turned: 80 },
    Setting { head_dim: 96, heads: (3, 3), page_shift: 6, rows: &[Some((2, 100, 63)), None, Some((0, 7, 7)), Some((1, 200, 130)), None], gap: 0, has_table: true, turned: 96 },
    Setting { head_dim: 128, heads: (4, 1), page_shift: 5, rows: &[None, Some((1, 1000, 40)), Some((0, 999, 64))], gap: 0, has_table: false, turned: 128 },
    Setting { head_dim: 256, heads: (1, 1), page_shift: 6, rows: &[Some((0, 131_071, 100)), Some((0, 131_070, 99))], gap: 8, has_table: true, turned: 256 },
    Setting { head_dim: 32, heads: (2, 4), page_shift: 5, rows: &[Some((0, 5, 5)), Some((1, 5, 5)), Some((2, 5, 5)), Some((3, 5, 5))], gap: 0, has_table: true, turned: 32 },
    Setting { head_dim: 128, heads: (4, 2), page_shift: 5, rows: &[Some((0, 300, 33)), Some((1, 7, 7))], gap: 0, has_table: true, turned: 64 },
    Setting { head_dim: 96, heads: (2, 1), page_shift: 5, rows: &[Some((0, 30, 31)), None], gap: 4, has_table: false, turned: 20 },
];

impl Setting {
    /// The rows as they lie in the row table. An idle one says nothing that could be used.
    fn rows(&self) -> Vec<Row> {
        let row = |&row: &Option<(u32, u32, u32)>| match row {
            Some((sequence, position, slot)) => Row {
                slot,
                length: slot + 1,
                ..Row::at(sequence, position)
            },
            None => Row {
                sequence: u32::MAX,
                slot: u32::MAX,
                ..Row::default()
            },
        };
        self.rows.iter().map(row).collect()
    }

    fn last_position(&self) -> u32 {
        let active = self.rows.iter().flatten();
        active.map(|&(_, position, _)| position).max().unwrap_or(0)
    }
}

/// All settings without a centre, and in 8 bits some with one.
fn cases(pairing: Pairing) -> Vec<Case> {
    let rng = |s: &Setting| Rng::new(u64::from(s.head_dim));
    let mut cases = all_settings(|s, format| case(s, format, &mut rng(s)).bind(&[f32::NAN]));
    let settings = SETTINGS.iter();
    let centred = settings.filter(|s| s.has_table && KvFormat::Q8.takes(s.head_dim));
    cases.extend(centred.map(|s| centred_case(s, pairing, &mut rng(s))));
    cases
}

/// A case of each setting in each format that takes its heads.
pub(super) fn all_settings(case: impl Fn(&Setting, KvFormat) -> Case) -> Vec<Case> {
    let formats = KvFormat::ALL.into_iter();
    formats
        .flat_map(|format| {
            let settings = SETTINGS.iter().filter(move |s| format.takes(s.head_dim));
            settings.map(move |s| (s, format))
        })
        .map(|(s, format)| case(s, format))
        .collect()
}

/// The case without the norm weights and the centre.
pub(super) fn case(s: &Setting, format: KvFormat, rng: &mut Rng) -> Case {
    case_of(s, format, None, rng)
}

/// The case in 8 bits of keys with centres of up to 300.
fn centred_case(s: &Setting, pairing: Pairing, rng: &mut Rng) -> Case {
    let centres = case_centres(rng, true, s.heads.1 * s.head_dim);
    case_of(s, KvFormat::Q8, Some((pairing, &centres)), rng).bind(&centres)
}

/// A pool holds something already: what a kernel does not write must stay.
fn case_of(
    s: &Setting,
    format: KvFormat,
    centred: Option<(Pairing, &[f32])>,
    rng: &mut Rng,
) -> Case {
    let (n_heads, n_kv_heads) = s.heads;
    let with_gap = |elements: u32| if s.gap == 0 { 0 } else { elements + s.gap };
    let pages = Pages {
        page_shift: s.page_shift,
        table_stride: 4,
        n_kv_heads,
        head_dim: s.head_dim,
        n_pages: 10,
        n_sequences: 4,
        format,
    };
    let n_rows = s.rows.len() as u32;
    let params = RopeStoreParams {
        n_rows,
        n_heads,
        n_kv_heads,
        head_dim: s.head_dim,
        q_stride: with_gap(n_heads * s.head_dim),
        kv_stride: with_gap(n_kv_heads * s.head_dim),
        page_shift: pages.page_shift,
        table_stride: pages.table_stride,
        n_pages: pages.n_pages,
        n_sequences: pages.n_sequences,
        theta: 10000.0,
        freq_scale: if s.has_table { 0.125 } else { 1.0 },
        eps: 1e-6,
        ..Default::default()
    };
    let label = format!(
        "head_dim {}, {} turn, heads {n_heads}/{n_kv_heads}, rows {:?} in pages of {}, gap {}, table {}, {}{}",
        s.head_dim,
        s.turned,
        s.rows,
        1 << s.page_shift,
        s.gap,
        s.has_table,
        format.name(),
        if centred.is_some() { ", centres" } else { "" }
    );
    let active = s.rows.iter().flatten();
    let used: Vec<(u32, u32)> = active
        .map(|&(sequence, _, slot)| (sequence, slot))
        .collect();
    let (q, kv) = (n_rows * q_stride(&params), n_rows * kv_stride(&params));
    let table = case_table(s.has_table, s.head_dim, s.turned);
    let nmse =
        tolerance(s.last_position(), s.has_table) + rounding(format) + centring(centred.is_some());
    let mut constants = Constants::none().with_bool(Constant::FreqTable, s.has_table);
    if s.turned < s.head_dim {
        constants = constants.with_u32(Constant::TurnedDim, s.turned);
    }
    let (queries, mut keys) = (rng.floats(q as usize, 1.0), rng.floats(kv as usize, 1.0));
    if let Some((pairing, centres)) = centred {
        constants = constants.with_bool(Constant::KeyCentre, true);
        let frequencies = Frequencies {
            table: Some(&table),
            theta: params.theta,
            scale: params.freq_scale,
            head_dim: s.head_dim as usize,
            turned_dim: s.turned as usize,
        };
        let rows = keys.chunks_mut(kv_stride(&params) as usize).zip(s.rows());
        for (keys, row) in rows {
            move_to_centres(keys, centres, &frequencies, row.position, pairing);
        }
    }
    Case::new(label, &params, nmse)
        .constants(pages::with_format(constants, format))
        .pools(pages)
        .bind(&queries)
        .bind(&keys)
        .bind(&rng.floats(kv as usize, 1.0))
        .bind(&pages.case_pool(rng))
        .bind(&pages.case_pool(rng))
        .bind(&s.rows())
        .bind(&pages.case_table(rng, &used))
        .bind(&table)
}
