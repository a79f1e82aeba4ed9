//! A model's weights on a device: where each one is bound.
//!
//! Matrices stay in the mapped file and are bound by offset; those of MLX are three tensors each ([`mlx`]). Vectors (norms,
//! biases) are few and small: they are widened to f32, which is what the kernels read, unless the file has them so.

mod copy;
mod mlx;

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::EngineError;
use crate::loading::Loading;
use akunu_arch::{ModelConfig, weight_shapes};
use akunu_gguf::{Data, FileBytes, WeightStore, WeightView, quant};
use akunu_program::{Buffer, Device, Matrix, SharedBytes, SharedMemory, Slice, Storage, VECTOR};
use copy::{BINDING_ALIGNMENT, copy};
use mlx::InPlace;

/// Every weight of a model, by canonical name.
#[derive(Debug)]
pub(crate) struct Weights {
    matrices: HashMap<String, Matrix>,
    vectors: HashMap<String, Slice>,
}

/// A mapped file as a device wants it.
struct Part {
    bytes: Arc<FileBytes>,
    /// Bytes of its largest tensor.
    longest: usize,
    loading: Loading,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl SharedMemory for Part {
    fn forget(&self, range: Range<usize>) {
        self.loading.take(range.len());
        self.bytes.forget(range);
    }

    fn longest_part(&self) -> Option<usize> {
        Some(self.longest)
    }
}

/// Bytes of the longest piece of a file that is bound where it lies.
fn longest(store: &WeightStore, part: usize, device: &dyn Device) -> usize {
    let bound = store.iter().map(|view| match view.data {
        Data::Plain(span) if span.part == part => span.bytes.len(),
        Data::Mlx(mlx) => match InPlace::of(&mlx, store, device) {
            Some(piece) if piece.part == part => piece.bytes,
            _ => 0,
        },
        Data::Plain(_) => 0,
    });
    bound.max().unwrap_or(0)
}

impl Weights {
    /// Binds every weight that the model reads. [`ModelConfig::check_weights`] has passed.
    pub fn bind(
        store: &WeightStore,
        config: &ModelConfig,
        (path, loading): (&Path, &Loading),
        device: &mut dyn Device,
    ) -> Result<Weights, EngineError> {
        for part in store.parts() {
            loading.expect(part.len());
        }
        let mut parts = Vec::new();
        for (at, part) in store.parts().iter().enumerate() {
            let bytes: SharedBytes = Arc::new(Part {
                bytes: Arc::clone(part),
                longest: longest(store, at, device),
                loading: loading.clone(),
            });
            parts.push(device.share(bytes, &format!("weights {at}"))?);
        }
        let mut weights = Weights {
            matrices: HashMap::new(),
            vectors: HashMap::new(),
        };
        for shape in weight_shapes(config) {
            let Some(view) = store.tensor(&shape.name) else {
                continue;
            };
            if shape.is_elementwise {
                let offset = norm_offset(config, &shape.name);
                let vector = bind_vector(&view, offset, path, &parts, device)?;
                weights.vectors.insert(shape.name, vector);
            } else {
                let matrix = bind_matrix(&view, store, path, &parts, device)?;
                weights.matrices.insert(shape.name, matrix);
            }
        }
        weights.split_qkv(config);
        weights.split_gate(config);
        Ok(weights)
    }

    /// Where q, k and v are one matrix, each is some rows of it.
    fn split_qkv(&mut self, config: &ModelConfig) {
        for layer in 0..config.layers.len() {
            let name = |part: &str| format!("layers.{layer}.attention.{part}.weight");
            let Some(&whole) = self.matrices.get(&name("qkv")) else {
                continue;
            };
            let mut first = 0;
            for (part, rows) in [
                ("q", config.q_dim()),
                ("k", config.kv_dim()),
                ("v", config.kv_dim()),
            ] {
                self.matrices
                    .insert(name(part), some_rows(whole, first, rows));
                first += rows;
            }
        }
    }

