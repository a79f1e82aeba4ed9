//! One weight, borrowed.

use super::Source;
use crate::dims::Dims;
use crate::safetensors::{Converted, MlxTensor, QuantizedParts};
use crate::span::Span;
use akunu_types::DType;

/// A weight and its bytes, borrowed from the mapped files.
#[derive(Clone, Copy, Debug)]
pub struct WeightView<'a> {
    /// The canonical name, or the container's where there is none.
    pub name: &'a str,
    /// The container's name.
    pub tensor: &'a str,
    /// Dimensions in ggml's order, counted in values.
    pub dims: Dims,
    /// Type of the elements; one of the MLX types when `data` is [`Data::Mlx`], and what they become when it is
    /// [`Data::Converted`].
    pub dtype: DType,
    /// The bytes.
    pub data: Data<'a>,
}

/// The bytes of a weight.
#[derive(Clone, Copy, Debug)]
pub enum Data<'a> {
    /// One run of bytes, row after row.
    Plain(Span<'a>),
    /// Packed values, scales and biases, each somewhere else.
    Mlx(MlxTensor<'a>),
    /// Tensors that no device reads as they lie, which [become](Converted::repack) something else.
    Converted(Converted<'a>),
}

impl WeightView<'_> {
    /// Number of rows: outputs of a matrix, entries of a vocabulary. 1 for a vector.
    pub fn rows(&self) -> usize {
        self.dims.rows()
    }

    /// Values in a row.
    pub fn cols(&self) -> usize {
        self.dims.cols()
    }

    /// Bytes in the file, scales and biases included.
    pub fn size(&self) -> usize {
        match &self.data {
            Data::Plain(span) => span.bytes.len(),
            Data::Mlx(mlx) => {
                mlx.packed.bytes.len() + mlx.scales.bytes.len() + mlx.biases.bytes.len()
            }
            Data::Converted(converted) => converted.size(),
        }
    }
}

/// Weight `at` of a container. `None` only for a position that the container does not have.
pub(super) fn view<'a>(source: &'a Source, name: &'a str, at: usize) -> Option<WeightView<'a>> {
    match source {
        Source::Gguf(file) => {
            let info = file.tensors().get(at)?;
            let span = Span {
                part: info.part,
                offset: info.range.start,
                bytes: file.view(info)?.bytes,
            };
            Some(WeightView {
                name,
                tensor: &info.name,
                dims: info.dims,
                dtype: info.dtype,
                data: Data::Plain(span),
            })
        }
        Source::Folder(folder) => {
            let weight = folder.weights().get(at)?;
            let info = folder.tensors().get(weight.tensor)?;
            let (dims, dtype, data) = match &weight.quantized {
                None => {
                    let span = folder.span(weight.tensor)?;
                    (info.dims, info.dtype()?, Data::Plain(span))
                }
                Some(QuantizedParts::Float(parts)) => {
                    let float = folder.float_view(weight.tensor, parts)?;
                    (parts.dims, parts.format.dtype(), Data::Converted(float))
                }
                Some(QuantizedParts::Method(parts)) => {
                    let converted = folder.method_view(parts);
                    (
                        parts.form.dims,
                        parts.form.dtype,
                        Data::Converted(converted),
                    )
                }
                Some(QuantizedParts::Affine(parts)) => {
                    let mlx = folder.mlx_view(weight.tensor, parts)?;
                    (parts.dims, DType::mlx(parts.affine.bits)?, Data::Mlx(mlx))
                }
            };
            Some(WeightView {
                name,
                tensor: &info.name,
                dims,
                dtype,
                data,
            })
        }
    }
}
