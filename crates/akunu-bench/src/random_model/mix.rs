//! Which type each tensor gets, as llama-quantize chooses.
//!
//! The output layer (the embedding, where it serves as both) gets q6_k in the 4-bit mixes. `Q4_K_M` also
//! gives q6_k to the values of attention and to the second half of the feed-forward network in about half
//! of the layers: the first and last eighth, and every third between them. Where a row does not hold whole
//! blocks of 256, q5_0 and q8_0 stand in for q4_k and q6_k. `MXFP4_MOE` has q8_0 beside the experts.

use super::shape::{ModelDims, Tensor};
use akunu_types::DType;

/// The types of a file, by the name that llama-quantize has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mix {
    /// 4 bits with a scale for each 32 values
    #[value(name = "Q4_0")]
    Q4_0,
    /// 4 bits with scales and minima, and q6_k for about a third
    #[value(name = "Q4_K_M")]
    Q4KM,
    /// 8 bits with a scale for each 32 values
    #[value(name = "Q8_0")]
    Q8_0,
    /// Experts in 4-bit floats with a power of two for each 32, all else in 8 bits
    #[value(name = "MXFP4_MOE")]
    Mxfp4Moe,
    /// 16-bit floats
    #[value(name = "F16")]
    F16,
}

impl Mix {
    /// GGUF's number for it.
    pub fn file_type(self) -> u32 {
        match self {
            Mix::F16 => 1,
            Mix::Q4_0 => 2,
            Mix::Q8_0 => 7,
            Mix::Q4KM => 15,
            Mix::Mxfp4Moe => 38,
        }
    }

    /// The type of this tensor.
    pub fn dtype(self, tensor: &Tensor, model: &ModelDims) -> DType {
        if tensor.is_f32() {
            return DType::F32;
        }
        let is_output =
            tensor.name == "output.weight" || (model.tied && tensor.name == "token_embd.weight");
        let wanted = match self {
            Mix::F16 => DType::F16,
            Mix::Mxfp4Moe if tensor.name.ends_with("_exps.weight") => DType::MXFP4,
            Mix::Q8_0 | Mix::Mxfp4Moe => DType::Q8_0,
            Mix::Q4_0 | Mix::Q4KM if is_output => DType::Q6_K,
            Mix::Q4_0 => DType::Q4_0,
            Mix::Q4KM if has_more_bits(tensor, model) => DType::Q6_K,
            Mix::Q4KM => DType::Q4_K,
        };
        match wanted {
            _ if tensor.dims[0].is_multiple_of(wanted.block_len() as u64) => wanted,
            DType::Q6_K => DType::Q8_0,
            _ => DType::Q5_0,
        }
    }
}

/// Whether `Q4_K_M` gives this tensor more bits than the rest.
fn has_more_bits(tensor: &Tensor, model: &ModelDims) -> bool {
    let ends = ["attn_v.weight", "ffn_down.weight", "ffn_down_exps.weight"];
    let is_one = ends.iter().any(|end| tensor.name.ends_with(end));
    let (Some(layer), true) = (tensor.layer, is_one) else {
        return false;
    };
    let eighth = model.n_layers / 8;
    layer < eighth || layer >= 7 * model.n_layers / 8 || (layer - eighth) % 3 == 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_model::Shape;

    /// What llama-quantize makes of Llama-3-8B in Q4_K_M: 33 matrices in q6_k (16 layers have two, the
    /// output layer is one), 193 in q4_k and 65 vectors.
    #[test]
    fn the_8b_has_the_mix_of_the_published_file() {
        let shape = Shape::Llama3_8b;
        let types: Vec<DType> = shape
            .tensors()
            .iter()
            .map(|tensor| Mix::Q4KM.dtype(tensor, shape.dims()))
            .collect();
        let count = |dtype| types.iter().filter(|found| **found == dtype).count();
        assert_eq!(count(DType::Q6_K), 33);
        assert_eq!(count(DType::Q4_K), 193);
        assert_eq!(count(DType::F32), 65);
    }

    /// Fails when the output layer of a 4-bit file is 4-bit too, tied or not.
    #[test]
    fn the_output_layer_has_six_bits() {
        for (shape, name) in [
            (Shape::Llama3_8b, "output.weight"),
            (Shape::Llama3_2_1b, "token_embd.weight"),
        ] {
            let tensors = shape.tensors();
            let output = tensors.iter().find(|tensor| tensor.name == name);
            let dtype = output.map(|tensor| Mix::Q4_0.dtype(tensor, shape.dims()));
            assert_eq!(dtype, Some(DType::Q6_K), "{name}");
        }
    }

    /// Fails when a router loses bits, or another matrix than those of experts is in 4-bit floats.
    #[test]
    fn only_experts_are_in_four_bit_floats() {
        let shape = Shape::GptOss20b;
        for tensor in shape.tensors() {
            let dtype = Mix::Mxfp4Moe.dtype(&tensor, shape.dims());
            let is_float = tensor.is_norm() || tensor.name.contains("gate_inp");
            let expected = match tensor.name.as_str() {
                name if name.ends_with("_exps.weight") => DType::MXFP4,
                name if name.ends_with("bias") || name.ends_with("sinks.weight") => DType::F32,
                _ if is_float => DType::F32,
                _ => DType::Q8_0,
            };
            assert_eq!(dtype, expected, "{}", tensor.name);
        }
    }
}
