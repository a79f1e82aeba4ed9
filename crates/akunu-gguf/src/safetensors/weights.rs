//! From tensors to weights: `name.weight`, `name.scales` and `name.biases` are one weight.

use super::error::{FolderProblem, TripleFault};
use super::header::SafetensorInfo;
use super::quantization::{Affine, Quantization};
use crate::dims::Dims;
use crate::index::NameIndex;
use ::safetensors::Dtype as ElementType;
use akunu_types::DType;
use akunu_types::format::Kind;

/// One weight of a model folder: a plain tensor, or a quantised one and where its parts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderWeight {
    /// Position of the tensor in the folder's list: the values themselves, or the packed ones.
    pub(crate) tensor: usize,
    /// Present when the weight is quantised.
    pub(crate) quantized: Option<QuantizedParts>,
}

/// What belongs to the packed values of a quantised weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuantizedParts {
    /// Position of the scales in the folder's list.
    pub(crate) scales: usize,
    /// Position of the biases.
    pub(crate) biases: usize,
    pub(crate) scale_type: DType,
    pub(crate) affine: Affine,
    /// Dimensions counted in values, not in packed words.
    pub(crate) dims: Dims,
}

/// The tensors of a folder, to be looked up by name.
pub(crate) struct TensorList<'a> {
    pub(crate) tensors: &'a [SafetensorInfo],
    pub(crate) index: &'a NameIndex,
}

impl TensorList<'_> {
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.index.find(self.tensors, |tensor| &tensor.name, name)
    }

    /// All weights, in the order of the tensors.
    pub(crate) fn weights(
        &self,
        quantization: Option<&Quantization>,
    ) -> Result<Vec<FolderWeight>, FolderProblem> {
        let mut weights = Vec::new();
        for (at, tensor) in self.tensors.iter().enumerate() {
            if self.belongs_to_a_weight(&tensor.name) {
                continue;
            }
            let quantized = self.quantized_parts(at, quantization);
            let quantized = quantized.map_err(|fault| FolderProblem::Quantized {
                name: tensor.name.clone(),
                fault,
            })?;
            weights.push(FolderWeight {
                tensor: at,
                quantized,
            });
        }
        Ok(weights)
    }

    /// Whether this is the scales or the biases of some weight.
    fn belongs_to_a_weight(&self, name: &str) -> bool {
        let layer = name
            .strip_suffix(".scales")
            .or(name.strip_suffix(".biases"));
        layer.is_some_and(|layer| self.find(&format!("{layer}.weight")).is_some())
    }

    /// The other two parts when tensor `at` is the packed values of a quantised weight.
    fn quantized_parts(
        &self,
        at: usize,
        quantization: Option<&Quantization>,
    ) -> Result<Option<QuantizedParts>, TripleFault> {
        let packed = &self.tensors[at];
        let Some(layer) = packed.name.strip_suffix(".weight") else {
            return Ok(None);
        };
        let part = |suffix: &str| {
            let part = format!("{layer}.{suffix}");
            self.find(&part).ok_or(TripleFault::Missing { part })
        };
        let (scales, biases) = match (part("scales"), part("biases")) {
            (Err(_), Err(_)) if packed.element != ElementType::U32 => return Ok(None),
            (scales, biases) => (scales?, biases?),
        };
        let affine = quantization.and_then(|q| q.of_layer(layer));
        let affine = affine.ok_or(TripleFault::NotDescribed)?;
        let triple = [packed, &self.tensors[scales], &self.tensors[biases]];
        Ok(Some(QuantizedParts {
            scales,
            biases,
            scale_type: scale_type(triple)?,
            affine,
            dims: unpacked_dims(triple, affine)?,
        }))
    }
}

/// The one type of scales and biases.
fn scale_type([packed, scales, biases]: [&SafetensorInfo; 3]) -> Result<DType, TripleFault> {
    if packed.element != ElementType::U32 {
        return Err(TripleFault::PackedType(packed.element));
    }
    match scales.dtype() {
        Some(dtype) if dtype.kind() == Kind::Numbers && scales.element == biases.element => {
            Ok(dtype)
        }
        _ => Err(TripleFault::ScaleType {
            scales: scales.element,
            biases: biases.element,
        }),
    }
}

/// The dimensions in values: `cols = 32 * words / bits = group_size * groups`, all others equal.
fn unpacked_dims(
    [packed, scales, biases]: [&SafetensorInfo; 3],
    affine: Affine,
) -> Result<Dims, TripleFault> {
    let fit = || {
        let cols = scales.dims.cols().checked_mul(affine.group_size as usize)?;
        let bits = cols.checked_mul(affine.bits as usize)?;
        let words_fit = packed.dims.cols().checked_mul(32) == Some(bits);
        let rows_fit = packed.dims.as_slice()[1..] == scales.dims.as_slice()[1..];
        if !words_fit || !rows_fit || scales.dims != biases.dims {
            return None;
        }
        let mut sizes: Vec<u64> = packed.dims.as_slice().iter().map(|&n| n as u64).collect();
        sizes[0] = cols as u64;
        Dims::new(&sizes)
    };
    fit().ok_or_else(|| TripleFault::Shapes {
        shapes: format!(
            "packed values {:?}, scales {:?} and biases {:?}",
            packed.dims, scales.dims, biases.dims
        ),
        bits: affine.bits,
        group_size: affine.group_size,
    })
}
