//! `decode_attention_f16`, `decode_attention_neox_f16`: RoPE of a row, the storing of its key and value, and its attention; and of
//! several rows, each of a sequence of its own.
//!
//! What [`rope_store`](crate::kernel::rope::rope_store) or its form with head norms, the
//! [split](crate::kernel::attention::flash_attention_decode_split) attention and its
//! [join](crate::kernel::attention::flash_attention_join) do as three kernels, but for q, which stays as it is. A kernel of
//! decoding takes some microseconds even where it moves next to nothing, so that a layer is faster with fewer of them.
//!
//! The products run on tensor cores (compute capability 8.0). A threadgroup has up to eight of the heads that share keys, its
//! batch, and eight or four SIMD groups, each of them a stream, or half of one for heads of more than 128 elements. Tiles of 16 keys
//! go in turn to the streams of as many threadgroups as there are tiles for; the row's own key and value, which are not read from memory, go to the first
//! threadgroup. Each threadgroup leaves its part, and the last one to arrive joins them.
//!
//! The output is floats or, where only products on tensor cores read it, halves in tiles as
//! [`half_rows`](crate::kernel::convert::half_rows) makes them, but with 1 as the factor of each row. It is a weighted mean of
//! values, and values are halves, so that it is at most 65504 and loses no more by rounding than the values have lost. Values of 8
//! bits can be larger, since their scale is a half; their mean is cut off at 65504.
//!
//! Keys with a centre are in the pages less it, and so is the row's own key before its score is computed.

use akunu_types::params::{DecodeAttentionParams, Row};
use akunu_types::{KvFormat, SharedStruct};
use half::f16;

use crate::case::{Case, Rng};
use crate::chip::{ChipConfig, SIMD_WIDTH};
use crate::constant::{Constant, Constants};
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::bytes;
use crate::kernel::attention::formula::{Memory, PartOf, softcap};
use crate::kernel::attention::mask::Mask;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::kernel::nvidia::decode_gemm::QUAD;
use crate::kernel::pages::{self, Pages};
use crate::kernel::rope::{
    Centre, Frequencies, Style, case_centres, case_table, centre_bytes, centring, move_to_centres,
    rounding, table_bytes,
};
use crate::table::{Args, Element, Family, KernelRow, Launch, read, read_write, write};
use crate::twin::Twin;

/// The largest head.
pub const MAX_HEAD_DIM: u32 = 256;
/// Elements of a head are a multiple of this: of a lane's chunk in each of the two halves that turn together.
pub const HEAD_STEP: u32 = 64;
/// Most threadgroups for the heads that share keys.
pub const MAX_GROUPS: u32 = 64;
/// Slots of a tile.
const KEY_TILE: u32 = 16;
/// SIMD groups of a threadgroup, and of a small one. As many fit on a core as two of the large ones have.
const N_SIMD_GROUPS: u32 = 8;
const FEW_SIMD_GROUPS: u32 = 4;
/// Most heads of a batch: half the rows of a matrix, since what rounding loses takes the other half.
const BATCH_HEADS: u32 = 8;

/// The row of the kernel with interleaved pairs.
pub const INTERLEAVED: KernelRow = KernelRow {
    name: ("decode_attention_f16", ""),
    dtype: None,
    family: Family::Nvidia,
    source: "decode_attention",
    bindings: &[
        read(0, "q", Element::F32),
        read(1, "k", Element::F32),
        read(2, "v", Element::F32),
        read_write(3, "K", Element::F16),
        read_write(4, "V", Element::F16),
        read(6, "rows", Element::Row),
        read(7, "table", Element::U32),
        read(8, "freqs", Element::F32),
        read(9, "q_norm", Element::F32),
        read(10, "k_norm", Element::F32),
        read_write(11, "O", Element::F32),
        read_write(12, "parts", Element::F32),
        read_write(13, "weights", Element::F32),
        read_write(14, "arrived", Element::U32),
        write(15, "halves", Element::F16),
        write(16, "factors", Element::F32),
        read(17, "centre", Element::F32),
    ],
    params_index: 5,
    params: DecodeAttentionParams::LAYOUT,
    constants: &[
        Constant::HeadDim,
        Constant::Window,
        Constant::Softcap,
        Constant::FreqTable,
        Constant::HeadNorm,
        Constant::KeyCentre,
        Constant::KvQ8,
    ],
    launch: |args, _| launch(args),
    required,
    work,
    twin: |t| twin(t, Style::Interleaved),
    cases: |_| cases(Style::Interleaved),
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("decode_attention_neox_f16", ""),
    twin: |t| twin(t, Style::SplitHalves),
    cases: |_| cases(Style::SplitHalves),
    ..INTERLEAVED
};

