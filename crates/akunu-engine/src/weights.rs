//! A model's weights on a device: where each one is bound.
//!
//! Matrices stay in the mapped file and are bound by offset; those of MLX are three tensors each ([`mlx`]). Those that are
//! converted ([`converted`]) get separate buffers. Vectors (norms,
//! biases) are few and small: they are widened to f32, which is what the kernels read, unless the file has them so.

mod converted;
mod copy;
mod gathered;
mod kernel;
mod mlx;
mod tensor;

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::EngineError;
use crate::loading::Loading;
use akunu_arch::{Bind, Change, Ffn, Model, NamedMatrix, NamedVector, OUTPUT, Output, Vision};
use akunu_gguf::{Data, FileBytes, Repacked, Span, WeightStore, WeightView};
use akunu_program::{Buffer, Device, Matrix, SharedBytes, SharedMemory, Slice, Storage, VECTOR};
use converted::repack;
use copy::{BINDING_ALIGNMENT, copy};
use mlx::InPlace;
pub(crate) use tensor::read_vector;
use tensor::{check_type, view};

/// A model whose weights are on a device.
pub(crate) type Bound = Model<Weight, Slice>;
/// A vision tower whose weights are on a device.
pub(crate) type BoundTower = Vision<Weight, Slice>;

/// The matrix of a product.
#[derive(Clone, Debug)]
pub(crate) struct Weight {
    /// The name by which adapters know the product.
    pub name: String,
    pub matrix: Matrix,
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
        Data::Plain(_) | Data::Converted(_) => 0,
    });
    bound.max().unwrap_or(0)
}

/// Binds every weight that the model reads. [`Model::check_weights`] has passed.
pub(crate) fn bind(
    store: &WeightStore,
    model: &Model,
    (path, loading): (&Path, &Loading),
    device: &mut dyn Device,
) -> Result<Bound, EngineError> {
    let mut bound = model.bind(&mut Binder {
        parts: shared_parts(store, loading, device)?,
        store,
        path,
        device,
        whole: HashMap::new(),
    })?;
    // The product of tied embeddings is that of the logits, too.
    if let Output::Logits(logits) = &mut bound.output {
        logits.weight.name = OUTPUT.to_string();
        let tied = logits.weight.matrix;
        if let Some(mtp) = bound.mtp.as_mut().filter(|mtp| mtp.output.matrix == tied) {
            mtp.output.name = OUTPUT.to_string();
        }
    }
    Ok(bound)
}

/// Binds the weights of a vision tower. [`Vision::check_weights`] has passed. Those of a folder are copied: most of it is the
/// language model, which the device need not hold twice.
pub(crate) fn bind_tower(
    store: &WeightStore,
    tower: &Vision,
    path: &Path,
    device: &mut dyn Device,
) -> Result<BoundTower, EngineError> {
    let parts = match Vision::is_alone(store) {
        true => shared_parts(store, &Loading::default(), device)?,
        false => Vec::new(),
    };
    tower.bind(&mut Binder {
        store,
        path,
        parts,
        device,
        whole: HashMap::new(),
    })
}

/// The files of a model as buffers of a device.
fn shared_parts(
    store: &WeightStore,
    loading: &Loading,
    device: &mut dyn Device,
) -> Result<Vec<Buffer>, EngineError> {
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
    Ok(parts)
}

/// The name of the matrix at a place, or of the stack of matrices; empty if there is none.
pub(crate) fn name_at(model: &Bound, place: Slice) -> &str {
    let linears = model.layers.iter().flat_map(|layer| layer.linears());
    let stacks = model.layers.iter().flat_map(|layer| match &layer.ffn {
        Ffn::Experts(experts) => vec![&experts.gate, &experts.up, &experts.down],
        Ffn::None | Ffn::Dense(_) | Ffn::Gated(_) => Vec::new(),
    });
    let latent = model
        .attention()
        .filter_map(|attention| attention.latent.as_ref());
    let of_heads = latent.flat_map(|latent| [&latent.keys, &latent.values]);
    let stacks = stacks.chain(of_heads).map(|stack| &stack.weight);
    let mut weights = linears.map(|linear| &linear.weight).chain(stacks);
    let found = weights.find(|weight| weight.matrix.place == place);
    found.map_or("", |weight| &weight.name)
}

/// Binds weights where they lie in a mapped file.
struct Binder<'a> {
    store: &'a WeightStore,
    path: &'a Path,
    /// The files; none if all weights are copied.
    parts: Vec<Buffer>,
    device: &'a mut dyn Device,
    /// Whole tensors that were bound, of which several weights may be parts.
    whole: HashMap<String, Matrix>,
}

