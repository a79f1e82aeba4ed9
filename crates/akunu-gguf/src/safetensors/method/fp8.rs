//! FP8: `scale * value` with values of the type E4M3, one scale for the whole weight, for each row, or for blocks of both.
//!
//! | tensor | shape |
//! |---|---|
//! | `weight` | (rows, columns), type F8_E4M3 |
//! | `weight_scale_inv` or `weight_scale` | none, (1), (rows), (rows, 1) or (blocks of rows, blocks of columns) |

use super::contract::{Method, Methods};
use super::parts::{Part, Parts};
use super::settings::Settings;
use crate::safetensors::error::{FolderProblem, TripleFault};
use crate::safetensors::float::e4m3;
use crate::safetensors::rows::Rows;
use ::safetensors::Dtype as ElementType;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Fp8 {
    /// Rows and columns of a block, where the settings name them.
    pub block: Option<[usize; 2]>,
}

pub(super) fn methods(settings: &Settings) -> Result<Methods, FolderProblem> {
    let block = settings.block("weight_block_size")?;
    Ok(vec![Arc::new(Fp8 { block })])
}

impl Method for Fp8 {
    fn suffixes(&self) -> &'static [&'static str] {
        &["weight", "weight_scale_inv", "weight_scale"]
    }

    fn packs(&self, element: ElementType) -> bool {
        matches!(element, ElementType::F8_E4M3 | ElementType::F8_E5M2)
    }

    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault> {
        let weight = parts.need("weight")?;
        let [rows, cols] = weight.matrix()?;
        let values = weight.of_bytes(ElementType::F8_E4M3)?;
        let scale = match parts.find("weight_scale_inv") {
            Some(scale) => scale,
            None => parts.need("weight_scale")?,
        };
        let [block_rows, block_cols] = blocks(&scale, [rows, cols], self.block)?;
        let (scales, n_across) = (scale.floats()?, cols.div_ceil(block_cols));
        let numbers: [f32; 256] = std::array::from_fn(|bits| e4m3(bits as u8));
        Ok(Rows::numbers([rows, cols], move |row, out| {
            let first = row / block_rows * n_across;
            let values = &values[row * cols..][..cols];
            let blocks = values.chunks(block_cols).zip(out.chunks_mut(block_cols));
            for (at, (values, out)) in blocks.enumerate() {
                let scale = scales.at(first + at);
                for (number, value) in out.iter_mut().zip(values) {
                    *number = scale * numbers[usize::from(*value)];
                }
            }
        }))
    }
}

/// Rows and columns that share a scale: those of the settings, or what the shape of the scales says.
fn blocks(
    scale: &Part<'_>,
    [rows, cols]: [usize; 2],
    named: Option<[usize; 2]>,
) -> Result<[usize; 2], TripleFault> {
    let shape = scale.shape();
    let (down, across) = match shape[..] {
        [1] => (1, 1),
        [down] => (down, 1),
        [down, across] => (down, across),
        _ => return Err(scale.fault("at most two dimensions".to_string())),
    };
    if let Some([block_rows, block_cols]) = named
        && (rows.div_ceil(block_rows), cols.div_ceil(block_cols)) == (down, across)
    {
        return Ok([block_rows, block_cols]);
    }
    match rows.is_multiple_of(down) && cols.is_multiple_of(across) {
        true => Ok([rows / down, cols / across]),
        false => Err(scale.fault(format!("a scale for each block of {rows} x {cols} values"))),
    }
}
