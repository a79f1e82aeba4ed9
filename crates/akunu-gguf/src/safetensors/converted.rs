//! A weight that becomes another format while it is loaded.

use super::error::TripleFault;
use super::float::FloatTensor;
use super::rows::Repacked;
use super::weights::{MethodParts, TensorList};
use crate::quant::QuantError;

/// A weight in a format that no device reads, borrowed from its folder.
#[derive(Clone, Copy, Debug)]
pub struct Converted<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    Float(FloatTensor<'a>),
    Method(TensorList<'a>, &'a MethodParts),
}

/// A weight that cannot be converted, and why.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ConvertError(#[from] Reason);

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error(transparent)]
    Value(#[from] QuantError),
    #[error("it {0}")]
    Parts(#[from] TripleFault),
}

impl<'a> Converted<'a> {
    pub(super) fn float(float: FloatTensor<'a>) -> Converted<'a> {
        Converted(Form::Float(float))
    }

    pub(super) fn method(list: TensorList<'a>, parts: &'a MethodParts) -> Converted<'a> {
        Converted(Form::Method(list, parts))
    }

    /// Bytes in the file of all its tensors.
    pub fn size(&self) -> usize {
        match self.0 {
            Form::Float(float) => float.packed.bytes.len() + float.scales.bytes.len(),
            Form::Method(list, parts) => list
                .parts_of(parts)
                .all
                .iter()
                .map(|part| part.bytes.len())
                .sum(),
        }
    }

    /// Bytes of the converted weight.
    pub fn bytes(&self) -> usize {
        match self.0 {
            Form::Float(float) => {
                let dtype = float.format.dtype();
                let n_values = 2 * float.packed.bytes.len();
                dtype.bytes_of(n_values).unwrap_or(0)
            }
            Form::Method(_, parts) => parts.form.bytes,
        }
    }

    /// The bytes of the values, as they lie in the file.
    pub fn packed(&self) -> &'a [u8] {
        match self.0 {
            Form::Float(float) => float.packed.bytes,
            Form::Method(list, parts) => list
                .parts_of(parts)
                .all
                .first()
                .map_or(&[], |part| part.bytes),
        }
    }

    /// The weight in a form that devices read. A value that is not a number is an error.
    pub fn repack(&self) -> Result<Repacked, ConvertError> {
        let repacked = || -> Result<Repacked, Reason> {
            match self.0 {
                Form::Float(float) => Ok(Repacked::Blocks(float.blocks()?)),
                Form::Method(list, parts) => {
                    let rows = parts.method.rows(&list.parts_of(parts))?;
                    Ok(rows.repack()?)
                }
            }
        };
        Ok(repacked()?)
    }
}
