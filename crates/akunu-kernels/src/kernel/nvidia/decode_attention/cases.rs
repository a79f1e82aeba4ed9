//! The cases of `decode_attention`.

use akunu_program::Pairing;
use akunu_types::params::{DecodeAttentionParams, Row};
use half::f16;

use super::shape::{FEW_SIMD_GROUPS, KEY_TILE, N_SIMD_GROUPS, batches};
use crate::case::{Case, Rng};
use crate::constant::{Constant, Constants};
use crate::extent::product;
use crate::kernel::attention::mask::Mask;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::nvidia::staging::QUAD;
use crate::kernel::pages::{self, Pages};
use crate::kernel::rope::cases::{case_centres, case_table, centring, move_to_centres, rounding};
use crate::kernel::rope::{Frequencies, turned_dim};

/// One attention: halves, no norm, and no constant but the head's size and the table of frequencies, unless told otherwise.
struct Setting {
    label: &'static str,
    head_dim: u32,
    heads: (u32, u32),
    n_groups: u32,
    n_simd_groups: u32,
    page_shift: u32,
    row: Row,
    /// Rows of other sequences, behind it.
    others: Vec<Row>,
    constants: Constants,
    /// How the output lies: floats are `Rows`.
    order: Order,
    /// The largest number of a value.
    largest_value: f32,
}

fn setting(label: &'static str, head_dim: u32, heads: (u32, u32), length: u32) -> Setting {
    Setting {
        label,
        head_dim,
        heads,
        n_groups: 4,
        n_simd_groups: N_SIMD_GROUPS,
        page_shift: 5,
        row: Row::at(1, length - 1),
        others: Vec::new(),
        constants: Constants::none()
            .with_bool(Constant::FreqTable, true)
            .with_u32(Constant::HeadDim, head_dim),
        order: Order::Rows,
        largest_value: 1.0,
    }
}

impl Setting {
    fn groups(self, n_groups: u32) -> Setting {
        Setting { n_groups, ..self }
    }
    /// In small threadgroups.
    fn small(self) -> Setting {
        Setting {
            n_simd_groups: FEW_SIMD_GROUPS,
            ..self
        }
    }
    /// With rows of other sequences, which see so many keys.
    fn beside<const N: usize>(mut self, lengths: [u32; N]) -> Setting {
        let others = (2..).zip(lengths);
        self.others = others
            .map(|(sequence, length)| Row::at(sequence, length - 1))
            .collect();
        self
    }
    fn page_shift(self, page_shift: u32) -> Setting {
        Setting { page_shift, ..self }
    }
    /// The text was cut: positions are further than slots.
    fn position(mut self, position: u32) -> Setting {
        self.row.position = position;
        self
    }
    fn hidden(mut self, hidden: u32) -> Setting {
        self.row = Row::in_tree(1, self.row.slot, hidden);
        self
    }
    fn idle(mut self) -> Setting {
        self.row.flags = 0;
        self
    }
    fn with(self, change: impl Fn(Constants) -> Constants) -> Setting {
        let constants = change(self.constants);
        Setting { constants, ..self }
    }
    fn window(self, keys: u32) -> Setting {
        self.with(|constants| constants.with_u32(Constant::Window, keys))
    }
    fn softcap(self, cap: f32) -> Setting {
        self.with(|constants| constants.with_f32(Constant::Softcap, cap))
    }
    fn norm(self) -> Setting {
        self.with(|constants| constants.with_bool(Constant::HeadNorm, true))
    }
    /// With heads of which only so many elements turn.
    fn turned(self, dim: u32) -> Setting {
        self.with(|constants| constants.with_u32(Constant::TurnedDim, dim))
    }
    /// With halves as its output.
    fn halves(self, order: Order) -> Setting {
        Setting { order, ..self }
    }
    fn values_up_to(self, largest_value: f32) -> Setting {
        Setting {
            largest_value,
            ..self
        }
    }
    fn q8(self) -> Setting {
        self.with(|constants| constants.with_bool(Constant::KvQ8, true))
    }
    /// Keys in 8 bits with centres of up to 300.
    fn centred(self) -> Setting {
        self.q8()
            .with(|constants| constants.with_bool(Constant::KeyCentre, true))
    }
    fn is_centred(&self) -> bool {
        self.constants.bool(Constant::KeyCentre)
    }

