//! `kv_shift_f16`, `kv_shift_neox_f16`: drops `shift` slots of a sequence after the first `keep`.
//!
//! For p in `0 .. new_len`, ascending: `k[keep + p] = turn(k[keep + shift + p], -shift)` and
//! `v[keep + p] = v[keep + shift + p]`, in the pages of the sequence ([`crate::kernel::pages`]). Keys are
//! stored turned to their position, and each shift rounds them to half once more. With a `freq_scale` of 0 they move as they
//! are: tokens of a branch, whose keys were turned to where they go.
//!
//! Of keys with a centre what is stored is `k - centre`, so that it becomes `turn(stored + centre, -shift) - centre`.

use akunu_program::Pairing;
use akunu_types::KvFormat;
use akunu_types::params::KVShiftParams;

use crate::chip::ChipConfig;
use crate::constant::Constant;
use crate::cost::{Traffic, Work};
use crate::extent::bytes;
use crate::kernel::pages::Pages;
use crate::kernel::rope::{
    Centre, Frequencies, can_turn, centre_len, head_launch, table_len, turned_dim,
};
use crate::table::{Args, Family, KernelRow, Launch, Pool, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(|args| (p, pages) = sizes(args), KVShiftParams at 2) {
        k: change Pool = pages.pool_bytes(),
        v: change Pool = pages.pool_bytes(),
        table: read u32 = pages.table_len(),
        freqs: read f32 = table_len(args, p.head_dim),
        centre: read f32 = centre_len(args, p.n_kv_heads, p.head_dim),
    }
}

/// The row of the kernel with interleaved pairs.
pub const INTERLEAVED: KernelRow = KernelRow {
    name: ("kv_shift_f16", ""),
    family: Family::KvCache,
    source: "kv_shift",
    constants: &[
        Constant::FreqTable,
        Constant::KeyCentre,
        Constant::TurnedDim,
        Constant::KvQ8,
    ],
    launch,
    work,
    twin: |t| twin(t, Pairing::Interleaved),
    #[cfg(feature = "testing")]
    cases: |_| cases::all(),
    ..KernelRow::of::<Buffers<()>>()
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("kv_shift_neox_f16", ""),
    twin: |t| twin(t, Pairing::Halves),
    ..INTERLEAVED
};

/// A thread for each pair of each head; in 8 bits a threadgroup for each head, as blocks share scales. A sequence or slots that the page table does not have get an
/// empty grid, which the plan check refuses.
fn launch(args: &Args, chip: &ChipConfig) -> Launch {
    let p: KVShiftParams = args.params();
    let pages = Pages::from((&p, args.constants));
    let end = p.keep.saturating_add(p.shift).saturating_add(p.new_len);
    let exists = p.sequence < p.n_sequences && end <= pages.max_slots();
    let n_heads = if exists && pages.are_usable() && can_turn(args, p.head_dim) {
        p.n_kv_heads
    } else {
        0
    };
    match pages.format {
        KvFormat::F16 => Launch::elementwise(n_heads.saturating_mul(p.head_dim / 2), chip),
        KvFormat::Q8 => head_launch(n_heads, p.head_dim, 1, chip.max_threads),
    }
}

/// The params and the pages.
fn sizes(args: &Args) -> (KVShiftParams, Pages) {
    let p: KVShiftParams = args.params();
    (p, Pages::from((&p, args.constants)))
}

/// Of the pools only what moves is touched, and of the page table the sequence's entries are read.
fn work(args: &Args, once: Work) -> Work {
    let p: KVShiftParams = args.params();
    let moved = Pages::from((&p, args.constants)).slot_bytes(&[p.new_len]);
    once.with(Buffers::PLACES.k, Traffic::both(moved))
        .with(Buffers::PLACES.v, Traffic::both(moved))
        .with(
            Buffers::PLACES.table,
            Traffic::read(bytes::<u32>(&[p.table_stride])),
        )
}