/// Whether the kernels take such heads.
pub fn takes(n_heads: u32, n_kv_heads: u32, head_dim: u32) -> bool {
    (1..=n_heads).contains(&n_kv_heads)
        && n_heads.is_multiple_of(n_kv_heads)
        && (HEAD_STEP..=MAX_HEAD_DIM).contains(&head_dim)
        && head_dim.is_multiple_of(HEAD_STEP)
}

/// Streams of a threadgroup: of larger heads, two SIMD groups have half of the values each.
const fn streams(p: &DecodeAttentionParams) -> u32 {
    if p.head_dim <= 128 {
        p.n_simd_groups
    } else {
        p.n_simd_groups / 2
    }
}

/// Heads that share keys.
fn n_shared(p: &DecodeAttentionParams) -> u32 {
    p.n_heads.checked_div(p.n_kv_heads).unwrap_or(0)
}

/// Batches of the heads that share keys.
fn batches(p: &DecodeAttentionParams) -> u32 {
    n_shared(p).div_ceil(BATCH_HEADS)
}

/// Batches of all rows.
fn all_batches(p: &DecodeAttentionParams) -> u32 {
    p.n_rows.max(1) * p.n_kv_heads * batches(p)
}

/// SIMD groups of a threadgroup: few where the batches of all rows are more than large threadgroups run at once. Most of the time
/// of a short text goes to what comes before its first key.
pub fn simd_groups(p: &DecodeAttentionParams, chip: &ChipConfig) -> u32 {
    let take_turns = all_batches(p) > 2 * chip.gpu_cores;
    match take_turns && n_shared(p) <= FEW_SIMD_GROUPS {
        true => FEW_SIMD_GROUPS,
        false => N_SIMD_GROUPS,
    }
}

/// Threadgroups for each batch: two on each core, which hide each other's waiting, as long as each has a tile for all of its
/// streams.
pub fn groups(p: &DecodeAttentionParams, max_keys: u32, chip: &ChipConfig) -> u32 {
    let busy = max_keys.div_ceil(KEY_TILE * streams(p));
    let filling = 2 * chip.gpu_cores / all_batches(p);
    filling.min(busy).clamp(1, MAX_GROUPS)
}

/// Shapes that the kernel cannot read get an empty grid, which the plan check refuses; so do heads whose size is not a
/// constant, since the registers of a threadgroup would not suffice.
fn launch(args: &Args) -> Launch {
    let p: DecodeAttentionParams = args.params();
    let head_dim = args.constants.u32(Constant::HeadDim);
    let is_taken = takes(p.n_heads, p.n_kv_heads, p.head_dim)
        && head_dim == Some(p.head_dim)
        && (1..=MAX_GROUPS).contains(&p.n_groups)
        && [FEW_SIMD_GROUPS, N_SIMD_GROUPS].contains(&p.n_simd_groups)
        && n_shared(&p).min(BATCH_HEADS) <= p.n_simd_groups
        && has_room_for_halves(&p)
        && Pages::from((&p, args.constants)).are_usable();
    if !is_taken {
        return Launch::new([0; 3], [SIMD_WIDTH, 1, 1]);
    }
    Launch::new(
        [p.n_kv_heads, p.n_groups, p.n_rows * batches(&p)],
        [p.n_simd_groups * SIMD_WIDTH, 1, 1],
    )
}

