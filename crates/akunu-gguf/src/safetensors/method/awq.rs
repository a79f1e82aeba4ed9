//! AWQ: `scale * (code - zero)`, eight codes of 4 bits in a word, those of eight rows in AWQ's order.
//!
//! | tensor | shape | |
//! |---|---|---|
//! | `qweight` | (columns, rows / 8) | the codes of a column |
//! | `qzeros` | (groups, rows / 8) | in the same order |
//! | `scales` | (groups, rows) | |

use super::contract::{Method, Methods};
use super::parts::{Parts, Words};
use super::settings::Settings;
use crate::safetensors::error::{FolderProblem, TripleFault};
use crate::safetensors::rows::{Groups, Integers, Rows};
use ::safetensors::Dtype as ElementType;
use std::sync::Arc;

const BITS: u32 = 4;
/// Codes of a word.
const IN_WORD: usize = 8;
/// The place of each row's code in a word: from the lowest bits on they are those of rows 0 2 4 6 1 3 5 7.
const PLACES: [u32; IN_WORD] = [0, 4, 1, 5, 2, 6, 3, 7];

#[derive(Debug)]
struct Awq {
    /// Columns of a group; `None` for all of them.
    group: Option<usize>,
}

pub(super) fn methods(settings: &Settings) -> Result<Methods, FolderProblem> {
    settings.bits(&[BITS], "4")?;
    let version = settings.text("version", "gemm").to_lowercase();
    if version != "gemm" {
        return Err(settings.number("version", version, "`gemm`"));
    }
    let group = settings.group_size()?;
    Ok(vec![Arc::new(Awq { group })])
}

impl Method for Awq {
    fn suffixes(&self) -> &'static [&'static str] {
        &["qweight", "qzeros", "scales"]
    }

    fn packs(&self, _: ElementType) -> bool {
        true
    }

    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault> {
        let weight = parts.need("qweight")?;
        let [cols, width] = weight.matrix()?;
        let (scales, zeros) = (parts.need("scales")?, parts.need("qzeros")?);
        let rows = width.saturating_mul(IN_WORD);
        let group = self.group.unwrap_or(cols);
        let n_groups = cols.div_ceil(group);
        scales.check_shape(&[n_groups, rows])?;
        zeros.check_shape(&[n_groups, width])?;
        let (codes, scales, zeros) = (weight.words()?, scales.floats()?, zeros.words()?);
        Ok(Rows::integers(
            [rows, cols],
            Integers {
                bits: BITS,
                groups: Groups::in_order(group),
                codes: Box::new(move |row, out| {
                    for (col, found) in out.iter_mut().enumerate() {
                        *found = code(codes, [col, width], row);
                    }
                }),
                scale: Box::new(move |row, group| {
                    let zero = code(zeros, [group, width], row);
                    (scales.at(group * rows + row), f32::from(zero))
                }),
            },
        ))
    }
}

/// The code of a row of the weight, in line `line` of so many words.
fn code(words: Words<'_>, [line, width]: [usize; 2], row: usize) -> u8 {
    let word = words.at(line * width + row / IN_WORD);
    (word >> (BITS * PLACES[row % IN_WORD]) & 15) as u8
}
