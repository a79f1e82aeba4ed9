//! The cost of weights that are converted while they are loaded.

use super::{Container, Data, WeightStore};
use crate::safetensors::Quantization;
use akunu_types::DType;
use std::fmt;

/// Weights of a folder that no device reads as they lie, together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conversion {
    /// How they are stored: the name of a method, such as `gptq`, or of a format.
    pub method: String,
    /// How many weights.
    pub weights: usize,
    /// Their bytes in the file.
    pub file_bytes: u64,
    /// Their bytes in memory.
    pub bytes: u64,
    /// Whether values are rounded: some weights become Q8_0.
    pub is_rounded: bool,
}

impl WeightStore {
    /// The converted weights, if there are any.
    pub fn conversion(&self) -> Option<Conversion> {
        let Container::Folder(folder) = self.container() else {
            return None;
        };
        let converted = self.iter().filter_map(|weight| match weight.data {
            Data::Converted(converted) => Some((converted, weight.dtype)),
            Data::Plain(_) | Data::Mlx(_) => None,
        });
        let mut found: Option<Conversion> = None;
        for (converted, dtype) in converted {
            let all = found.get_or_insert_with(|| Conversion {
                method: folder
                    .quantization()
                    .map_or("", Quantization::name)
                    .to_string(),
                weights: 0,
                file_bytes: 0,
                bytes: 0,
                is_rounded: false,
            });
            all.weights += 1;
            all.file_bytes += converted.size() as u64;
            all.bytes += converted.bytes() as u64;
            all.is_rounded |= dtype == DType::Q8_0;
        }
        found
    }
}

impl fmt::Display for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [file, memory] = [self.file_bytes, self.bytes].map(|n| n as f64 / (1 << 20) as f64);
        write!(
            f,
            "{} weights are stored as {} and were converted while loading: {memory:.1} MiB in memory for {file:.1} MiB of files, ",
            self.weights, self.method
        )?;
        f.write_str(match self.is_rounded {
            true => "each value rounded by at most 1/254 of the largest of 32",
            false => "with the same values",
        })
    }
}
