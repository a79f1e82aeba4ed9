//! `compressed-tensors`, which vLLM's tools write: packed integers, integers of 8 bits, or FP8.
//!
//! | tensor | shape | |
//! |---|---|---|
//! | `weight_packed` | (rows, words) | streams of codes of 4 or 8 bits, each raised by half of their range |
//! | `weight_shape` | (2) | rows and columns |
//! | `weight_scale` | (rows, groups) | |
//! | `weight_zero_point` | (words, groups) | codes down each column; without it all are half of the range |
//! | `weight_g_idx` | (columns) | the group of each column, where they are sorted |
//!
//! Integers of 8 bits may also lie in `weight` as they are, with zeros of the same type; FP8 does, with [`Fp8`]'s scales, and FP4 as [`Fp4`] says.

use super::bits::{code, n_words};
use super::contract::{Method, Methods};
use super::fp4::Fp4;
use super::fp8::Fp8;
use super::parts::{Part, Parts};
use super::settings::Settings;
use crate::safetensors::error::{FolderProblem, TripleFault};
use crate::safetensors::rows::{Groups, Integers, Rows};
use ::safetensors::Dtype as ElementType;
use serde_json::Value;
use std::sync::Arc;

/// Formats of weights; `mixed-precision` has a format for each group of layers.
const FORMATS: [&str; 8] = [
    "dense",
    "pack-quantized",
    "int-quantized",
    "float-quantized",
    "naive-quantized",
    "nvfp4-pack-quantized",
    "mxfp4-pack-quantized",
    "mixed-precision",
];
const KNOWN: &str = "`pack-quantized`, `int-quantized`, `float-quantized`, `naive-quantized`, `nvfp4-pack-quantized`, `mxfp4-pack-quantized` and `mixed-precision`";

pub(super) fn methods(settings: &Settings) -> Result<Methods, FolderProblem> {
    let groups = settings.get("config_groups").and_then(Value::as_object);
    let groups = || groups.into_iter().flat_map(|groups| groups.values());
    let own = groups().filter_map(|group| group.get("format")?.as_str());
    let formats = [settings.text("format", "dense")]
        .into_iter()
        .chain(own.map(str::to_string));
    for format in formats {
        if !FORMATS.contains(&&*format) {
            return Err(settings.number("format", format, KNOWN));
        }
    }
    let blocks = groups().filter_map(|group| group.get("weights")?.as_object());
    let blocks = blocks.map(|weights| {
        let key = "config_groups.weights";
        let fields = weights;
        Settings { key, fields }.block("block_structure")
    });
    let blocks: Result<Vec<_>, _> = blocks.collect();
    let block = blocks?.into_iter().flatten().next();
    Ok(vec![
        Arc::new(Packed),
        Arc::new(Bytes),
        Arc::new(Fp4::Compressed),
        Arc::new(Fp8 { block }),
    ])
}

/// Codes in words.
#[derive(Debug)]
struct Packed;

