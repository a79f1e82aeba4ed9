//! bitsandbytes: codes of 4 bits that name numbers of a table, for each 64 values their largest magnitude; or 8 bits a row.
//!
//! | tensor | shape | |
//! |---|---|---|
//! | `weight` | (values / 2, 1) | the code of the first of two values in the upper half of a byte |
//! | `weight.quant_map` | (16) | the numbers of the codes |
//! | `weight.absmax` | (blocks) | the largest magnitudes; codes of 8 bits where they are quantised themselves |
//! | `weight.nested_quant_map`, `weight.nested_absmax` | (256), (blocks / 256) | the numbers of these codes and their factors |
//! | `weight.quant_state.bitsandbytes__nf4` | | JSON with the shape, the sizes of blocks and what is added to magnitudes |
//!
//! Weights of 8 bits have the integers in `weight` and the largest magnitude of each row in `SCB`.

use super::contract::{Method, Methods};
use super::parts::{Floats, Parts};
use super::settings::Settings;
use crate::safetensors::error::{FolderProblem, TripleFault};
use crate::safetensors::rows::{Groups, Integers, Rows};
use ::safetensors::Dtype as ElementType;
use serde::Deserialize;
use std::sync::Arc;

/// Real states have some 200 bytes.
const MAX_STATE_BYTES: usize = 1 << 16;

/// Where the state lies, which names the table.
const STATES: [&str; 2] = [
    "weight.quant_state.bitsandbytes__nf4",
    "weight.quant_state.bitsandbytes__fp4",
];

pub(super) fn methods(_: &Settings) -> Result<Methods, FolderProblem> {
    Ok(vec![Arc::new(Four), Arc::new(Eight)])
}

/// The settings that the file has for a weight of 4 bits.
#[derive(Deserialize)]
struct State {
    shape: Vec<usize>,
    blocksize: usize,
    #[serde(default)]
    nested_blocksize: Option<usize>,
    #[serde(default)]
    nested_offset: Option<f32>,
}

/// The largest magnitudes of blocks.
#[derive(Clone, Copy)]
enum Largest<'a> {
    Plain(Floats<'a>),
    Nested {
        codes: &'a [u8],
        numbers: Floats<'a>,
        factors: Floats<'a>,
        block: usize,
        offset: f32,
    },
}

impl Largest<'_> {
    fn at(self, at: usize) -> f32 {
        match self {
            Largest::Plain(all) => all.at(at),
            Largest::Nested {
                codes,
                numbers,
                factors,
                block,
                offset,
            } => numbers.at(usize::from(codes[at])) * factors.at(at / block) + offset,
        }
    }
}

#[derive(Debug)]
struct Four;

impl Method for Four {
    fn suffixes(&self) -> &'static [&'static str] {
        &[
            "weight",
            "weight.absmax",
            "weight.quant_map",
            "weight.nested_absmax",
            "weight.nested_quant_map",
            STATES[0],
            STATES[1],
        ]
    }

    fn packs(&self, element: ElementType) -> bool {
        element == ElementType::U8
    }

    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault> {
        let state = state(parts)?;
        let weight = parts.need("weight")?;
        let wrong = || weight.fault(format!("the shape {:?} of its state", state.shape));
        let [rows @ (1..), cols @ (1..)] = state.shape[..] else {
            return Err(wrong());
        };
        let n = rows.checked_mul(cols).ok_or_else(wrong)?;
        if weight.bytes.len() != n.div_ceil(2) {
            return Err(wrong());
        }
        let block = state.blocksize;
        let table = parts.need("weight.quant_map")?;
        table.check_shape(&[16])?;
        let numbers = table.floats()?;
        let numbers: [f32; 16] = std::array::from_fn(|code| numbers.at(code));
        let largest = largest(parts, &state, n.div_ceil(block))?;
        let codes = weight.bytes;
        Ok(Rows::numbers([rows, cols], move |row, out| {
            let first = row * cols;
            for (at, number) in (first..).zip(out) {
                let code = codes[at / 2] >> (4 * (1 - at % 2)) & 15;
                *number = numbers[usize::from(code)] * largest.at(at / block);
            }
        }))
    }
}

/// What the JSON says.
fn state(parts: &Parts<'_>) -> Result<State, TripleFault> {
    let part = match parts.find(STATES[1]) {
        Some(part) => part,
        None => parts.need(STATES[0])?,
    };
    let json = part.bytes.get(..part.bytes.len().min(MAX_STATE_BYTES));
    let state = json.and_then(|json| serde_json::from_slice::<State>(json).ok());
    let is_whole = |state: &State| state.blocksize > 0 && state.nested_blocksize != Some(0);
    let wanted = || "JSON with `shape` and `blocksize`".to_string();
    state.filter(is_whole).ok_or_else(|| part.fault(wanted()))
}

/// The largest magnitudes of so many blocks.
fn largest<'a>(
    parts: &Parts<'a>,
    state: &State,
    n_blocks: usize,
) -> Result<Largest<'a>, TripleFault> {
    let absmax = parts.need("weight.absmax")?;
    if absmax.info.dims.n_elements() != n_blocks {
        return Err(absmax.fault(format!("{n_blocks} numbers, one for each block")));
    }
    let ElementType::U8 = absmax.info.element else {
        return Ok(Largest::Plain(absmax.floats()?));
    };
    let block = state.nested_blocksize.unwrap_or(256);
    let table = parts.need("weight.nested_quant_map")?;
    table.check_shape(&[256])?;
    let factors = parts.need("weight.nested_absmax")?;
    let n_factors = n_blocks.div_ceil(block);
    if factors.info.dims.n_elements() != n_factors {
        return Err(factors.fault(format!("{n_factors} numbers")));
    }
    Ok(Largest::Nested {
        codes: absmax.bytes,
        numbers: table.floats()?,
        factors: factors.floats()?,
        block,
        offset: state.nested_offset.unwrap_or(0.0),
    })
}

#[derive(Debug)]
struct Eight;

impl Method for Eight {
    fn suffixes(&self) -> &'static [&'static str] {
        &["weight", "SCB"]
    }

    fn packs(&self, element: ElementType) -> bool {
        element == ElementType::I8
    }

    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault> {
        let (weight, largest) = (parts.need("weight")?, parts.need("SCB")?);
        let [rows, cols] = weight.matrix()?;
        largest.check_shape(&[rows])?;
        let (codes, largest) = (weight.bytes, largest.floats()?);
        Ok(Rows::integers(
            [rows, cols],
            Integers {
                bits: 8,
                groups: Groups::in_order(cols),
                codes: Box::new(move |row, out| {
                    for (found, code) in out.iter_mut().zip(&codes[row * cols..]) {
                        *found = code ^ 128;
                    }
                }),
                scale: Box::new(move |row, _| (largest.at(row) / 127.0, 128.0)),
            },
        ))
    }
}