/// How halves lie, where the output is halves.
fn order_of_halves(p: &DecodeAttentionParams) -> Option<Order> {
    Some(Order::of_code(p.order)).filter(|&order| order != Order::Rows)
}

/// Whether a row of halves, where there are any, is whole blocks of a tile.
fn has_room_for_halves(p: &DecodeAttentionParams) -> bool {
    order_of_halves(p).is_none()
        || (p.half_stride.is_multiple_of(QUAD)
            && u64::from(p.half_stride) >= u64::from(p.n_heads) * u64::from(p.head_dim))
}

/// Bytes of the parts and of their weights.
pub fn part_bytes(p: &DecodeAttentionParams) -> [usize; 2] {
    [
        bytes::<f32>(&[p.n_rows, p.n_heads, p.n_groups, p.head_dim]),
        bytes::<f32>(&[p.n_rows, p.n_heads, p.n_groups]),
    ]
}

/// Bytes of the counters.
pub fn counter_bytes(p: &DecodeAttentionParams) -> usize {
    bytes::<u32>(&[p.n_rows, p.n_kv_heads, batches(p)])
}

fn required(args: &Args) -> Vec<usize> {
    let p: DecodeAttentionParams = args.params();
    let pages = Pages::from((&p, args.constants));
    let q = bytes::<f32>(&[p.n_rows, p.n_heads, p.head_dim]);
    let kv = bytes::<f32>(&[p.n_rows, p.n_kv_heads, p.head_dim]);
    let norm = match args.constants.bool(Constant::HeadNorm) {
        true => bytes::<f32>(&[p.head_dim]),
        false => 0,
    };
    let [parts, weights] = part_bytes(&p);
    let (floats, halves, factors) = match order_of_halves(&p) {
        None => (q, 0, 0),
        Some(order) => (
            0,
            bytes::<f16>(&[order.rows(p.n_rows), p.half_stride]),
            bytes::<f32>(&[p.n_rows]),
        ),
    };
    vec![
        q,
        kv,
        kv,
        pages.pool_bytes(),
        pages.pool_bytes(),
        bytes::<Row>(&[p.n_rows]),
        pages.table_bytes(),
        table_bytes(args, p.head_dim),
        norm,
        norm,
        floats,
        parts,
        weights,
        counter_bytes(&p),
        halves,
        factors,
        centre_bytes(args, p.n_kv_heads, p.head_dim),
    ]
}

/// As attention counts it: all the keys that a row can see. The own key and value are written.
fn work(args: &Args, once: Work) -> Work {
    let p: DecodeAttentionParams = args.params();
    let pages = Pages::from((&p, args.constants));
    let n_slots = pages.max_slots();
    let n_keys = (Mask::new(args.constants).window).map_or(n_slots, |window| window.min(n_slots));
    let keys = Traffic {
        read: pages
            .slot_bytes(&[p.n_rows, n_keys])
            .min(pages.pool_bytes()),
        written: pages.slot_bytes(&[p.n_rows]),
    };
    let entries = bytes::<u32>(&[p.n_rows, p.table_stride]).min(pages.table_bytes());
    let out = Traffic::written(once.traffic[10].written);
    once.with(3, keys)
        .with(4, keys)
        .with(6, Traffic::read(entries))
        .with(10, out)
        .with_flops(2 * multiply_adds(&[p.n_rows, n_keys, p.n_heads, p.head_dim]))
}

fn twin(t: &mut Twin, style: Style) {
    for row in 0..t.params::<DecodeAttentionParams>().n_rows as usize {
        let output = twin_row(t, row, style);
        leave(t, row, &output);
    }
}