impl Method for Packed {
    fn suffixes(&self) -> &'static [&'static str] {
        &[
            "weight_packed",
            "weight_scale",
            "weight_zero_point",
            "weight_shape",
            "weight_g_idx",
        ]
    }

    fn packs(&self, element: ElementType) -> bool {
        element == ElementType::I32
    }

    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault> {
        let (weight, shape) = (parts.need("weight_packed")?, parts.need("weight_shape")?);
        let [rows, words] = weight.matrix()?;
        let cols = columns(&shape, rows)?;
        let mut known = [4, 8].into_iter();
        let bits = known.find(|&bits| n_words(cols, bits) == Some(words));
        let bits =
            bits.ok_or_else(|| weight.fault(format!("{cols} codes of 4 or 8 bits a row")))?;
        let scale = parts.need("weight_scale")?;
        let n_groups = n_groups(&scale, [rows, cols])?;
        let groups = match parts.find("weight_g_idx") {
            Some(index) => {
                index.check_shape(&[cols])?;
                let words = index.words()?;
                let within = || format!("groups from 0 to {}", n_groups - 1);
                Groups::listed(cols / n_groups, n_groups, cols, |col| words.at(col))
                    .ok_or_else(|| index.fault(within()))?
            }
            None => Groups::in_order(cols / n_groups),
        };
        let zeros = match parts.find("weight_zero_point") {
            Some(zeros) => {
                let zero_words = n_words(rows, bits).unwrap_or(usize::MAX);
                zeros.check_shape(&[zero_words, n_groups])?;
                Some(zeros.words()?)
            }
            None => None,
        };
        let (codes, scales) = (weight.words()?, scale.floats()?);
        let zero = move |row: usize, group: usize| match zeros {
            Some(zeros) => code(|word| zeros.at(word * n_groups + group), bits, row),
            None => 1 << (bits - 1),
        };
        Ok(Rows::integers(
            [rows, cols],
            Integers {
                bits,
                groups,
                codes: Box::new(move |row, out| {
                    for (col, found) in out.iter_mut().enumerate() {
                        *found = code(|word| codes.at(row * words + word), bits, col) as u8;
                    }
                }),
                scale: Box::new(move |row, group| {
                    (scales.at(row * n_groups + group), zero(row, group) as f32)
                }),
            },
        ))
    }
}

/// The columns that `weight_shape` names.
fn columns(shape: &Part<'_>, rows: usize) -> Result<usize, TripleFault> {
    let sizes: Vec<i64> = match shape.info.element {
        ElementType::I64 => shape
            .bytes
            .as_chunks()
            .0
            .iter()
            .map(|n| i64::from_le_bytes(*n))
            .collect(),
        ElementType::I32 => {
            let all = shape.bytes.as_chunks().0.iter();
            all.map(|n| i32::from_le_bytes(*n).into()).collect()
        }
        _ => Vec::new(),
    };
    match sizes[..] {
        [own, cols @ (1..)] if usize::try_from(own) == Ok(rows) => usize::try_from(cols).ok(),
        _ => None,
    }
    .ok_or_else(|| shape.fault(format!("the numbers {rows} and that of the columns")))
}

/// Groups of a row, all of one size.
fn n_groups(scale: &Part<'_>, [rows, cols]: [usize; 2]) -> Result<usize, TripleFault> {
    match scale.shape()[..] {
        [found, n] if found == rows && cols.is_multiple_of(n) => Ok(n),
        _ => Err(scale.fault(format!("{rows} rows of as many groups of {cols} values"))),
    }
}

/// Integers of 8 bits, as they are.
#[derive(Debug)]
struct Bytes;

impl Method for Bytes {
    fn suffixes(&self) -> &'static [&'static str] {
        &["weight", "weight_scale", "weight_zero_point"]
    }

    fn packs(&self, element: ElementType) -> bool {
        element == ElementType::I8
    }

    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault> {
        let (weight, scale) = (parts.need("weight")?, parts.need("weight_scale")?);
        let [rows, cols] = weight.matrix()?;
        // One scale for all rows, or groups of each.
        let is_one = scale.info.dims.n_elements() == 1;
        let n_groups = if is_one {
            1
        } else {
            n_groups(&scale, [rows, cols])?
        };
        let at = move |row: usize, group: usize| if is_one { 0 } else { row * n_groups + group };
        let zeros = match parts.find("weight_zero_point") {
            Some(zeros) => {
                zeros.check_shape(&scale.shape())?;
                Some(zeros.of_bytes(ElementType::I8)?)
            }
            None => None,
        };
        let (codes, scales) = (weight.of_bytes(ElementType::I8)?, scale.floats()?);
        Ok(Rows::integers(
            [rows, cols],
            Integers {
                bits: 8,
                groups: Groups::in_order(cols / n_groups),
                codes: Box::new(move |row, out| {
                    for (found, code) in out.iter_mut().zip(&codes[row * cols..]) {
                        *found = code ^ 128;
                    }
                }),
                scale: Box::new(move |row, group| {
                    let zero = zeros.map_or(128, |zeros| zeros[at(row, group)] ^ 128);
                    (scales.at(at(row, group)), f32::from(zero))
                }),
            },
        ))
    }
}
