//! Short convolutions, and the parts that all mixers with a state share, with the names of their weights.

use super::{Parts, in_layer, linear};
use crate::error::ArchError;
use crate::file::Key;
use crate::state::{ShortConv, Taps};
use crate::weights::NamedVector;

/// Taps of a convolution before a state.
pub(super) const TAPS: Key = Key::new(
    &["ssm.conv_kernel"],
    &["linear_conv_kernel_dim", "mamba_d_conv", "conv_kernel"],
);
impl Parts<'_> {
    /// Which layers have full attention: in `config.json` those whose type says so, in GGUF files those that `has` names.
    pub fn attention_layers(
        &self,
        has: impl Fn(usize) -> Result<bool, ArchError>,
    ) -> Result<Vec<bool>, ArchError> {
        let types = self.file.config().and_then(|config| {
            let types = config.get("layer_types")?.as_array()?;
            let is_attention = |kind: &serde_json::Value| {
                matches!(kind.as_str(), Some("full_attention" | "attention"))
            };
            Some(types.iter().map(is_attention))
        });
        match types {
            None => (0..self.n_layers).map(has).collect(),
            Some(types) if types.len() == self.n_layers => Ok(types.collect()),
            Some(types) => {
                let found = format!("{} for {} layers", types.len(), self.n_layers);
                Err(self
                    .file
                    .invalid("layer_types", found, "a type for each layer"))
            }
        }
    }

    /// The taps of a convolution that a file says.
    pub fn taps(&self, key: Key) -> Result<u32, ArchError> {
        let taps = self.file.required(key)?;
        match (2..=4).contains(&taps) {
            true => Ok(taps),
            false => {
                let key = self.file.key_name(key);
                Err(self.file.invalid(&key, taps.to_string(), "2, 3 or 4"))
            }
        }
    }

    /// A convolution between two gates.
    pub fn short_conv(&self, at: usize, taps: u32) -> ShortConv {
        let (width, name) = (self.dim, |part| in_layer(at, &format!("conv.{part}")));
        ShortConv {
            width,
            conv: Taps {
                count: taps,
                weight: NamedVector::new(name("taps.weight"), width, taps),
                bias: None,
            },
            input: linear(name("input"), 3 * width, width),
            output: linear(name("output"), width, width),
        }
    }
}

impl ShortConv {
    /// The same with all biases.
    pub(crate) fn with_biases(self) -> ShortConv {
        let name = self.conv.weight.name.trim_end_matches("weight");
        let bias = NamedVector::new(format!("{name}bias"), 1, self.width);
        ShortConv {
            conv: Taps {
                bias: Some(bias),
                ..self.conv
            },
            input: self.input.with_bias(),
            output: self.output.with_bias(),
            ..self
        }
    }
}