    /// A pool whose unseen slots are traps, the row's own among them; unused entries of the table name pages that do not
    /// exist.
    fn case(self, pairing: Pairing) -> Case {
        let (n_heads, n_kv_heads) = self.heads;
        let is_centred = self.is_centred();
        let turned = turned_dim(&self.constants, self.head_dim);
        let row = self.row;
        let rows = [vec![row], self.others].concat();
        let mask = Mask::new(&self.constants);
        let begin = |row: &Row| mask.seen(row).keys.start as u32;
        let used: Vec<(u32, u32)> = rows
            .iter()
            .flat_map(|row| (begin(row)..=row.slot).map(|slot| (row.sequence, slot)))
            .collect();
        let last_slot = rows.iter().map(|row| row.slot).max().unwrap_or(0);
        let last_page = last_slot >> self.page_shift;
        let n_pages: u32 = rows
            .iter()
            .map(|row| (row.slot >> self.page_shift) + 1)
            .sum();
        let pages = Pages {
            page_shift: self.page_shift,
            table_stride: last_page + 2,
            n_kv_heads,
            head_dim: self.head_dim,
            n_pages: n_pages + 2,
            n_sequences: 1 + rows.len() as u32,
            format: pages::format(&self.constants),
        };
        let params = DecodeAttentionParams {
            n_heads,
            n_kv_heads,
            head_dim: self.head_dim,
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            n_groups: self.n_groups,
            theta: 10000.0,
            freq_scale: 0.125,
            eps: 1e-6,
            scale: 1.0 / (self.head_dim as f32).sqrt(),
            n_rows: rows.len() as u32,
            order: self.order.code(),
            half_stride: (n_heads * self.head_dim).next_multiple_of(QUAD),
            n_simd_groups: self.n_simd_groups,
        };
        let mut rng = Rng::new(u64::from(self.head_dim + row.slot));
        let table = pages.case_table(&mut rng, &used);
        let mut pool = |magnitude: f32| {
            let mut pool = vec![0xFF; pages.pool_bytes()];
            for row in &rows {
                for slot in begin(row) / KEY_TILE * KEY_TILE..row.slot {
                    for head in 0..n_kv_heads as usize {
                        let at = pages.slot_at(&table, row.sequence, slot as usize, head);
                        let numbers = rng.floats(self.head_dim as usize, magnitude);
                        pages.store(&mut pool, at, &numbers);
                    }
                }
            }
            pool
        };
        let (keys, values) = (pool(2.0), pool(self.largest_value));
        let label = format!(
            "{}: head_dim {}, {turned} turn, heads {n_heads}/{n_kv_heads}, {} slots in pages of {}, {} threadgroups of {} SIMD groups, {}{}{}",
            self.label,
            self.head_dim,
            row.length,
            1 << self.page_shift,
            self.n_groups,
            self.n_simd_groups,
            pages.format.name(),
            if is_centred { ", centres" } else { "" },
            match self.order {
                Order::Rows => String::new(),
                tiles => format!(", halves in {tiles:?}"),
            }
        );
        let [q, kv] = [n_heads, n_kv_heads].map(|heads| params.n_rows * heads * self.head_dim);
        let weights = product(&[params.n_rows, params.n_heads, params.n_groups]);
        let counters = product(&[params.n_rows, params.n_kv_heads, batches(&params)]);
        // As RoPE alone: a turned key may be rounded to the other neighbour. As half_rows: so may the output.
        let of_halves = match self.order {
            Order::Rows => 1e-9,
            Order::Spans | Order::Columns => 1e-8,
        };
        let nmse = of_halves + rounding(pages.format) + centring(is_centred);
        let (n_floats, n_halves, n_factors) = match self.order {
            Order::Rows => (params.n_rows * n_heads * self.head_dim, 0, 0),
            tiles => (
                0,
                tiles.rows(params.n_rows) * params.half_stride,
                params.n_rows,
            ),
        };
        let freqs = case_table(true, self.head_dim, turned);
        let (queries, mut own_keys) = (rng.floats(q as usize, 2.0), rng.floats(kv as usize, 2.0));
        let own_values = rng.floats(kv as usize, self.largest_value);
        let norms = [(); 2].map(|()| rng.floats(self.head_dim as usize, 1.0));
        let centres = case_centres(&mut rng, is_centred, n_kv_heads * self.head_dim);
        if is_centred {
            let frequencies = Frequencies {
                table: Some(&freqs),
                theta: params.theta,
                scale: params.freq_scale,
                head_dim: self.head_dim as usize,
                turned_dim: turned as usize,
            };
            let of_rows = own_keys.chunks_mut(centres.len()).zip(&rows);
            for (keys, row) in of_rows {
                move_to_centres(keys, &centres, &frequencies, row.position, pairing);
            }
        }
        Case::new(label, &params, nmse)
            .constants(self.constants)
            .pools(pages)
            .bind(&queries)
            .bind(&own_keys)
            .bind(&own_values)
            .bind(&keys)
            .bind(&values)
            .bind(&rows)
            .bind(&table)
            .bind(&freqs)
            .bind(&norms[0])
            .bind(&norms[1])
            .bind(&vec![f32::NAN; n_floats as usize])
            .bind(&vec![f32::NAN; weights * self.head_dim as usize])
            .bind(&vec![f32::NAN; weights])
            .bind(&vec![0u32; counters])
            .bind(&vec![f16::NAN; n_halves as usize])
            .bind(&vec![f32::NAN; n_factors as usize])
            .bind(&centres)
    }
}