    /// Where the gate and the up projection are one matrix, the gate is the first half of its rows.
    fn split_gate(&mut self, config: &ModelConfig) {
        if !config.arch.has_fused_gate {
            return;
        }
        for layer in 0..config.layers.len() {
            let name = |part: &str| format!("layers.{layer}.ffn.{part}.weight");
            let (whole, rows) = (self.matrix(&name("up")), config.ffn_dim);
            for (part, first) in [("gate", 0), ("up", rows)] {
                let matrix = some_rows(whole, first, rows);
                self.matrices.insert(name(part), matrix);
            }
        }
    }

    /// A matrix that the model has.
    pub fn matrix(&self, name: &str) -> Matrix {
        match self.matrices.get(name) {
            Some(matrix) => *matrix,
            None => unreachable!("{name} was bound with the others"),
        }
    }

    /// The name of the matrix at a place.
    pub fn name_at(&self, place: Slice) -> &str {
        let mut matrices = self.matrices.iter();
        let found = matrices.find(|(_, matrix)| matrix.place == place);
        found.map_or("", |(name, _)| name)
    }

    /// A vector that the model has.
    pub fn vector(&self, name: &str) -> Slice {
        match self.find_vector(name) {
            Some(place) => place,
            None => unreachable!("{name} was bound with the others"),
        }
    }

    /// A vector that the model may have.
    pub fn find_vector(&self, name: &str) -> Option<Slice> {
        self.vectors.get(name).copied()
    }
}

/// What is added to a norm's weights: 1 where the file holds `w` of `1 + w`.
fn norm_offset(config: &ModelConfig, name: &str) -> f32 {
    if config.arch.norm_adds_one && name.contains("norm") {
        1.0
    } else {
        0.0
    }
}

/// `rows` rows of a matrix, from `first` on.
fn some_rows(whole: Matrix, first: u32, rows: u32) -> Matrix {
    if let Storage::Mlx(layout) = whole.storage {
        return mlx::some_rows(whole, layout, first, rows);
    }
    let row_bytes = whole.dtype.bytes_of(whole.cols as usize).unwrap_or(0);
    let place = Slice {
        offset: whole.place.offset + first as usize * row_bytes,
        ..whole.place
    };
    Matrix {
        place,
        rows,
        ..whole
    }
}

fn bind_matrix(
    view: &WeightView,
    store: &WeightStore,
    path: &Path,
    parts: &[Buffer],
    device: &mut dyn Device,
) -> Result<Matrix, EngineError> {
    if !view.dtype.is_usable() {
        return Err(EngineError::WeightType {
            path: path.to_path_buf(),
            name: view.name.to_string(),
            dtype: view.dtype,
        });
    }
    let (place, storage) = match &view.data {
        Data::Plain(span) if span.offset.is_multiple_of(BINDING_ALIGNMENT) => (
            Slice {
                buffer: parts[span.part],
                offset: span.offset,
            },
            Storage::Rows,
        ),
        Data::Plain(span) => (copy(span.bytes, view.name, device)?, Storage::Rows),
        Data::Mlx(mlx) => match InPlace::of(mlx, store, device) {
            Some(piece) => piece.bound(parts),
            None => mlx::copied(mlx, view.name, device)?,
        },
    };
    let (rows, cols) = (view.rows() as u32, view.cols() as u32);
    Ok(Matrix {
        place,
        dtype: view.dtype,
        rows,
        cols,
        storage,
    })
}

fn bind_vector(
    view: &WeightView,
    offset: f32,
    path: &Path,
    parts: &[Buffer],
    device: &mut dyn Device,
) -> Result<Slice, EngineError> {
    let Data::Plain(span) = &view.data else {
        let why = "a vector is quantised".to_string();
        return Err(EngineError::Weight {
            path: path.into(),
            name: view.name.into(),
            why,
        });
    };
    let in_place = view.dtype == VECTOR && offset == 0.0;
    if in_place && span.offset.is_multiple_of(BINDING_ALIGNMENT) {
        return Ok(Slice {
            buffer: parts[span.part],
            offset: span.offset,
        });
    }
    let mut values = read_vector(view, path)?;
    values.iter_mut().for_each(|value| *value += offset);
    copy(bytemuck::cast_slice(&values), view.name, device)
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
        Data::Mlx(_) => return Err(fail("a vector is quantised".into())),
    }
    Ok(values)
}
