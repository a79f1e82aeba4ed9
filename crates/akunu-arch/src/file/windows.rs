//! Which layers have a sliding window.

use serde_json::Value;

use super::{Key, ModelFile, Said, keys};
use crate::error::ArchError;

/// Which layers have a window where the file names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPattern {
    /// No layer does.
    None,
    /// Every layer does.
    All,
    /// Of `period` layers in a row, all but the last.
    AllButEvery {
        /// Layers from one without a window to the next.
        period: u32,
    },
    /// Of `period` layers in a row, all but the first.
    AllButFirst {
        /// Layers from one without a window to the next.
        period: u32,
    },
}

impl WindowPattern {
    /// Whether this layer has the window.
    const fn is_windowed(self, layer: u32) -> bool {
        match self {
            WindowPattern::None => false,
            WindowPattern::All => true,
            WindowPattern::AllButEvery { period } => !(layer + 1).is_multiple_of(period),
            WindowPattern::AllButFirst { period } => !layer.is_multiple_of(period),
        }
    }

    /// The same layer of every `period` layers without a window as before: the last, unless it was the first.
    const fn with_period(self, period: u32) -> WindowPattern {
        match self {
            WindowPattern::AllButFirst { .. } => WindowPattern::AllButFirst { period },
            _ => WindowPattern::AllButEvery { period },
        }
    }
}

const PATTERN: &str = "attention.sliding_window_pattern";
const PERIOD: Key = Key::new(
    &[PATTERN],
    &["sliding_window_pattern", "global_attn_every_n_layers"],
);

impl ModelFile<'_> {
    /// The window of each layer. Which layers have the window is said by a flag for each layer, by the distance
    /// of those without, or by `pattern`.
    pub fn windows(
        &self,
        pattern: WindowPattern,
        n_layers: usize,
    ) -> Result<Vec<Option<u32>>, ArchError> {
        let window = self.u32(keys::WINDOW)?.filter(|&window| window > 0);
        let (flags, period) = self.windowed_layers()?;
        let pattern = period.map_or(pattern, |period| pattern.with_period(period));
        let is_windowed = |(at, layer): (usize, u32)| match flags.get(at) {
            Some(&is_windowed) => is_windowed,
            None => pattern.is_windowed(layer),
        };
        let layers = (0..n_layers).zip(0..);
        Ok(layers
            .map(|layer| window.filter(|_| is_windowed(layer)))
            .collect())
    }

    /// A flag for each layer, as far as there are any, and the distance of layers without a window.
    fn windowed_layers(&self) -> Result<(Vec<bool>, Option<u32>), ArchError> {
        let (flags, period) = match self.said {
            Said::Metadata(file) => {
                let (metadata, name) = (file.metadata(), self.name(PATTERN));
                match metadata.u32(&name) {
                    Ok(period) => (Vec::new(), period),
                    Err(_) => {
                        let flags = metadata.bools(&name)?.into_iter().flatten();
                        // A layer beyond the end of the list has no window.
                        (
                            flags
                                .chain(std::iter::repeat(false))
                                .take(MAX_LAYERS)
                                .collect(),
                            None,
                        )
                    }
                }
            }
            Said::Config(section) => {
                let types = section.get("layer_types").and_then(Value::as_array);
                let types = types.into_iter().flatten();
                let flags = types.map(|kind| kind.as_str() == Some("sliding_attention"));
                let flags: Vec<bool> = flags.collect();
                // Beside a list, the period may be letters.
                let period = match flags.is_empty() {
                    true => self.u32(PERIOD)?,
                    false => None,
                };
                (flags, period)
            }
        };
        Ok((flags, period.filter(|&period| period > 0)))
    }
}

/// More layers than any model has.
const MAX_LAYERS: usize = 1 << 12;
