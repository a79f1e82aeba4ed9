//! The tensors of one weight.

use crate::safetensors::error::{PartFault, TripleFault};
use crate::safetensors::header::SafetensorInfo;
use ::safetensors::Dtype as ElementType;
use akunu_types::DType;

/// A tensor of a weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub suffix: &'static str,
    pub info: &'a SafetensorInfo,
    pub bytes: &'a [u8],
}

/// All tensors of a weight that the file has; the first has the values.
pub(crate) struct Parts<'a> {
    pub layer: &'a str,
    pub all: Vec<Part<'a>>,
}

impl<'a> Parts<'a> {
    /// The tensor of this name, if the file has it.
    pub fn find(&self, suffix: &str) -> Option<Part<'a>> {
        self.all.iter().find(|part| part.suffix == suffix).copied()
    }

    /// The tensor of this name.
    pub fn need(&self, suffix: &str) -> Result<Part<'a>, TripleFault> {
        self.find(suffix).ok_or_else(|| TripleFault::Missing {
            part: format!("{}.{suffix}", self.layer),
        })
    }
}

impl<'a> Part<'a> {
    /// The shape as the file has it, the outermost dimension first; none of a number.
    pub fn shape(&self) -> Vec<usize> {
        self.info.dims.as_slice().iter().rev().copied().collect()
    }

    /// Its two dimensions.
    pub fn matrix(&self) -> Result<[usize; 2], TripleFault> {
        let shape = self.shape();
        <[usize; 2]>::try_from(shape).map_err(|_| self.fault("a matrix".to_string()))
    }

    /// Refuses another shape.
    pub fn check_shape(&self, wanted: &[usize]) -> Result<(), TripleFault> {
        match self.shape() == wanted {
            true => Ok(()),
            false => Err(self.fault(format!("the shape {wanted:?}"))),
        }
    }

    /// Words of 32 bits.
    pub fn words(&self) -> Result<Words<'a>, TripleFault> {
        match self.info.element {
            ElementType::I32 | ElementType::U32 => Ok(Words::new(self.bytes.as_chunks().0)),
            _ => Err(self.fault("the type I32".to_string())),
        }
    }

    /// Single bytes.
    pub fn of_bytes(&self, element: ElementType) -> Result<&'a [u8], TripleFault> {
        match self.info.element == element {
            true => Ok(self.bytes),
            false => Err(self.fault(format!("the type {element}"))),
        }
    }

    /// Numbers with a fraction, or powers of two.
    pub fn floats(&self) -> Result<Floats<'a>, TripleFault> {
        let bytes = self.bytes;
        match (self.info.element, self.info.dtype()) {
            (ElementType::F16 | ElementType::BF16 | ElementType::F32, Some(dtype)) => {
                Ok(Floats::Plain { dtype, bytes })
            }
            (ElementType::F8_E8M0, _) => Ok(Floats::Powers(bytes)),
            _ => Err(self.fault("the type F16, BF16 or F32".to_string())),
        }
    }

    /// It is not what it should be.
    pub fn fault(&self, wanted: String) -> TripleFault {
        TripleFault::Part(Box::new(PartFault {
            part: self.suffix,
            element: self.info.element,
            shape: self.shape(),
            wanted,
        }))
    }
}

/// Little-endian words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a>(&'a [[u8; 4]]);

impl<'a> Words<'a> {
    pub fn new(words: &'a [[u8; 4]]) -> Words<'a> {
        Words(words)
    }

    pub fn at(self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at])
    }
}

/// Numbers of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Floats<'a> {
    Plain {
        dtype: DType,
        bytes: &'a [u8],
    },
    /// Exponents of two, raised by 127.
    Powers(&'a [u8]),
}

impl Floats<'_> {
    pub fn at(self, at: usize) -> f32 {
        match self {
            Floats::Plain { dtype, bytes } => {
                let size = dtype.block_bytes();
                let mut value = [0.0];
                if let Some(decode) = dtype.decoder() {
                    decode(&bytes[at * size..][..size], &mut value);
                }
                value[0]
            }
            Floats::Powers(bytes) => match bytes[at] {
                255 => f32::NAN,
                exponent => 2f32.powi(i32::from(exponent) - 127),
            },
        }
    }
}
