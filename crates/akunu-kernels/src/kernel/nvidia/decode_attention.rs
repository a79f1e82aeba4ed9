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

#[cfg(feature = "testing")]
mod cases;
mod shape;

use akunu_program::Pairing;
use akunu_types::KvFormat;
use akunu_types::params::{DecodeAttentionParams, Row};
use half::f16;

use self::shape::{
    BATCH_HEADS, FEW_SIMD_GROUPS, KEY_TILE, N_SIMD_GROUPS, batches, n_shared, streams,
};
pub use self::shape::{
    HEAD_STEP, MAX_GROUPS, MAX_HEAD_DIM, groups, simd_groups, takes, takes_turn,
};
use crate::chip::SIMD_WIDTH;
use crate::constant::{Constant, Constants};
use crate::cost::{Traffic, Work, multiply_adds};
use crate::extent::{bytes, product};
use crate::kernel::attention::formula::{Memory, PartOf, softcap};
use crate::kernel::attention::mask::Mask;
use crate::kernel::convert::half_rows::Order;
use crate::kernel::norm::rmsnorm::rmsnorm;
use crate::kernel::nvidia::staging::QUAD;
use crate::kernel::pages::{self, Pages};
use crate::kernel::rope::{Centre, Frequencies, centre_len, table_len, turned_dim};
use crate::table::{Args, Family, KernelRow, Launch, Pool, buffers};
use crate::twin::Twin;

buffers! {
    pub struct Buffers, Slices(|args| (p, pages, output) = sizes(args), DecodeAttentionParams at 5) {
        q: read f32 = [p.n_rows, p.n_heads, p.head_dim],
        k: read f32 = [p.n_rows, p.n_kv_heads, p.head_dim],
        v: read f32 = [p.n_rows, p.n_kv_heads, p.head_dim],
        K: change Pool = pages.pool_bytes(),
        V: change Pool = pages.pool_bytes(),
        rows: read Row = [p.n_rows],
        table: read u32 = pages.table_len(),
        freqs: read f32 = table_len(args, p.head_dim),
        q_norm: read f32 = norm_len(args, &p),
        k_norm: read f32 = norm_len(args, &p),
        O: change f32 = output.floats,
        parts: change f32 = [p.n_rows, p.n_heads, p.n_groups, p.head_dim],
        weights: change f32 = [p.n_rows, p.n_heads, p.n_groups],
        arrived: change u32 = [p.n_rows, p.n_kv_heads, batches(&p)],
        halves: write f16 = output.halves,
        factors: write f32 = output.factors,
        centre: read f32 = centre_len(args, p.n_kv_heads, p.head_dim),
    }
}

/// The row of the kernel with interleaved pairs.
pub const INTERLEAVED: KernelRow = KernelRow {
    name: ("decode_attention_f16", ""),
    family: Family::Nvidia,
    source: "decode_attention",
    constants: &[
        Constant::HeadDim,
        Constant::Window,
        Constant::Softcap,
        Constant::FreqTable,
        Constant::HeadNorm,
        Constant::KeyCentre,
        Constant::TurnedDim,
        Constant::KvQ8,
    ],
    launch: |args, _| launch(args),
    work,
    twin: |t| twin(t, Pairing::Interleaved),
    #[cfg(feature = "testing")]
    cases: |_| cases::cases(Pairing::Interleaved),
    ..KernelRow::of::<Buffers<()>>()
};

/// The row of the kernel that pairs the halves of a head.
pub const NEOX: KernelRow = KernelRow {
    name: ("decode_attention_neox_f16", ""),
    twin: |t| twin(t, Pairing::Halves),
    #[cfg(feature = "testing")]
    cases: |_| cases::cases(Pairing::Halves),
    ..INTERLEAVED
};

