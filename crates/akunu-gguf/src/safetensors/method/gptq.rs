//! GPTQ: `scale * (code - zero)`, codes of 2, 3, 4 or 8 bits that lie column by column.
//!
//! | tensor | shape | |
//! |---|---|---|
//! | `qweight` | (columns * bits / 32, rows) | a stream of codes down each column of words |
//! | `qzeros` | (groups, rows * bits / 32) | a stream of zeros, less 1 in files of the first version |
//! | `scales` | (groups, rows) | |
//! | `g_idx` | (columns) | the group of each column; not in order where `desc_act` sorted the columns |

use super::bits::{code, n_words};
use super::contract::{Method, Methods};
use super::parts::{Parts, Words};
use super::settings::Settings;
use crate::safetensors::error::{FolderProblem, TripleFault};
use crate::safetensors::rows::{Groups, Integers, Rows};
use ::safetensors::Dtype as ElementType;
use std::sync::Arc;

#[derive(Debug)]
struct Gptq {
    bits: u32,
    /// Columns of a group; `None` for all of them.
    group: Option<usize>,
    /// Whether zeros are stored less 1.
    is_first_version: bool,
}

pub(super) fn methods(settings: &Settings) -> Result<Methods, FolderProblem> {
    let bits = settings.bits(&[2, 3, 4, 8], "2, 3, 4 and 8")?;
    let format = settings.text("checkpoint_format", "gptq");
    let is_first_version = match &*format {
        "gptq" => true,
        "gptq_v2" => false,
        _ => return Err(settings.number("checkpoint_format", format, "`gptq` and `gptq_v2`")),
    };
    Ok(vec![Arc::new(Gptq {
        bits,
        group: settings.group_size()?,
        is_first_version,
    })])
}

impl Method for Gptq {
    fn suffixes(&self) -> &'static [&'static str] {
        &["qweight", "qzeros", "scales", "g_idx"]
    }

    fn packs(&self, _: ElementType) -> bool {
        true
    }

    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault> {
        let (weight, bits) = (parts.need("qweight")?, self.bits);
        let [words, rows] = weight.matrix()?;
        let n_bits = words.checked_mul(32).filter(|n| n % bits as usize == 0);
        let cols = n_bits.map(|n| n / bits as usize);
        let cols = cols.ok_or_else(|| weight.fault(format!("whole codes of {bits} bits")))?;
        let group = self.group.unwrap_or(cols);
        let n_groups = cols.div_ceil(group);
        let (scales, zeros) = (parts.need("scales")?, parts.need("qzeros")?);
        let zero_words = n_words(rows, bits).unwrap_or(usize::MAX);
        scales.check_shape(&[n_groups, rows])?;
        zeros.check_shape(&[n_groups, zero_words])?;
        let groups = match parts.find("g_idx") {
            Some(index) => {
                index.check_shape(&[cols])?;
                let words = index.words()?;
                let within = || format!("groups from 0 to {}", n_groups - 1);
                Groups::listed(group, n_groups, cols, |col| words.at(col))
                    .ok_or_else(|| index.fault(within()))?
            }
            None => Groups::in_order(group),
        };
        let (codes, scales, zeros) = (weight.words()?, scales.floats()?, zeros.words()?);
        let less = u32::from(self.is_first_version);
        let zero = move |row: usize, group: usize| {
            let words = |at| zeros.at(group * zero_words + at);
            plus(less, words, bits, row)
        };
        Ok(Rows::integers(
            [rows, cols],
            Integers {
                bits,
                groups,
                codes: Box::new(move |row, out| column(codes, [row, rows], bits, out)),
                scale: Box::new(move |row, group| {
                    (scales.at(group * rows + row), zero(row, group) as f32)
                }),
            },
        ))
    }
}

/// Code `at` of a stream whose codes are all `less` than they should be. A code of 0 has borrowed from the next one in its word, so
/// that words are added, except where codes pass from word to word.
fn plus(less: u32, word: impl Fn(usize) -> u32, bits: u32, at: usize) -> u32 {
    let top = (1 << bits) - 1;
    match 32 % bits {
        0 => code(
            |at| word(at).wrapping_add(less * (u32::MAX / top)),
            bits,
            at,
        ),
        _ => (code(word, bits, at) + less) & top,
    }
}

/// The codes of one column of words.
fn column(words: Words<'_>, [column, width]: [usize; 2], bits: u32, out: &mut [u8]) {
    for (at, found) in out.iter_mut().enumerate() {
        *found = code(|word| words.at(word * width + column), bits, at) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeros 1, 0, 5 and 8, stored less 1: the second has borrowed from the third.
    #[test]
    fn one_is_added_to_words() {
        let stored = 0x8501_u32.wrapping_sub(0x1111);
        let zeros = [0, 1, 2, 3].map(|at| plus(1, |_| stored, 4, at));
        assert_eq!(zeros, [1, 0, 5, 8]);
        assert_eq!(plus(0, |_| 0x8501, 4, 3), 8, "the second version");
        assert_eq!(plus(1, |_| 0b111_110, 3, 0), 7);
        assert_eq!(plus(1, |_| 0b111_110, 3, 1), 0);
    }
}
