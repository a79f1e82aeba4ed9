//! What the rows of texts have to themselves: learned positions, turns in place, and the mean of a text.

use akunu_kernels::kernel::common::mean_rows;
use akunu_kernels::kernel::embedding::{place_rows, pos_embed_add};
use akunu_kernels::kernel::rope::{rope, rope_axes, turn_heads};
use akunu_program::Pairing;
use akunu_types::params::{
    GatherRowsParams, PlaceRowsParams, PosEmbedParams, RoPEAxesParams, RoPEParams, Row,
    TurnHeadsParams,
};

use super::norm::add;
use super::rope::{frequencies, pairing, rotate};
use super::rotation::{Rotations, Turn};
use crate::body::Body;
use crate::call::Call;
use crate::part::Part;
use crate::simd::Lanes;

/// `x[row] += table[entry of the row]`. Parts share the rows.
pub(crate) struct AddLearned;

impl Body for AddLearned {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: PosEmbedParams = call.params();
        let pos_embed_add::Buffers { x, table, rows } = call.buffers();
        let dim = p.dim as usize;
        let table = table.read::<f32>(p.n_positions as usize * dim);
        let rows = rows.read::<Row>(p.n_rows as usize);
        for at in part.range(rows.len()) {
            let entry = &table[pos_embed_add::place(&p, &rows[at]) * dim..][..dim];
            // SAFETY: `own`: parts have different rows.
            unsafe { add::<L>(x.write::<f32>(at * dim, dim), entry) };
        }
    }
}

/// `x[row] = features[row]`, or `x[row] += features[row]`, for rows of images. Parts share the rows.
pub(crate) struct PlaceRows;

impl Body for PlaceRows {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: PlaceRowsParams = call.params();
        let place_rows::Buffers { x, features, rows } = call.buffers();
        let dim = p.dim as usize;
        let rows = rows.read::<Row>(p.n_rows as usize);
        let features = features.read::<f32>(rows.len() * dim);
        for at in part.range(rows.len()).filter(|&at| rows[at].is_of_image()) {
            let features = &features[at * dim..][..dim];
            // SAFETY: `own`: parts have different rows.
            let x = unsafe { x.write::<f32>(at * dim, dim) };
            match p.add {
                0 => x.copy_from_slice(features),
                _ => add::<L>(x, features),
            }
        }
    }
}

/// `x[row][head] = turn(x[row][head], position of the row)`. Parts share the rows.
pub(crate) struct Rope;

impl Body for Rope {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: RoPEParams = call.params();
        let rope::Buffers { x, rows, freqs } = call.buffers();
        let (head_dim, n_heads) = (p.head_dim as usize, p.n_heads as usize);
        let stride = match p.row_stride {
            0 => n_heads * head_dim,
            stride => stride as usize,
        };
        let frequencies = frequencies(call, freqs, head_dim, (p.theta, p.freq_scale));
        let range = part.range(p.n_rows as usize);
        let rows = &rows.read::<Row>(p.n_rows as usize)[range.clone()];
        let positions = rows.iter().map(|row| i64::from(row.position));
        let rotations: &mut Rotations = part.kept.get();
        let turns = rotations.of(&frequencies, positions, pairing(call.kernel));
        for (place, row) in range.enumerate() {
            for head in 0..n_heads {
                let at = row * stride + head * head_dim;
                // SAFETY: `own`: parts have different rows.
                unsafe { rotate::<L>(x.write::<f32>(at, head_dim), turns.at(place)) };
            }
        }
    }
}

/// `x[row][head] = x[row][head] turned by the cosines and sines of the row`. Parts share the rows.
pub(crate) struct TurnHeads;

impl Body for TurnHeads {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: TurnHeadsParams = call.params();
        let turn_heads::Buffers { x, turns } = call.buffers();
        let (n_rows, n_heads, head_dim) =
            (p.n_rows as usize, p.n_heads as usize, p.head_dim as usize);
        let turns = turns.read::<f32>(n_rows * head_dim);
        for row in part.range(n_rows) {
            let (cosines, sines) = turns[row * head_dim..][..head_dim].split_at(head_dim / 2);
            let turn = Turn {
                cosines,
                sines,
                pairing: Pairing::Halves,
            };
            for head in 0..n_heads {
                let at = (row * n_heads + head) * head_dim;
                // SAFETY: `own`: parts have different rows.
                unsafe { rotate::<L>(x.write::<f32>(at, head_dim), turn) };
            }
        }
    }
}

/// `x[row][head] = turn(x[row][head])`, each pair by the position of the row on its axis. Parts share the rows.
pub(crate) struct RopeAxes;

impl Body for RopeAxes {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: RoPEAxesParams = call.params();
        let rope_axes::Buffers {
            x,
            rows,
            freqs,
            places,
        } = call.buffers();
        let (head_dim, n_heads) = (p.head_dim as usize, p.n_heads as usize);
        let frequencies = frequencies(call, freqs, head_dim, (p.theta, p.freq_scale));
        let n_rows = p.n_rows as usize;
        let (rows, places) = (rows.read::<Row>(n_rows), places.read::<u32>(2 * n_rows));
        let n_pairs = frequencies.turned_dim / 2;
        let [mut cosines, mut sines] = [vec![0.0; n_pairs], vec![0.0; n_pairs]];
        for row in part.range(n_rows) {
            let positions = rope_axes::positions(&rows[row], &places[2 * row..][..2]);
            for (pair, (cosine, sine)) in cosines.iter_mut().zip(&mut sines).enumerate() {
                let position = positions[rope_axes::axis_of(&p, pair)];
                (*cosine, *sine) = frequencies.rotation(position as f32, pair);
            }
            let turn = Turn {
                cosines: &cosines,
                sines: &sines,
                pairing: Pairing::Halves,
            };
            for head in 0..n_heads {
                let at = (row * n_heads + head) * head_dim;
                // SAFETY: `own`: parts have different rows.
                unsafe { rotate::<L>(x.write::<f32>(at, head_dim), turn) };
            }
        }
    }
}

/// `to[i] = mean of the rows of a text`. Parts share the texts.
pub(crate) struct MeanRows;

impl Body for MeanRows {
    #[inline(always)]
    fn run<L: Lanes>(call: &Call, part: &mut Part) {
        let p: GatherRowsParams = call.params();
        let mean_rows::Buffers {
            from,
            outputs,
            to,
            rows,
        } = call.buffers();
        let (dim, capacity) = (p.dim as usize, p.row_capacity as usize);
        let (from, rows) = (from.read::<f32>(capacity * dim), rows.read::<Row>(capacity));
        let outputs = outputs.read::<u32>(p.n_rows as usize);
        for at in part.range(outputs.len()) {
            let (output, row) = (outputs[at] as usize, rows[outputs[at] as usize]);
            let first = output - row.position as usize;
            // SAFETY: `own`: parts have different rows.
            unsafe {
                let to = to.write::<f32>(at * dim, dim);
                to.fill(0.0);
                for text_row in from[first * dim..]
                    .chunks_exact(dim)
                    .take(row.length as usize)
                {
                    add::<L>(to, text_row);
                }
                for to in to {
                    *to /= row.length as f32;
                }
            }
        }
    }
}