fn twin(t: &mut Twin, pairing: Pairing) {
    let p: KVShiftParams = t.params();
    let constants = t.constants();
    let pages = Pages::from((&p, constants));
    let Slices {
        k,
        v,
        table,
        freqs,
        centre,
    } = Slices::of(t);
    let head_dim = p.head_dim as usize;
    let frequencies = Frequencies {
        table: constants.bool(Constant::FreqTable).then_some(freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim,
        turned_dim: turned_dim(constants, p.head_dim) as usize,
    };
    for slot in p.keep as usize..(p.keep + p.new_len) as usize {
        for head in 0..p.n_kv_heads as usize {
            let slot_at = |slot| pages.slot_at(table, p.sequence, slot, head);
            let (from, to) = (slot_at(slot + p.shift as usize), slot_at(slot));
            let centre = Centre::of(centre, head, head_dim);
            let key = centre.add(&pages.load(k, from));
            let turned = frequencies.turn(&key, -(p.shift as f32), pairing);
            pages.store(k, to, &centre.subtract(&turned));
            pages.copy(v, from, to);
        }
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::constant::Constants;
    use crate::kernel::pages;
    use crate::kernel::rope::cases::{case_centres, case_table, rounding};

    /// Shape, what moves and what is bound.
    pub struct Setting {
        head_dim: u32,
        n_kv_heads: u32,
        page_shift: u32,
        keep: u32,
        shift: u32,
        new_len: u32,
        has_table: bool,
        pub freq_scale: f32,
        turned: u32,
    }

    /// Moves within a page and over the ends of several, by one slot and by more than a page, of nothing, of keys that stay as they are,
    /// and of heads of which some elements do not turn.
    #[rustfmt::skip]
    pub const SETTINGS: [Setting; 8] = [
        Setting { head_dim: 64, n_kv_heads: 3, page_shift: 5, keep: 0, shift: 5, new_len: 11, has_table: false, freq_scale: 1.0, turned: 64 },
        Setting { head_dim: 80, n_kv_heads: 2, page_shift: 5, keep: 4, shift: 1, new_len: 70, has_table: true, freq_scale: 1.0, turned: 80 },
        Setting { head_dim: 128, n_kv_heads: 1, page_shift: 5, keep: 31, shift: 40, new_len: 57, has_table: true, freq_scale: 1.0, turned: 128 },
        Setting { head_dim: 32, n_kv_heads: 1, page_shift: 6, keep: 1, shift: 7, new_len: 100, has_table: false, freq_scale: 1.0, turned: 32 },
        Setting { head_dim: 256, n_kv_heads: 1, page_shift: 6, keep: 0, shift: 6, new_len: 0, has_table: true, freq_scale: 1.0, turned: 256 },
        Setting { head_dim: 64, n_kv_heads: 2, page_shift: 5, keep: 29, shift: 3, new_len: 4, has_table: true, freq_scale: 0.0, turned: 64 },
        Setting { head_dim: 128, n_kv_heads: 2, page_shift: 5, keep: 3, shift: 6, new_len: 40, has_table: true, freq_scale: 1.0, turned: 64 },
        Setting { head_dim: 96, n_kv_heads: 1, page_shift: 5, keep: 0, shift: 5, new_len: 9, has_table: false, freq_scale: 1.0, turned: 24 },
    ];

    pub fn all() -> Vec<Case> {
        let formats = KvFormat::ALL.into_iter();
        formats
            .flat_map(|format| {
                let settings = SETTINGS.iter().filter(move |s| format.takes(s.head_dim));
                settings.map(move |s| case(s, format, false))
            })
            .chain(centred_cases())
            .collect()
    }

    /// Keys in 8 bits with centres of up to 300. Those that are not turned have none.
    fn centred_cases() -> impl Iterator<Item = Case> {
        let turned = SETTINGS.iter().filter(|s| s.freq_scale != 0.0);
        let settings = turned.filter(|s| KvFormat::Q8.takes(s.head_dim));
        settings.map(|s| case(s, KvFormat::Q8, true))
    }

    /// Angles are small and the same in every executor but for `pow` (16 units in the last place: at a
    /// shift of 7, 7e-6 radians); a half may be rounded to the other neighbour, 2^-11, now and then: 1e-8.
    /// Pairs that turn by much are as large as their centres afterwards, and so is what rounding loses there.
    pub fn case(s: &Setting, format: KvFormat, has_centre: bool) -> Case {
        let mut rng = Rng::new(u64::from(s.head_dim + s.shift));
        let pages = Pages {
            page_shift: s.page_shift,
            table_stride: 4,
            n_kv_heads: s.n_kv_heads,
            head_dim: s.head_dim,
            n_pages: 10,
            n_sequences: 3,
            format,
        };
        let params = KVShiftParams {
            sequence: 1,
            n_kv_heads: s.n_kv_heads,
            head_dim: s.head_dim,
            keep: s.keep,
            shift: s.shift,
            new_len: s.new_len,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            theta: 10000.0,
            freq_scale: s.freq_scale,
        };
        // Two neighbours share the pool; kept slots of whole pages need no entry.
        let moved = (s.keep..s.keep + s.shift + s.new_len).map(|slot| (1, slot));
        let used: Vec<(u32, u32)> = [(0, 0), (2, 0)].into_iter().chain(moved).collect();
        let table = pages.case_table(&mut rng, &used);
        let label = format!(
            "head_dim {}, {} turn, heads {}, {} slots by {} after {} in pages of {}, table {}, scale {}, {}{}",
            s.head_dim,
            s.turned,
            s.n_kv_heads,
            s.new_len,
            s.shift,
            s.keep,
            1 << s.page_shift,
            s.has_table,
            s.freq_scale,
            format.name(),
            if has_centre { ", centres" } else { "" }
        );
        let mut constants = Constants::none().with_bool(Constant::FreqTable, s.has_table);
        if s.turned < s.head_dim {
            constants = constants.with_u32(Constant::TurnedDim, s.turned);
        }
        if has_centre {
            constants = constants.with_bool(Constant::KeyCentre, true);
        }
        let (k, v) = (pages.case_pool(&mut rng), pages.case_pool(&mut rng));
        let centres = case_centres(&mut rng, has_centre, s.n_kv_heads * s.head_dim);
        Case::new(label, &params, 1e-8 + rounding(format))
            .constants(pages::with_format(constants, format))
            .pools(pages)
            .bind(&k)
            .bind(&v)
            .bind(&table)
            .bind(&case_table(s.has_table, s.head_dim, s.turned))
            .bind(&centres)
    }
}

#[cfg(test)]
mod tests {
    use super::cases::{SETTINGS, case};
    use super::*;

    /// Fails when the keys of a branch are rounded once more, or turned, on their way.
    #[test]
    fn keys_that_are_not_turned_keep_their_bits() {
        for format in KvFormat::ALL {
            let setting = SETTINGS.iter().find(|s| s.freq_scale == 0.0);
            let case = case(setting.expect("there is one"), format, false);
            let after = case.expected(&INTERLEAVED);
            let pages = case.pools.expect("it has pools");
            let table: &[u32] = bytemuck::cast_slice(case.data[2].as_ref());
            for (slot, head) in (29..33).flat_map(|slot| [(slot, 0), (slot, 1)]) {
                let at = |slot| pages.slot_at(table, 1, slot, head);
                for pool in [0, 1] {
                    let before = pages.load(case.data[pool].as_ref(), at(slot + 3));
                    assert_eq!(pages.load(after[pool].1.as_ref(), at(slot)), before);
                }
            }
        }
    }
}
