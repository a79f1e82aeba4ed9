//! Numbers that a file has as weights.

use akunu_gguf::{Data, quant};

use super::ModelFile;
use crate::error::ArchError;

impl ModelFile<'_> {
    /// The number that a weight of one element has; `None` if the file does not have the weight.
    pub(crate) fn number(&self, weight: &str) -> Result<Option<f32>, ArchError> {
        let Some(view) = self.store.tensor(weight) else {
            return Ok(None);
        };
        let mut value = [0.0];
        let is_read = match view.data {
            Data::Plain(span) => quant::dequantise(view.dtype, span.bytes, &mut value).is_ok(),
            Data::Mlx(_) | Data::Converted(_) => false,
        };
        match is_read && value[0].is_finite() {
            true => Ok(Some(value[0])),
            false => {
                let found = format!("{} numbers of type {}", view.dims.n_elements(), view.dtype);
                Err(self.invalid(view.tensor, found, "one finite number"))
            }
        }
    }
}
