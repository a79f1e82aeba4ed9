//! The weights of a speech model on a device.
//!
//! The containers align nothing, so all weights are copied once, into one buffer of the device: matrices as they are,
//! vectors and tables of positions widened to f32, which is what the kernels read. The taps of a convolution come to
//! stand before its channels, (outputs, taps, channels), so that a window of the signal is a vector.

use std::borrow::Cow;
use std::collections::HashMap;

use akunu_arch::{ArchError, SpeechConfig};
use akunu_gguf::{SpeechFolder, SpeechTensor, quant};
use akunu_program::{Device, Matrix, Slice, Storage};

use crate::error::EngineError;

/// Weights begin at multiples of this.
const ALIGNMENT: usize = 64;

/// Every weight of a model, by its Hugging Face name.
#[derive(Debug)]
pub(super) struct SpeechWeights {
    matrices: HashMap<String, Matrix>,
    vectors: HashMap<String, Slice>,
}

/// How a weight is used.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    /// A matrix of a product, (rows, cols).
    Matrix,
    /// A convolution, (outputs, channels, taps).
    Convolution,
    /// Numbers that are added or multiplied one by one.
    Numbers,
}

/// A weight that the model must have.
struct Wanted {
    name: String,
    dims: Vec<usize>,
    how: Use,
}

/// A weight of the file, and its place in the buffer.
struct Placed<'a> {
    name: String,
    how: Use,
    tensor: SpeechTensor<'a>,
    offset: usize,
}

impl SpeechWeights {
    pub fn bind(
        folder: &SpeechFolder,
        config: &SpeechConfig,
        device: &mut dyn Device,
    ) -> Result<SpeechWeights, EngineError> {
        let mut placed = Vec::new();
        let mut end = 0usize;
        for wanted in wanted(config) {
            let tensor = folder.tensor(&wanted.name).map_err(ArchError::from)?;
            if tensor.dims != wanted.dims {
                return Err(wrong_shape(folder, &wanted, &tensor.dims).into());
            }
            let weight = Placed {
                name: wanted.name,
                how: wanted.how,
                tensor,
                offset: end.next_multiple_of(ALIGNMENT),
            };
            end = weight.offset + weight.n_bytes();
            placed.push(weight);
        }
        let buffer = device.allocate_filled(end, "weights")?;
        let mut weights = SpeechWeights {
            matrices: HashMap::new(),
            vectors: HashMap::new(),
        };
        for weight in placed {
            device.write(buffer, weight.offset, &weight.bytes())?;
            let place = Slice {
                buffer,
                offset: weight.offset,
            };
            if weight.how == Use::Numbers {
                weights.vectors.insert(weight.name, place);
            } else {
                let matrix = weight.matrix(place);
                weights.matrices.insert(weight.name, matrix);
            }
        }
        Ok(weights)
    }

    /// A matrix that every model has.
    pub fn matrix(&self, name: &str) -> Matrix {
        match self.matrices.get(name) {
            Some(matrix) => *matrix,
            None => unreachable!("{name} was bound with the others"),
        }
    }

    /// A vector that every model has.
    pub fn vector(&self, name: &str) -> Slice {
        match self.find_vector(name) {
            Some(place) => place,
            None => unreachable!("{name} was bound with the others"),
        }
    }

    /// A vector that some modules do not have: the bias of keys.
    pub fn find_vector(&self, name: &str) -> Option<Slice> {
        self.vectors.get(name).copied()
    }
}

impl Placed<'_> {
    /// Bytes that it takes in the buffer.
    fn n_bytes(&self) -> usize {
        match self.how {
            Use::Numbers => size_of::<f32>() * self.tensor.dims.iter().product::<usize>(),
            Use::Matrix | Use::Convolution => self.tensor.bytes.len(),
        }
    }

    /// What lies in the buffer.
    fn bytes(&self) -> Cow<'_, [u8]> {
        let (dtype, dims) = (self.tensor.dtype, &self.tensor.dims);
        match self.how {
            Use::Matrix => Cow::Borrowed(self.tensor.bytes),
            Use::Convolution => Cow::Owned(transpose(&self.tensor, dims[1], dims[2])),
            Use::Numbers => {
                let mut values = vec![0f32; dims.iter().product()];
                // The reader lets only types through that can be widened.
                let read = quant::dequantise(dtype, self.tensor.bytes, &mut values);
                debug_assert!(read.is_ok(), "{}", self.name);
                Cow::Owned(bytemuck::cast_slice(&values).to_vec())
            }
        }
    }

    fn matrix(&self, place: Slice) -> Matrix {
        let dims = &self.tensor.dims;
        Matrix {
            place,
            dtype: self.tensor.dtype,
            rows: dims[0] as u32,
            cols: dims[1..].iter().product::<usize>() as u32,
            storage: Storage::Rows,
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

fn wrong_shape(folder: &SpeechFolder, wanted: &Wanted, found: &[usize]) -> ArchError {
    ArchError::Invalid {
        path: folder.path().to_path_buf(),
        key: wanted.name.clone(),
        found: format!("of the shape {found:?}"),
        wanted: "of the shape that the other weights ask for",
    }
}

/// All weights of a model of this shape.
fn wanted(config: &SpeechConfig) -> Vec<Wanted> {
    let [dim, ffn, n_mels] = [config.dim, config.ffn_dim, config.n_mels].map(|n| n as usize);
    let mut list = Vec::new();
    let mut add = |name: String, dims: &[usize], how: Use| {
        let dims = dims.to_vec();
        list.push(Wanted { name, dims, how });
    };
    for (conv, channels) in [("conv1", n_mels), ("conv2", dim)] {
        let name = |part: &str| format!("encoder.{conv}.{part}");
        add(name("weight"), &[dim, channels, 3], Use::Convolution);
        add(name("bias"), &[dim], Use::Numbers);
    }
    let stacks = [
        ("encoder", config.n_encoder_layers, config.n_audio_positions),
        ("decoder", config.n_decoder_layers, config.n_text_positions),
    ];
    for (stack, n_layers, n_positions) in stacks {
        let positions = [n_positions as usize, dim];
        add(
            format!("{stack}.embed_positions.weight"),
            &positions,
            Use::Numbers,
        );
        let mut norms = vec![format!("{stack}.layer_norm")];
        for layer in 0..n_layers {
            let name = |part: &str| format!("{stack}.layers.{layer}.{part}");
            norms.extend([name("self_attn_layer_norm"), name("final_layer_norm")]);
            let mut attention = vec!["self_attn"];
            if stack == "decoder" {
                norms.push(name("encoder_attn_layer_norm"));
                attention.push("encoder_attn");
            }
            let mut linear = vec![("fc1".to_string(), ffn, dim), ("fc2".into(), dim, ffn)];
            for attention in attention {
                for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                    linear.push((format!("{attention}.{part}"), dim, dim));
                }
            }
            for (module, rows, cols) in linear {
                add(
                    name(&format!("{module}.weight")),
                    &[rows, cols],
                    Use::Matrix,
                );
                // Keys have none: it would add the same to all scores.
                if !module.ends_with("k_proj") {
                    add(name(&format!("{module}.bias")), &[rows], Use::Numbers);
                }
            }
        }
        for norm in norms {
            add(format!("{norm}.weight"), &[dim], Use::Numbers);
            add(format!("{norm}.bias"), &[dim], Use::Numbers);
        }
    }
    let vocabulary = [config.vocab_size as usize, dim];
    add(
        "decoder.embed_tokens.weight".into(),
        &vocabulary,
        Use::Matrix,
    );
    list
}
