//! The cases of `rope_store`.

use super::*;
use crate::case::{Case, Rng};
use crate::kernel::rope::cases::{
    case_centres, case_table, centring, move_to_centres, rounding, tolerance,
};

/// Shape, rows and what is bound.
pub struct Setting {
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
pub const SETTINGS: [Setting; 8] = [
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
pub fn all(pairing: Pairing) -> Vec<Case> {
    let rng = |s: &Setting| Rng::new(u64::from(s.head_dim));
    let mut cases = all_settings(|s, format| case(s, format, &mut rng(s)).bind(&[f32::NAN]));
    let settings = SETTINGS.iter();
    let centred = settings.filter(|s| s.has_table && KvFormat::Q8.takes(s.head_dim));
    cases.extend(centred.map(|s| centred_case(s, pairing, &mut rng(s))));
    cases
}

/// A case of each setting in each format that takes its heads.
pub fn all_settings(case: impl Fn(&Setting, KvFormat) -> Case) -> Vec<Case> {
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
pub fn case(s: &Setting, format: KvFormat, rng: &mut Rng) -> Case {
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
