//! From tensors to weights: `name.weight`, `name.scales` and `name.biases` are one weight, and those that a method names.

use super::error::{FolderProblem, TripleFault};
use super::float::FloatFormat;
use super::header::SafetensorInfo;
use super::method::{Method, Part, Parts};
use super::mlx::Affine;
use super::quantization::{Packing, Quantization};
use super::rows::Form;
use crate::dims::Dims;
use crate::index::NameIndex;
use crate::mmap::FileBytes;
use ::safetensors::Dtype as ElementType;
use akunu_types::DType;
use akunu_types::format::Kind;
use std::borrow::Cow;
use std::sync::Arc;

/// One weight of a model folder: a plain tensor, or a quantised one and where its parts are.
#[derive(Clone, Debug)]
pub(crate) struct FolderWeight {
    /// Position of the tensor in the folder's list: the values themselves, or the packed ones.
    pub(crate) tensor: usize,
    /// Present when the weight is quantised.
    pub(crate) quantized: Option<QuantizedParts>,
}

/// What belongs to the packed values of a quantised weight.
#[derive(Clone, Debug)]
pub(crate) enum QuantizedParts {
    /// Of integers.
    Affine(AffineParts),
    /// Of 4-bit floats.
    Float(FloatParts),
    /// As a method stores them.
    Method(MethodParts),
}

/// What belongs to integers.
#[derive(Clone, Debug)]
pub(crate) struct AffineParts {
    /// Position of the scales in the folder's list.
    pub(crate) scales: usize,
    /// Position of the biases.
    pub(crate) biases: usize,
    pub(crate) scale_type: DType,
    pub(crate) affine: Affine,
    /// Dimensions counted in values, not in packed words.
    pub(crate) dims: Dims,
}

/// What belongs to 4-bit floats.
#[derive(Clone, Debug)]
pub(crate) struct FloatParts {
    /// Position of the scales in the folder's list.
    pub(crate) scales: usize,
    pub(crate) format: FloatFormat,
    /// Dimensions counted in values.
    pub(crate) dims: Dims,
}

/// Tensors that a method reads.
#[derive(Clone, Debug)]
pub(crate) struct MethodParts {
    pub(crate) method: Arc<dyn Method>,
    /// The name before the suffixes.
    pub(crate) layer: String,
    /// The format after loading.
    pub(crate) form: Form,
}

/// What `transformers` appends to a weight's name for its codes, and for its scales.
const CODES: &str = "_blocks";
const SCALES: &str = "_scales";

impl FolderWeight {
    /// The name of the weight whose values, or packed values, are this tensor.
    pub(crate) fn name<'t>(&self, tensor: &'t SafetensorInfo) -> Cow<'t, str> {
        let plain = &*tensor.name;
        match &self.quantized {
            Some(QuantizedParts::Float(_)) => plain.strip_suffix(CODES).unwrap_or(plain).into(),
            Some(QuantizedParts::Method(parts)) => format!("{}.weight", parts.layer).into(),
            Some(QuantizedParts::Affine(_)) | None => plain.into(),
        }
    }
}

/// The tensors of a folder, to be looked up by name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TensorList<'a> {
    pub(crate) tensors: &'a [SafetensorInfo],
    pub(crate) index: &'a NameIndex,
    pub(crate) files: &'a [Arc<FileBytes>],
}

impl<'a> TensorList<'a> {
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
            if self.belongs_to_a_weight(&tensor.name, quantization) {
                continue;
            }
            let methods = quantization.map_or(&[][..], |q| &q.methods);
            let quantized = match self.method_of(tensor, methods) {
                Some((method, layer)) => self.method_parts(method, layer).map(Some),
                None => self.quantized_parts(at, quantization),
            };
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

