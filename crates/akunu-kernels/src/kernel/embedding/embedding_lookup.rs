//! `embedding_lookup_<format>`: `y[t][i] = table[token[t]][i]`. An id beyond the table reads its last row.
//!
//! One thread for each run of 8 values.

use akunu_types::params::{EmbeddingParams, MLXParams};
use akunu_types::{DType, SharedStruct};

use crate::chip::ChipConfig;
use crate::constant::Constant;
use crate::cost::{Traffic, Work};
use crate::table::{Args, Family, KernelRow, Launch, Weight, buffers};
use crate::twin::Twin;
use crate::weight::{WeightLayout, run_launch};

buffers! {
    pub struct Buffers, Slices(|args| (tokens, table) = lookup(args), EmbeddingParams at 3) {
        token: read u32 = [tokens],
        table: read Weight = table_bytes(&table),
        y: write f32 = (tokens as usize).saturating_mul(table.cols),
    }
}

/// An empty table has no last row that an id could read.
fn table_bytes(table: &WeightLayout) -> usize {
    match table.rows {
        0 => usize::MAX,
        _ => table.bytes(),
    }
}

/// The row of the kernel table.
pub fn row(dtype: DType) -> KernelRow {
    let (params, constants): (_, &[Constant]) = if dtype.mlx_bits().is_some() {
        (
            MLXParams::LAYOUT,
            &[Constant::GroupSize, Constant::ScaleType],
        )
    } else {
        (EmbeddingParams::LAYOUT, &[])
    };
    KernelRow {
        name: ("embedding_lookup_", ""),
        dtype: Some(dtype),
        family: Family::Embedding,
        source: "embedding_lookup",
        params,
        constants,
        launch,
        work,
        twin,
        #[cfg(feature = "testing")]
        cases: cases::all,
        ..KernelRow::of::<Buffers<()>>()
    }
}

/// Of the table one row a token is read.
fn work(args: &Args, once: Work) -> Work {
    let (tokens, table) = lookup(args);
    let rows = table.row_bytes().saturating_mul(tokens as usize);
    once.with(Buffers::PLACES.table, Traffic::read(rows))
}

/// Number of tokens, and the table.
pub fn lookup(args: &Args) -> (u32, WeightLayout) {
    if args.format().mlx_bits().is_some() {
        return (args.params::<MLXParams>().M, WeightLayout::mlx(args));
    }
    let p: EmbeddingParams = args.params();
    let (rows, cols) = (p.vocab_size as usize, p.dim as usize);
    let table = WeightLayout::contiguous(args.format(), rows, cols);
    (p.num_tokens, table)
}

fn launch(args: &Args, _: &ChipConfig) -> Launch {
    let (tokens, table) = lookup(args);
    run_launch(table.cols as u32, tokens)
}

fn twin(t: &mut Twin) {
    let (_, table) = lookup(&t.args());
    let Slices {
        token,
        table: bytes,
        y,
    } = Slices::of(t);
    let rows = y.chunks_exact_mut(table.cols.max(1));
    for (y, &token) in rows.zip(token) {
        let row = (token as usize).min(table.rows - 1);
        y.copy_from_slice(&table.row(bytes, row));
    }
}

#[cfg(feature = "testing")]
mod cases {
    use super::*;
    use crate::case::{Case, Rng};
    use crate::weight::{case_block, mlx_constants, mlx_params};
    use akunu_program::{MlxLayout, ScaleType};

    /// (tokens, vocabulary, dim): dims below, at and beyond a run and a threadgroup's 1024 values.
    const SHAPES: [(u32, u32, u32); 4] = [(1, 1, 5), (3, 7, 64), (2, 300, 576), (5, 9, 1100)];

    pub fn all(dtype: Option<DType>) -> Vec<Case> {
        let Some(dtype) = dtype else {
            return Vec::new();
        };
        let each = SHAPES.iter().enumerate();
        each.map(|(at, &(tokens, vocab, dim))| {
            let group_size = [32, 64, 128, 64][at];
            let block = case_block(dtype, group_size);
            case(
                dtype,
                (tokens, vocab, dim.next_multiple_of(block)),
                group_size,
            )
        })
        .collect()
    }

    /// Products of a scale and a number are exact in f32, so that a value is rounded once. Only q6_k has 25-bit products, which
    /// `scale * q + offset` and `scale * (q - 32)` round differently, and those of MLX scales in f32 are rounded before the bias
    /// is added, unless a GPU fuses both.
    fn case(dtype: DType, (tokens, vocab, dim): (u32, u32, u32), group_size: u32) -> Case {
        let has_wide_scales = || {
            let params = mlx_params(dtype, vocab, dim, group_size);
            MlxLayout::of(&params).scale_type == ScaleType::F32
        };
        let is_rounded = dtype == DType::Q6_K || dtype.mlx_bits().is_some() && has_wide_scales();
        let nmse = if is_rounded { 1e-13 } else { 0.0 };
        let label = format!("tokens {tokens}, vocabulary {vocab}, dim {dim}");
        let case = if dtype.mlx_bits().is_some() {
            let params = MLXParams {
                M: tokens,
                ..mlx_params(dtype, vocab, dim, group_size)
            };
            let special = mlx_constants(&MlxLayout::of(&params));
            let case = Case::new(label, &params, nmse);
            if tokens == 3 {
                case.constants(special)
            } else {
                case
            }
        } else {
            let params = EmbeddingParams {
                num_tokens: tokens,
                dim,
                vocab_size: vocab,
                ..Default::default()
            };
            Case::new(label, &params, nmse)
        };
        let (_, table) = lookup(&Args {
            dtype: Some(dtype),
            params: case.params.as_bytes(),
            constants: &case.constants,
        });
        let mut rng = Rng::new(u64::from(dim));
        let mut ids: Vec<u32> = (0..tokens).map(|_| rng.below(vocab)).collect();
        ids[0] = vocab + 1; // beyond the table
        case.bind(&ids)
            .bind(&table.random(&mut rng))
            .bind(&vec![0f32; (tokens * dim) as usize])
    }
}