/// Stores the output of a row: floats, or halves with zeros behind them and 1 as their factor.
fn leave(t: &mut Twin, row: usize, output: &[f32]) {
    let p: DecodeAttentionParams = t.params();
    let Some(order) = order_of_halves(&p) else {
        t.write::<f32>(11)[row * output.len()..][..output.len()].copy_from_slice(output);
        return;
    };
    let largest = match pages::format(t.constants()) {
        KvFormat::F16 => f32::INFINITY,
        KvFormat::Q8 => f16::MAX.to_f32(),
    };
    let stride = p.half_stride as usize;
    for i in 0..stride {
        let x = output.get(i).copied().unwrap_or_default();
        t.write::<f16>(15)[order.place(stride, row, i)] = f16::from_f32(x.clamp(-largest, largest));
    }
    t.write::<f32>(16)[row] = 1.0;
}

/// The output of a row. Its key and value, and its parts if there are several, are stored.
fn twin_row(t: &mut Twin, index: usize, style: Style) -> Vec<f32> {
    let p: DecodeAttentionParams = t.params();
    let constants = t.constants();
    let pages = Pages::from((&p, constants));
    let (row, table) = (t.read::<Row>(6)[index], t.read::<u32>(7));
    let head_dim = p.head_dim as usize;
    let frequencies = Frequencies {
        table: (constants.bool(Constant::FreqTable)).then_some(t.read::<f32>(8)),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim,
    };
    let turn = |head: &[f32], norm: &[f32]| {
        let mut normal = head.to_vec();
        if constants.bool(Constant::HeadNorm) {
            rmsnorm(head, norm, p.eps, &mut normal);
        }
        frequencies.turn(&normal, row.position as f32, style)
    };
    let own = |binding: u8, n_heads: u32| {
        let len = n_heads as usize * head_dim;
        &t.read::<f32>(binding)[index * len..][..len]
    };
    let q = own(0, p.n_heads);
    let [k, v] = [1, 2].map(|binding| own(binding, p.n_kv_heads));
    let (q_norm, k_norm) = (t.read::<f32>(9), t.read::<f32>(10));
    let at = |slot: usize, head: usize| pages.slot_at(table, row.sequence, slot, head);
    if row.is_active() {
        for (head, (k, v)) in (k.chunks(head_dim).zip(v.chunks(head_dim))).enumerate() {
            let own = at(row.slot as usize, head);
            let centre = Centre::of(t, 17, head, head_dim);
            pages.store(t.write(3), own, &centre.subtract(&turn(k, k_norm)));
            pages.store(t.write(4), own, v);
        }
    }
    let (k, v) = (t.copy::<u8>(3), t.copy::<u8>(4));
    let memory = Memory {
        pages,
        k: &k,
        v: &v,
        scale: p.scale,
        cap: softcap(constants),
    };
    let seen = Mask::new(constants).seen(&row);
    let share = Share::new(&p, seen.slots().collect());
    let group = (p.n_heads / p.n_kv_heads) as usize;
    let mut output = Vec::with_capacity(q.len());
    for (head, query) in q.chunks(head_dim).enumerate() {
        let query = turn(query, q_norm);
        let attend = |slots: Vec<usize>| {
            memory.attend(&query, slots.into_iter().map(|slot| at(slot, head / group)))
        };
        output.extend(attend(share.slots.clone()).output);
        let head = index * p.n_heads as usize + head;
        for part in (0..share.n_parts).filter(|_| share.n_parts > 1) {
            let of_part: PartOf = attend(share.of(part));
            let at = head * p.n_groups as usize + part;
            t.write::<f32>(12)[at * head_dim..][..head_dim].copy_from_slice(&of_part.output);
            t.write::<f32>(13)[at] = of_part.weight;
        }
    }
    output
}

/// How the slots that a row sees, of which the last is its own, are shared by threadgroups.
struct Share {
    slots: Vec<usize>,
    n_streams: usize,
    n_parts: usize,
}