    /// The tensors of a weight.
    pub(crate) fn parts_of(&self, parts: &'a MethodParts) -> Parts<'a> {
        self.parts(parts.method.as_ref(), &parts.layer)
    }

    /// The tensors of a layer's weight, as a method calls them.
    fn parts<'l>(&self, method: &dyn Method, layer: &'l str) -> Parts<'l>
    where
        'a: 'l,
    {
        let part = |&suffix: &&'static str| {
            let info = &self.tensors[self.find(&format!("{layer}.{suffix}"))?];
            let bytes = self.files.get(info.part)?.get(info.range.clone())?;
            Some(Part {
                suffix,
                info,
                bytes,
            })
        };
        let all = method.suffixes().iter().filter_map(part).collect();
        Parts { layer, all }
    }

    /// The method that has its values in this tensor, and the name of the layer.
    fn method_of<'n>(
        &self,
        tensor: &'n SafetensorInfo,
        methods: &'n [Arc<dyn Method>],
    ) -> Option<(&'n Arc<dyn Method>, &'n str)> {
        methods.iter().find_map(|method| {
            let suffix = method.suffixes().first()?;
            let layer = tensor.name.strip_suffix(suffix)?.strip_suffix('.')?;
            method.packs(tensor.element).then_some((method, layer))
        })
    }

    fn method_parts(
        &self,
        method: &Arc<dyn Method>,
        layer: &str,
    ) -> Result<QuantizedParts, TripleFault> {
        let rows = method.rows(&self.parts(method.as_ref(), layer))?;
        Ok(QuantizedParts::Method(MethodParts {
            method: Arc::clone(method),
            layer: layer.to_string(),
            form: rows.becomes()?,
        }))
    }

    /// Whether this is another tensor of a weight than the one with its values.
    fn belongs_to_a_weight(&self, name: &str, quantization: Option<&Quantization>) -> bool {
        let mut methods = quantization.iter().flat_map(|q| &q.methods);
        let is_part = |method: &Arc<dyn Method>| {
            let suffixes = method.suffixes().split_first();
            suffixes.is_some_and(|(values, others)| {
                let mut others = others.iter();
                let is_other = |suffix: &&str| {
                    let layer = name.strip_suffix(suffix)?.strip_suffix('.')?;
                    let values = self.find(&format!("{layer}.{values}"))?;
                    Some(method.packs(self.tensors[values].element))
                };
                others.any(|suffix| is_other(suffix) == Some(true))
            })
        };
        if methods.any(is_part) {
            return true;
        }
        let of_mlx = name
            .strip_suffix(".scales")
            .or(name.strip_suffix(".biases"));
        let of_transformers = name.strip_suffix(SCALES);
        let weights = [
            of_mlx.map(|layer| format!("{layer}.weight")),
            of_transformers.map(|layer| format!("{layer}{CODES}")),
        ];
        weights
            .iter()
            .flatten()
            .any(|weight| self.find(weight).is_some())
    }

    /// The other parts when tensor `at` is the packed values of a quantised weight.
    fn quantized_parts(
        &self,
        at: usize,
        quantization: Option<&Quantization>,
    ) -> Result<Option<QuantizedParts>, TripleFault> {
        let packed = &self.tensors[at];
        let name = &*packed.name;
        let described = |layer| {
            let packing = quantization.and_then(|q| q.of_layer(layer));
            packing.ok_or(TripleFault::NotDescribed)
        };
        if let Some(layer) = name.strip_suffix(CODES)
            && let Some(scales) = self.find(&format!("{layer}{SCALES}"))
        {
            return match described(layer)? {
                Packing::Float(format) => self.float_parts(packed, scales, format),
                Packing::Affine(_) => Err(TripleFault::NotDescribed),
            };
        }
        let Some(layer) = name.strip_suffix(".weight") else {
            return Ok(None);
        };
        let part = |suffix: &str| {
            let part = format!("{layer}.{suffix}");
            self.find(&part).ok_or(TripleFault::Missing { part })
        };
        let (scales, biases) = match (part("scales"), part("biases")) {
            (Err(_), Err(_)) if packed.element != ElementType::U32 => return Ok(None),
            parts => parts,
        };
        match described(layer)? {
            Packing::Float(format) => self.float_parts(packed, scales?, format),
            Packing::Affine(affine) => self.affine_parts(packed, [scales?, biases?], affine),
        }
    }

    fn affine_parts(
        &self,
        packed: &SafetensorInfo,
        [scales, biases]: [usize; 2],
        affine: Affine,
    ) -> Result<Option<QuantizedParts>, TripleFault> {
        let triple = [packed, &self.tensors[scales], &self.tensors[biases]];
        Ok(Some(QuantizedParts::Affine(AffineParts {
            scales,
            biases,
            scale_type: scale_type(triple)?,
            affine,
            dims: unpacked_dims(triple, affine)?,
        })))
    }

    fn float_parts(
        &self,
        packed: &SafetensorInfo,
        scales: usize,
        format: FloatFormat,
    ) -> Result<Option<QuantizedParts>, TripleFault> {
        let dims = float_dims(packed, &self.tensors[scales], format)?;
        Ok(Some(QuantizedParts::Float(FloatParts {
            scales,
            format,
            dims,
        })))
    }
}

/// The dimensions in values. MLX packs codes in words; `transformers` has rows of groups of 16 bytes.
fn float_dims(
    packed: &SafetensorInfo,
    scales: &SafetensorInfo,
    format: FloatFormat,
) -> Result<Dims, TripleFault> {
    let fit = || {
        let (n_codes, others) = match (packed.element, packed.dims.as_slice()) {
            (ElementType::U32, [words, others @ ..]) => (words.checked_mul(8)?, others),
            (ElementType::U8, [16, groups, others @ ..]) => (groups.checked_mul(32)?, others),
            _ => return None,
        };
        let scale_dims = scales.dims.as_slice();
        let cols = scale_dims.first()?.checked_mul(format.group_size())?;
        let is_whole = cols == n_codes && cols.is_multiple_of(format.dtype().block_len());
        if scales.element != ElementType::U8 || !is_whole || !same_rows(others, &scale_dims[1..]) {
            return None;
        }
        let sizes: Vec<u64> = [cols].iter().chain(others).map(|&n| n as u64).collect();
        Dims::new(&sizes)
    };
    fit().ok_or_else(|| TripleFault::Floats {
        parts: format!(
            "codes of type {} {:?} and scales of type {} {:?}",
            packed.element, packed.dims, scales.element, scales.dims
        ),
        format: format.name(),
        group_size: format.group_size(),
    })
}

/// Whether both have the same dimensions; those of 1 at the end do not count.
fn same_rows(a: &[usize], b: &[usize]) -> bool {
    let longest = a.len().max(b.len());
    (0..longest).all(|at| a.get(at).unwrap_or(&1) == b.get(at).unwrap_or(&1))
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