/// One key; tiles and pages that are just full, or not yet; one threadgroup, several, fewer than there are tiles; heads that
/// share keys and heads that do not; small threadgroups; windows, soft caps, norms, branches, an idle row; floats, and halves in both orders, with and
/// without zeros behind the heads, in a tile that is not full and in two.
pub(super) fn cases(pairing: Pairing) -> Vec<Case> {
    [
        setting("the first token", 64, (9, 3), 1),
        setting("the second token", 64, (4, 2), 2),
        setting("a tile and itself", 64, (9, 3), 17).position(1000),
        setting("half a tile", 128, (2, 2), 41),
        setting("two threadgroups", 64, (32, 8), 140),
        setting("more tiles than streams", 128, (8, 2), 600).groups(3),
        setting("a page of 64", 128, (4, 4), 64)
            .page_shift(6)
            .norm(),
        setting("a large head", 256, (4, 1), 200).norm(),
        setting("a large head, 8 share keys", 256, (8, 1), 70),
        setting("192", 192, (6, 2), 267).groups(2),
        setting("two batches, soft cap", 64, (16, 1), 97).softcap(5.0),
        setting("two batches, a smaller one last", 128, (24, 2), 200).norm(),
        setting("more than 32 parts", 64, (1, 1), 4300).groups(64),
        setting("window within a page", 64, (4, 1), 150).window(37),
        setting("a window of one", 64, (2, 1), 40).window(1),
        setting("a branch", 64, (4, 2), 80).hidden(0b110),
        setting("branches in two tiles", 128, (4, 2), 147).hidden(0x7fff_0f00),
        setting("idle", 64, (2, 1), 40).idle(),
        setting("the first token", 64, (3, 1), 1).q8(),
        setting("several threadgroups", 128, (8, 2), 300)
            .q8()
            .norm(),
        setting("window", 256, (2, 1), 150).q8().window(64),
        setting("three batches", 192, (20, 1), 190).q8(),
        setting("the first token", 64, (4, 2), 1).centred(),
        setting("several threadgroups", 128, (12, 2), 300).centred(),
        setting("a large head", 256, (4, 2), 40)
            .beside([1, 70])
            .centred(),
        setting("three rows", 64, (9, 3), 140).beside([1, 300]),
        setting("two rows of two batches", 128, (20, 2), 33)
            .beside([200])
            .norm(),
        setting("one part and several, zeros behind", 64, (9, 3), 140)
            .beside([1, 300])
            .halves(Order::Spans),
        setting("two rows of two batches", 128, (20, 2), 33)
            .beside([200])
            .norm()
            .halves(Order::Columns),
        setting("two tiles, zeros behind", 64, (3, 1), 150)
            .beside([1, 2, 20, 17, 140, 33, 16, 260, 5])
            .halves(Order::Columns),
        setting("two tiles of large heads", 256, (2, 1), 20)
            .beside([1, 2, 70, 17, 3, 33, 16, 9])
            .halves(Order::Spans),
        setting("an idle row", 64, (4, 2), 40)
            .idle()
            .beside([30])
            .halves(Order::Spans),
        setting("four heads, one part", 128, (8, 2), 100)
            .beside([1, 17, 300, 64])
            .groups(1)
            .small()
            .halves(Order::Columns),
        setting("three heads, several parts", 64, (9, 3), 300)
            .beside([2])
            .small(),
        setting("a large head, two streams", 256, (4, 1), 120)
            .groups(2)
            .small()
            .norm(),
        setting("two heads", 128, (4, 2), 140)
            .groups(2)
            .small()
            .q8(),
        setting("half a head turns", 128, (8, 2), 200)
            .norm()
            .turned(64),
        setting("a quarter of a head turns", 256, (4, 2), 40).turned(64),
        setting("three quarters of a head turn", 256, (2, 2), 40)
            .turned(192)
            .q8(),
        setting("values that no half holds", 128, (4, 2), 3)
            .beside([140])
            .q8()
            .values_up_to(100_000.0)
            .halves(Order::Spans),
    ]
    .map(|setting| setting.case(pairing))
    .into()
}