impl Bind for Binder<'_> {
    type Matrix = Weight;
    type Vector = Slice;
    type Error = EngineError;

    fn matrix(&mut self, weight: &NamedMatrix) -> Result<Weight, EngineError> {
        let name = weight.name.clone();
        if let Some(patch) = weight.kernel {
            let matrix = kernel::matrix(self.store, weight, patch, self.path, self.device)?;
            return Ok(Weight { name, matrix });
        }
        if !weight.is_contiguous() {
            let matrix =
                gathered::matrix(&view(self.store, &name), weight, self.path, self.device)?;
            return Ok(Weight { name, matrix });
        }
        let whole = match self.whole.get(&name) {
            Some(whole) => *whole,
            None => self.whole(weight)?,
        };
        self.whole.insert(name.clone(), whole);
        let matrix = match weight.rows == weight.tensor_rows {
            true => whole,
            false => some_rows(whole, weight.first, weight.rows),
        };
        Ok(Weight { name, matrix })
    }

    fn vector(&mut self, weight: &NamedVector) -> Result<Slice, EngineError> {
        if let Some(number) = weight.constant {
            let numbers = vec![number; weight.cols as usize];
            return copy(bytemuck::cast_slice(&numbers), "constant", self.device);
        }
        let view = view(self.store, &weight.name);
        if weight.times.is_some() || !weight.is_whole() {
            return gathered::vector(self.store, weight, self.path, self.device);
        }
        bind_vector(&view, weight.change, self.path, &self.parts, self.device)
    }
}

impl Binder<'_> {
    /// A whole tensor, or a copy of those that are one by one the matrices of a stack.
    fn whole(&mut self, weight: &NamedMatrix) -> Result<Matrix, EngineError> {
        if self.store.tensor(&weight.name).is_none() && weight.stack > 1 {
            let views = (0..weight.stack).map(|at| view(self.store, &weight.name_of_expert(at)));
            return stacked(&views.collect::<Vec<_>>(), weight, self.path, self.device);
        }
        let view = view(self.store, &weight.name);
        bind_matrix(&view, self.store, self.path, &self.parts, self.device)
    }
}

/// A copy of some matrices, one behind the other.
fn stacked(
    views: &[WeightView],
    weight: &NamedMatrix,
    path: &Path,
    device: &mut dyn Device,
) -> Result<Matrix, EngineError> {
    let dtype = views[0].dtype;
    let mut all: Option<Repacked> = None;
    for view in views {
        let first = views[0].tensor;
        let differs = || EngineError::Weight {
            path: path.to_path_buf(),
            name: view.tensor.to_string(),
            why: format!("it is {}, and `{first}` is {dtype}", view.dtype),
        };
        let own = match &view.data {
            Data::Plain(span) => Repacked::Blocks(span.bytes.to_vec()),
            Data::Converted(converted) => repack(converted, view, path)?,
            Data::Mlx(_) => return Err(differs()),
        };
        let fits = match &mut all {
            Some(all) => view.dtype == dtype && all.append(own),
            None => {
                all = Some(own);
                true
            }
        };
        if !fits {
            return Err(differs());
        }
    }
    check_type(&views[0], path)?;
    let (place, storage) = match all {
        Some(all) => converted::bound(&all, &weight.name, device)?,
        None => unreachable!("a stack has matrices"),
    };
    Ok(Matrix {
        place,
        dtype,
        rows: weight.tensor_rows,
        cols: weight.cols,
        storage,
    })
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

/// Where bytes lie in a file that is a buffer, if a device can bind them there.
fn in_file(span: &Span, parts: &[Buffer]) -> Option<Slice> {
    let &buffer = parts.get(span.part)?;
    let offset = span.offset;
    let is_aligned = offset.is_multiple_of(BINDING_ALIGNMENT);
    is_aligned.then_some(Slice { buffer, offset })
}

fn bind_matrix(
    view: &WeightView,
    store: &WeightStore,
    path: &Path,
    parts: &[Buffer],
    device: &mut dyn Device,
) -> Result<Matrix, EngineError> {
    check_type(view, path)?;
    let (place, storage) = match &view.data {
        Data::Plain(span) => {
            let place = match in_file(span, parts) {
                Some(place) => place,
                None => copy(span.bytes, view.name, device)?,
            };
            (place, Storage::Rows)
        }
        Data::Mlx(mlx) => match InPlace::of(mlx, store, device) {
            Some(piece) if !parts.is_empty() => piece.bound(parts),
            Some(_) | None => mlx::copied(mlx, view.name, device)?,
        },
        Data::Converted(converted) => {
            converted::bound(&repack(converted, view, path)?, view.name, device)?
        }
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
    change: Change,
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
    let in_place = view.dtype == VECTOR && change == Change::None;
    if let Some(place) = in_file(span, parts).filter(|_| in_place) {
        return Ok(place);
    }
    let mut values = read_vector(view, path)?;
    values
        .iter_mut()
        .for_each(|value| *value = change.of(*value));
    copy(bytemuck::cast_slice(&values), view.name, device)
}
