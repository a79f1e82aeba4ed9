//! Which type a tensor gets: a pure function of its name, its shape and the type asked for.

use akunu_gguf::TensorInfo;
use akunu_types::DType;

/// Ends of the names of matrices that are no operand of a matrix product: tables added value by value,
/// routers of experts, short convolutions.
const KEPT: &[&str] = &[
    "position_embd.weight",
    "token_types.weight",
    "ffn_gate_inp.weight",
    "ssm_conv1d.weight",
    "shortconv.conv.weight",
    "attn_rel_b.weight",
];

/// What a type falls back to where its blocks do not fit a row: the nearest type with blocks of 32 that
/// is no less exact.
const FALLBACKS: &[(DType, DType)] = &[
    (DType::Q2_K, DType::Q4_0),
    (DType::Q3_K, DType::Q4_0),
    (DType::Q4_K, DType::Q5_0),
    (DType::Q5_K, DType::Q5_1),
    (DType::Q6_K, DType::Q8_0),
];

/// GGUF's `general.file_type` for a model whose matrices have this type.
const FILE_TYPES: &[(DType, u32)] = &[
    (DType::F32, 0),
    (DType::F16, 1),
    (DType::Q4_0, 2),
    (DType::Q4_1, 3),
    (DType::Q8_0, 7),
    (DType::Q5_0, 8),
    (DType::Q5_1, 9),
    (DType::Q2_K, 10),
    (DType::Q3_K, 11),
    (DType::Q4_K, 14),
    (DType::Q5_K, 16),
    (DType::Q6_K, 18),
    (DType::BF16, 32),
];

/// `general.file_type` where the table has none: GGUF's "guessed" flag.
const FILE_TYPE_UNKNOWN: u32 = 1024;

/// The type that a tensor is written in when `wanted` was asked for.
pub fn target_type(tensor: &TensorInfo, wanted: DType) -> DType {
    let is_float = matches!(tensor.dtype, DType::F32 | DType::F16 | DType::BF16);
    if tensor.dims.rows() == 1 {
        return if is_float { DType::F32 } else { tensor.dtype };
    }
    let is_kept = KEPT.iter().any(|end| tensor.name.ends_with(end));
    if is_kept || !tensor.name.ends_with(".weight") {
        return tensor.dtype;
    }
    let fits = |dtype: &DType| tensor.dims.cols().is_multiple_of(dtype.block_len());
    let fallback = FALLBACKS.iter().find(|(from, _)| *from == wanted);
    [Some(wanted), fallback.map(|&(_, to)| to)]
        .into_iter()
        .flatten()
        .find(fits)
        .unwrap_or(DType::F16)
}

/// `general.file_type` for this type.
pub fn file_type(dtype: DType) -> u32 {
    let row = FILE_TYPES.iter().find(|(row, _)| *row == dtype);
    row.map_or(FILE_TYPE_UNKNOWN, |&(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use akunu_gguf::Dims;
    use akunu_gguf::quant::supported;

    fn tensor(name: &str, dims: &[u64], dtype: DType) -> TensorInfo {
        TensorInfo {
            name: name.to_string(),
            dims: Dims::new(dims).unwrap(),
            dtype,
            part: 0,
            range: 0..0,
        }
    }

    #[test]
    fn the_type_depends_on_name_and_shape() {
        use DType::{BF16, F16, F32, I32, Q4_0, Q4_K, Q5_0, Q6_K, Q8_0};
        let table = [
            ("blk.0.ffn_down.weight", &[1536, 576][..], F16, Q4_K, Q4_K),
            ("blk.0.ffn_up.weight", &[576, 1536], F16, Q4_K, Q5_0),
            ("blk.0.ffn_up.weight", &[576, 1536], F16, Q6_K, Q8_0),
            ("blk.0.ffn_up.weight", &[576, 1536], F16, DType::Q2_K, Q4_0),
            ("blk.0.ffn_up.weight", &[80, 1536], F32, Q4_K, F16),
            ("blk.0.ffn_up.weight", &[80, 1536], F32, Q8_0, F16),
            ("blk.0.ffn_up.weight", &[80, 1536], F32, BF16, BF16),
            ("blk.0.ffn_up_exps.weight", &[256, 8, 4], F16, Q4_K, Q4_K),
            ("blk.0.attn_norm.weight", &[576], F16, Q4_K, F32),
            ("blk.0.attn_norm.weight", &[576, 1], F32, Q4_K, F32),
            ("position_embd.weight", &[384, 512], F32, Q8_0, F32),
            ("blk.0.ffn_gate_inp.weight", &[256, 8], F32, Q8_0, F32),
            ("lookup.table", &[256, 8], I32, Q8_0, I32),
        ];
        for (name, dims, from, wanted, expected) in table {
            let found = target_type(&tensor(name, dims, from), wanted);
            assert_eq!(found, expected, "{name} {dims:?} {from} as {wanted}");
        }
    }

    #[test]
    fn every_type_that_can_be_asked_for_has_a_file_type() {
        for dtype in supported() {
            assert_ne!(file_type(dtype), FILE_TYPE_UNKNOWN, "{dtype}");
        }
    }
}