impl Share {
    fn new(p: &DecodeAttentionParams, slots: Vec<usize>) -> Share {
        let tile = |slot: &usize| slot / KEY_TILE as usize;
        let earlier = &slots[..slots.len().saturating_sub(1)];
        let n_tiles = match earlier {
            [] => 0,
            [first, ..] => {
                slots.last().map_or(0, |own| own - 1) / KEY_TILE as usize - tile(first) + 1
            }
        };
        let n_streams = streams(p) as usize;
        let n_parts = n_tiles.div_ceil(n_streams).clamp(1, p.n_groups as usize);
        Share {
            slots,
            n_streams,
            n_parts,
        }
    }

    /// The slots of a threadgroup.
    fn of(&self, part: usize) -> Vec<usize> {
        let tile = |slot: usize| slot / KEY_TILE as usize;
        let is_mine = |&(at, &slot): &(usize, &usize)| {
            let turn = (tile(slot) - tile(self.slots[0])) % (self.n_parts * self.n_streams);
            let part_of = if at + 1 == self.slots.len() {
                0
            } else {
                turn / self.n_streams
            };
            part_of == part
        };
        let slots = self.slots.iter().enumerate();
        slots.filter(is_mine).map(|(_, &slot)| slot).collect()
    }
}

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
    fn case(self, style: Style) -> Case {
        let (n_heads, n_kv_heads) = self.heads;
        let is_centred = self.is_centred();
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
            "{}: head_dim {}, heads {n_heads}/{n_kv_heads}, {} slots in pages of {}, {} threadgroups of {} SIMD groups, {}{}{}",
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
        let [parts, weights] = part_bytes(&params).map(|bytes| bytes / size_of::<f32>());
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
        let freqs = case_table(true, self.head_dim);
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
            };
            let of_rows = own_keys.chunks_mut(centres.len()).zip(&rows);
            for (keys, row) in of_rows {
                move_to_centres(keys, &centres, &frequencies, row.position, style);
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
            .bind(&vec![f32::NAN; parts])
            .bind(&vec![f32::NAN; weights])
            .bind(&vec![0u32; counter_bytes(&params) / size_of::<u32>()])
            .bind(&vec![f16::NAN; n_halves as usize])
            .bind(&vec![f32::NAN; n_factors as usize])
            .bind(&centres)
    }
}

/// One key; tiles and pages that are just full, or not yet; one threadgroup, several, fewer than there are tiles; heads that
/// share keys and heads that do not; small threadgroups; windows, soft caps, norms, branches, an idle row; floats, and halves in both orders, with and
/// without zeros behind the heads, in a tile that is not full and in two.
fn cases(style: Style) -> Vec<Case> {
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
        setting("values that no half holds", 128, (4, 2), 3)
            .beside([140])
            .q8()
            .values_up_to(100_000.0)
            .halves(Order::Spans),
    ]
    .map(|setting| setting.case(style))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, heads and KV heads, and the SIMD groups and threadgroups of a batch. Breaks when threadgroups of an H200 take turns
    /// that could run at once, when a head has no SIMD group, or when one row has fewer than it could have.
    #[test]
    fn many_rows_have_small_threadgroups() {
        let chip = ChipConfig::h200();
        let table = [
            (1, (32, 8), (8, 32)),
            (33, (32, 8), (8, 1)),
            (34, (32, 8), (4, 1)),
            (64, (16, 8), (4, 1)),
            (64, (9, 3), (8, 1)),
            (64, (64, 8), (8, 1)),
        ];
        for (n_rows, (n_heads, n_kv_heads), expected) in table {
            let mut p = DecodeAttentionParams {
                n_rows,
                n_heads,
                n_kv_heads,
                head_dim: 128,
                ..Default::default()
            };
            p.n_simd_groups = simd_groups(&p, &chip);
            let found = (p.n_simd_groups, groups(&p, 4096, &chip));
            assert_eq!(found, expected, "{n_rows} rows, {n_heads}/{n_kv_heads}");
        }
    }
}
