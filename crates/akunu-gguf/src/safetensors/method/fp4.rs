//! FP4: codes of 4 bits that are floats (E2M1), a scale for each group of a row, and for NVFP4 one of the whole weight.
//!
//! | tensor | `compressed-tensors` | ModelOpt |
//! |---|---|---|
//! | codes, the lower half of a byte first, (rows, columns / 2) | `weight_packed` | `weight` |
//! | scales: of type F8_E4M3 for 16 columns, or exponents in bytes for 32 | `weight_scale` | `weight_scale` |
//! | the scale of the weight | `weight_global_scale`, which divides | `weight_scale_2`, which multiplies |

use super::contract::{Method, Methods};
use super::fp8::Fp8;
use super::parts::Parts;
use super::settings::Settings;
use crate::safetensors::error::{FolderProblem, TripleFault};
use crate::safetensors::float::e4m3;
use crate::safetensors::rows::Rows;
use ::safetensors::Dtype as ElementType;
use akunu_types::format::MXFP4_NUMBERS;
use std::sync::Arc;

/// Columns that share a scale of type F8_E4M3, and those that share an exponent.
const GROUP: usize = 16;
const GROUP_OF_EXPONENT: usize = 32;

#[derive(Debug)]
pub(super) enum Fp4 {
    /// As `compressed-tensors` stores it.
    Compressed,
    /// As NVIDIA's ModelOpt stores it.
    ModelOpt,
}

/// Those of ModelOpt, whose folders may have FP8 as well.
pub(super) fn methods(settings: &Settings) -> Result<Methods, FolderProblem> {
    let algorithm = settings.text("quant_algo", "NVFP4");
    match &*algorithm {
        "NVFP4" | "FP8" | "MIXED_PRECISION" => {
            Ok(vec![Arc::new(Fp4::ModelOpt), Arc::new(Fp8 { block: None })])
        }
        _ => Err(settings.number(
            "quant_algo",
            algorithm,
            "`NVFP4`, `FP8` and `MIXED_PRECISION`",
        )),
    }
}

impl Fp4 {
    /// The factor of the whole weight.
    fn factor(&self, parts: &Parts<'_>) -> Result<f32, TripleFault> {
        let [_, _, name] = self.suffixes() else {
            return Ok(1.0);
        };
        let part = parts.need(name)?;
        if part.info.dims.n_elements() != 1 {
            return Err(part.fault("one number".to_string()));
        }
        let number = part.floats()?.at(0);
        Ok(match self {
            Fp4::Compressed => 1.0 / number,
            Fp4::ModelOpt => number,
        })
    }
}

impl Method for Fp4 {
    fn suffixes(&self) -> &'static [&'static str] {
        match self {
            Fp4::Compressed => &["weight_packed", "weight_scale", "weight_global_scale"],
            Fp4::ModelOpt => &["weight", "weight_scale", "weight_scale_2"],
        }
    }

    fn packs(&self, element: ElementType) -> bool {
        element == ElementType::U8
    }

    fn rows<'a>(&self, parts: &Parts<'a>) -> Result<Rows<'a>, TripleFault> {
        let weight = parts.need(self.suffixes()[0])?;
        let [rows, bytes] = weight.matrix()?;
        let cols = bytes.saturating_mul(2);
        let scale = parts.need("weight_scale")?;
        let (group, factor, numbers): (usize, f32, [f32; 256]) = match scale.info.element {
            ElementType::F8_E4M3 => {
                let numbers = std::array::from_fn(|bits| e4m3(bits as u8));
                (GROUP, self.factor(parts)?, numbers)
            }
            ElementType::U8 | ElementType::F8_E8M0 => {
                let numbers = std::array::from_fn(|bits| 2f32.powi(bits as i32 - 127));
                (GROUP_OF_EXPONENT, 1.0, numbers)
            }
            _ => return Err(scale.fault("the type F8_E4M3 or U8".to_string())),
        };
        scale.check_shape(&[rows, cols.div_ceil(group)])?;
        let (codes, scales) = (weight.bytes, scale.bytes);
        Ok(Rows::numbers([rows, cols], move |row, out| {
            let codes = &codes[row * bytes..][..bytes];
            let scales = &scales[row * cols.div_ceil(group)..];
            for (col, number) in out.iter_mut().enumerate() {
                let code = codes[col / 2] >> (col % 2 * 4) & 15;
                let scale = numbers[usize::from(scales[col / group])] * factor;
                // The table has all numbers twice.
                *number = scale / 2.0 * f32::from(MXFP4_NUMBERS[usize::from(code)]);
            }
        }))
    }
}
