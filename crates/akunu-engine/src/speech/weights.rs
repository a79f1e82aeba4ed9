//! The weights of a speech model on a device.
//!
//! The containers align nothing, so all weights are copied once, into one buffer of the device: matrices as they are,
//! vectors and tables of positions widened to f32, which is what the kernels read. The taps of a convolution come to
//! stand before its channels, (outputs, taps, channels), so that a window of the signal is a vector.

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;

use akunu_arch::{ArchError, Bind, NamedMatrix, NamedVector, Speech};
use akunu_gguf::{SpeechFolder, SpeechTensor, quant};
use akunu_program::{Buffer, Device, Matrix, Slice, Storage};

use crate::error::EngineError;
use crate::weights::Weight;

/// Weights begin at multiples of this.
const ALIGNMENT: usize = 64;

/// A speech model whose weights are on a device.
pub(super) type BoundSpeech = Speech<Weight, Slice>;

/// A weight of the file, and its place in the buffer.
struct Placed<'a> {
    /// Whether it becomes f32.
    is_widened: bool,
    /// Taps of a convolution, 1 for others.
    taps: usize,
    tensor: SpeechTensor<'a>,
    offset: usize,
}

/// Finds places for all weights in one buffer.
struct Layout<'a> {
    folder: &'a SpeechFolder,
    placed: HashMap<String, Placed<'a>>,
    end: usize,
}

/// The places in the buffer.
struct Places<'a> {
    layout: &'a Layout<'a>,
    buffer: Buffer,
}

/// Checks the shapes of all weights, then copies them.
pub(super) fn bind(
    folder: &SpeechFolder,
    model: &Speech,
    device: &mut dyn Device,
) -> Result<BoundSpeech, EngineError> {
    let mut layout = Layout {
        folder,
        placed: HashMap::new(),
        end: 0,
    };
    model.bind(&mut layout)?;
    let buffer = device.allocate_filled(layout.end, "weights")?;
    let mut placed: Vec<&Placed> = layout.placed.values().collect();
    placed.sort_unstable_by_key(|weight| weight.offset);
    for weight in placed {
        device.write(buffer, weight.offset, &weight.bytes())?;
    }
    let layout = &layout;
    let Ok(bound) = model.bind(&mut Places { layout, buffer });
    Ok(bound)
}

impl Layout<'_> {
    fn place(&mut self, name: &str, dims: &[usize], is_widened: bool) -> Result<(), ArchError> {
        if self.placed.contains_key(name) {
            return Ok(());
        }
        let tensor = self.folder.tensor(name)?;
        if tensor.dims != dims {
            return Err(ArchError::Invalid {
                path: self.folder.path().to_path_buf(),
                key: name.to_string(),
                found: format!("of the shape {:?}", tensor.dims),
                wanted: "of the shape that the other weights ask for",
            });
        }
        let weight = Placed {
            is_widened,
            taps: if dims.len() == 3 { dims[2] } else { 1 },
            tensor,
            offset: self.end.next_multiple_of(ALIGNMENT),
        };
        self.end = weight.offset + weight.n_bytes();
        self.placed.insert(name.to_string(), weight);
        Ok(())
    }
}

impl Bind for Layout<'_> {
    type Matrix = ();
    type Vector = ();
    type Error = ArchError;

    fn matrix(&mut self, weight: &NamedMatrix) -> Result<(), ArchError> {
        let [rows, cols, taps] = [weight.rows, weight.cols, weight.taps].map(|n| n as usize);
        match taps {
            1 => self.place(&weight.name, &[rows, cols], false),
            taps => self.place(&weight.name, &[rows, cols / taps, taps], false),
        }
    }

    fn vector(&mut self, weight: &NamedVector) -> Result<(), ArchError> {
        let [rows, cols] = [weight.rows, weight.cols].map(|n| n as usize);
        match rows {
            1 => self.place(&weight.name, &[cols], true),
            rows => self.place(&weight.name, &[rows, cols], true),
        }
    }
}

impl Bind for Places<'_> {
    type Matrix = Weight;
    type Vector = Slice;
    type Error = Infallible;

    fn matrix(&mut self, weight: &NamedMatrix) -> Result<Weight, Infallible> {
        let name = weight.name.clone();
        let matrix = Matrix {
            place: self.slice(&name),
            dtype: self.layout.placed[&name].tensor.dtype,
            rows: weight.rows,
            cols: weight.cols,
            storage: Storage::Rows,
        };
        Ok(Weight { name, matrix })
    }

    fn vector(&mut self, weight: &NamedVector) -> Result<Slice, Infallible> {
        Ok(self.slice(&weight.name))
    }
}

impl Places<'_> {
    fn slice(&self, name: &str) -> Slice {
        Slice {
            buffer: self.buffer,
            offset: self.layout.placed[name].offset,
        }
    }
}

impl Placed<'_> {
    /// Bytes that it takes in the buffer.
    fn n_bytes(&self) -> usize {
        match self.is_widened {
            true => size_of::<f32>() * self.tensor.dims.iter().product::<usize>(),
            false => self.tensor.bytes.len(),
        }
    }

    /// The bytes in the buffer.
    fn bytes(&self) -> Cow<'_, [u8]> {
        let (dtype, dims) = (self.tensor.dtype, &self.tensor.dims);
        if self.is_widened {
            let mut values = vec![0f32; dims.iter().product()];
            // The reader lets only types through that can be widened.
            let read = quant::dequantise(dtype, self.tensor.bytes, &mut values);
            debug_assert!(read.is_ok(), "{dtype}");
            return Cow::Owned(bytemuck::cast_slice(&values).to_vec());
        }
        match self.taps {
            1 => Cow::Borrowed(self.tensor.bytes),
            taps => Cow::Owned(transpose(&self.tensor, dims[1], taps)),
        }
    }
}

/// (outputs, channels, taps) as (outputs, taps, channels).
fn transpose(tensor: &SpeechTensor, n_channels: usize, n_taps: usize) -> Vec<u8> {
    let size = tensor.dtype.block_bytes() / tensor.dtype.block_len();
    let mut turned = Vec::with_capacity(tensor.bytes.len());
    for output in tensor.bytes.chunks_exact(n_channels * n_taps * size) {
        for tap in 0..n_taps {
            for channel in 0..n_channels {
                let at = (channel * n_taps + tap) * size;
                turned.extend_from_slice(&output[at..at + size]);
            }
        }
    }
    turned
}
