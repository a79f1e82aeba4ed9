//! The weights of a file, which were checked before.

use std::path::Path;

use akunu_gguf::{Data, WeightStore, WeightView, quant};

use crate::error::EngineError;

/// A weight that the file has.
pub(super) fn view<'a>(store: &'a WeightStore, name: &str) -> WeightView<'a> {
    match store.tensor(name) {
        Some(view) => view,
        None => unreachable!("{name} was checked with the others"),
    }
}

/// Refuses a weight in a format without kernels.
pub(super) fn check_type(view: &WeightView, path: &Path) -> Result<(), EngineError> {
    match view.dtype.is_usable() {
        true => Ok(()),
        false => Err(EngineError::WeightType {
            path: path.to_path_buf(),
            name: view.name.to_string(),
            dtype: view.dtype,
        }),
    }
}

/// The values of a plain weight.
pub(crate) fn read_vector(view: &WeightView, path: &Path) -> Result<Vec<f32>, EngineError> {
    let mut values = vec![0.0; view.rows() * view.cols()];
    let fail = |why: String| EngineError::Weight {
        path: path.into(),
        name: view.name.into(),
        why,
    };
    match &view.data {
        Data::Plain(span) => quant::dequantise(view.dtype, span.bytes, &mut values)
            .map_err(|error| fail(error.to_string()))?,
        Data::Mlx(_) | Data::Converted(_) => return Err(fail("a vector is quantised".into())),
    }
    Ok(values)
}
