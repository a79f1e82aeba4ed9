//! Whether a file has the weights of a model.

use std::collections::HashSet;
use std::iter;
use std::path::Path;

use akunu_gguf::{Data, WeightStore, WeightView};

use crate::error::ArchError;
use crate::model::Model;
use crate::weights::{Bind, NamedMatrix, NamedVector};

impl Model {
    /// Checks that the file has every weight of the model in its shape, and no bias that the model would leave out, unless
    /// it is zero.
    pub fn check_weights(&self, store: &WeightStore, path: &Path) -> Result<(), ArchError> {
        let mut check = Check::new(store, path);
        self.bind(&mut check)?;
        // An encoder's file may have heads for tasks that we do not run, a decoder's blocks that guess further tokens, and a
        // folder towers for images and sound.
        let is_used = |name: &str| match layer_of(name) {
            Some(layer) => layer < self.layers.len() + usize::from(self.mtp.is_some()),
            None => {
                let is_of_tower = name.starts_with(TOWER);
                !self.is_encoder() && !is_of_tower && !store.tensor_names(name).is_empty()
            }
        };
        let is_left_out =
            |name: &str| name.ends_with(".bias") && is_used(name) && !check.names.contains(name);
        let mut left_out = store.iter().filter(|weight| is_left_out(weight.name));
        match left_out.find(|bias| !is_zero(bias)) {
            None => Ok(()),
            Some(bias) => Err(ArchError::Unsupported {
                path: path.to_path_buf(),
                what: format!(
                    "the bias `{}` in the architecture `{}`",
                    bias.name, self.arch
                ),
            }),
        }
    }
}

/// Whether a bias changes nothing: some programs write one of zeros for each product.
fn is_zero(bias: &WeightView) -> bool {
    match bias.data {
        Data::Plain(span) => span.bytes.iter().all(|byte| *byte == 0),
        Data::Mlx(_) | Data::Converted(_) => false,
    }
}

/// The layer that has a weight of this name.
fn layer_of(name: &str) -> Option<usize> {
    let (number, _) = name.strip_prefix("layers.")?.split_once('.')?;
    number.parse().ok()
}

/// How the names of a vision tower's weights begin.
const TOWER: &str = "vision.";

/// Looks for weights in a file.
pub(crate) struct Check<'a> {
    store: &'a WeightStore,
    path: &'a Path,
    names: HashSet<String>,
}

impl<'a> Check<'a> {
    pub fn new(store: &'a WeightStore, path: &'a Path) -> Check<'a> {
        Check {
            store,
            path,
            names: HashSet::new(),
        }
    }

    fn weight(&mut self, name: &str, [rows, cols]: [u32; 2]) -> Result<(), ArchError> {
        self.names.insert(name.to_string());
        let missing = || ArchError::MissingWeight {
            path: self.path.to_path_buf(),
            name: name.to_string(),
            rows,
            cols,
            tensors: self.store.tensor_names(name),
        };
        let weight = self.store.tensor(name).ok_or_else(missing)?;
        if (weight.rows(), weight.cols()) == (rows as usize, cols as usize) {
            return Ok(());
        }
        Err(ArchError::WeightShape {
            path: self.path.to_path_buf(),
            name: name.to_string(),
            found_rows: weight.rows(),
            found_cols: weight.cols(),
            rows,
            cols,
        })
    }
}

impl Bind for Check<'_> {
    type Matrix = ();
    type Vector = ();
    type Error = ArchError;

    fn matrix(&mut self, weight: &NamedMatrix) -> Result<(), ArchError> {
        let shape = weight.tensor_shape();
        if weight.stack == 1 {
            let mut tensors = weight.tensors().into_iter();
            return tensors.try_for_each(|name| self.weight(&name, shape));
        }
        let first = weight.name_of_expert(0);
        let Some(tensor) = self.store.tensor(&weight.name) else {
            if self.store.tensor(&first).is_none() {
                return self.weight(&weight.name, shape);
            }
            let shape = [weight.tensor_rows / weight.stack, weight.cols];
            let mut experts = 0..weight.stack;
            return experts.try_for_each(|at| self.weight(&weight.name_of_expert(at), shape));
        };
        let found = tensor.dims.as_slice().get(2).copied().unwrap_or(1);
        if found != weight.stack as usize {
            return Err(ArchError::Stack {
                path: self.path.to_path_buf(),
                name: tensor.tensor.to_string(),
                found,
                wanted: weight.stack,
            });
        }
        self.weight(&weight.name, shape)
    }

    fn vector(&mut self, weight: &NamedVector) -> Result<(), ArchError> {
        if weight.constant.is_some() {
            return Ok(());
        }
        let mut names = iter::once(&weight.name).chain(&weight.times);
        names.try_for_each(|name| self.weight(name, weight.tensor_shape()))
    }
}