/// Shapes that the kernel cannot read get an empty grid, which the plan check refuses; so do heads whose size is not a
/// constant, since the registers of a threadgroup would not suffice.
fn launch(args: &Args) -> Launch {
    let p: DecodeAttentionParams = args.params();
    let head_dim = args.constants.u32(Constant::HeadDim);
    let is_taken = takes(p.n_heads, p.n_kv_heads, p.head_dim)
        && head_dim == Some(p.head_dim)
        && takes_turn(p.head_dim, turned_dim(args.constants, p.head_dim))
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

/// Elements of the output: floats, or halves and their factors.
struct Output {
    floats: usize,
    halves: usize,
    factors: usize,
}

impl Output {
    fn of(p: &DecodeAttentionParams) -> Output {
        match order_of_halves(p) {
            None => Output {
                floats: product(&[p.n_rows, p.n_heads, p.head_dim]),
                halves: 0,
                factors: 0,
            },
            Some(order) => Output {
                floats: 0,
                halves: product(&[order.rows(p.n_rows), p.half_stride]),
                factors: p.n_rows as usize,
            },
        }
    }
}

/// The params, the pages and the output.
fn sizes(args: &Args) -> (DecodeAttentionParams, Pages, Output) {
    let p: DecodeAttentionParams = args.params();
    (p, Pages::from((&p, args.constants)), Output::of(&p))
}

/// Elements of the norm of a head, if there is one.
fn norm_len(args: &Args, p: &DecodeAttentionParams) -> usize {
    match args.constants.bool(Constant::HeadNorm) {
        true => p.head_dim as usize,
        false => 0,
    }
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
    let places = Buffers::PLACES;
    let entries = bytes::<u32>(&[p.n_rows, p.table_stride]).min(once.traffic[places.table].read);
    let out = Traffic::written(once.traffic[places.O].written);
    once.with(places.K, keys)
        .with(places.V, keys)
        .with(places.table, Traffic::read(entries))
        .with(places.O, out)
        .with_flops(2 * multiply_adds(&[p.n_rows, n_keys, p.n_heads, p.head_dim]))
}

fn twin(t: &mut Twin, pairing: Pairing) {
    let (p, constants): (DecodeAttentionParams, _) = (t.params(), t.constants());
    let mut b = Slices::of(t);
    for row in 0..p.n_rows as usize {
        let output = twin_row(&p, constants, &mut b, row, pairing);
        leave(&p, constants, &mut b, row, &output);
    }
}

/// Stores the output of a row: floats, or halves with zeros behind them and 1 as their factor.
fn leave(
    p: &DecodeAttentionParams,
    constants: &Constants,
    b: &mut Slices,
    row: usize,
    output: &[f32],
) {
    let Some(order) = order_of_halves(p) else {
        b.O[row * output.len()..][..output.len()].copy_from_slice(output);
        return;
    };
    let largest = match pages::format(constants) {
        KvFormat::F16 => f32::INFINITY,
        KvFormat::Q8 => f16::MAX.to_f32(),
    };
    let stride = p.half_stride as usize;
    for i in 0..stride {
        let x = output.get(i).copied().unwrap_or_default();
        b.halves[order.place(stride, row, i)] = f16::from_f32(x.clamp(-largest, largest));
    }
    b.factors[row] = 1.0;
}

/// The output of a row. Its key and value, and its parts if there are several, are stored.
fn twin_row(
    p: &DecodeAttentionParams,
    constants: &Constants,
    b: &mut Slices,
    index: usize,
    pairing: Pairing,
) -> Vec<f32> {
    let pages = Pages::from((p, constants));
    let row = b.rows[index];
    let head_dim = p.head_dim as usize;
    let frequencies = Frequencies {
        table: (constants.bool(Constant::FreqTable)).then_some(b.freqs),
        theta: p.theta,
        scale: p.freq_scale,
        head_dim,
        turned_dim: turned_dim(constants, p.head_dim) as usize,
    };
    let turn = |head: &[f32], norm: &[f32]| {
        let mut normal = head.to_vec();
        if constants.bool(Constant::HeadNorm) {
            rmsnorm(head, norm, p.eps, &mut normal);
        }
        frequencies.turn(&normal, row.position as f32, pairing)
    };
    let own = |all: &[f32], n_heads: u32| -> Vec<f32> {
        let len = n_heads as usize * head_dim;
        all[index * len..][..len].to_vec()
    };
    let q = own(b.q, p.n_heads);
    let (k, v) = (own(b.k, p.n_kv_heads), own(b.v, p.n_kv_heads));
    let at = |slot: usize, head: usize| pages.slot_at(b.table, row.sequence, slot, head);
    if row.is_active() {
        for (head, (k, v)) in (k.chunks(head_dim).zip(v.chunks(head_dim))).enumerate() {
            let own = at(row.slot as usize, head);
            let centre = Centre::of(b.centre, head, head_dim);
            pages.store(b.K, own, &centre.subtract(&turn(k, b.k_norm)));
            pages.store(b.V, own, v);
        }
    }
    let memory = Memory {
        pages,
        k: b.K,
        v: b.V,
        scale: p.scale,
        cap: softcap(constants),
    };
    let seen = Mask::new(constants).seen(&row);
    let share = Share::new(p, seen.slots().collect());
    let group = (p.n_heads / p.n_kv_heads) as usize;
    let mut output = Vec::with_capacity(q.len());
    for (head, query) in q.chunks(head_dim).enumerate() {
        let query = turn(query, b.q_norm);
        let attend = |slots: Vec<usize>| {
            memory.attend(&query, slots.into_iter().map(|slot| at(slot, head / group)))
        };
        output.extend(attend(share.slots.clone()).output);
        let head = index * p.n_heads as usize + head;
        for part in (0..share.n_parts).filter(|_| share.n_parts > 1) {
            let of_part: PartOf = attend(share.of(part));
            let at = head * p.n_groups as usize + part;
            b.parts[at * head_dim..][..head_dim].copy_from_slice(&of_part.output);
            b.weights[at] = of_part.weight;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chip::ChipConfig;

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
