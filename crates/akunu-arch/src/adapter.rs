//! Whether an adapter fits a model, and in which order its rows come.

use std::collections::HashMap;
use std::convert::Infallible;

use akunu_gguf::{AdapterFile, AdapterPart};

use crate::arch;
use crate::error::ArchError;
use crate::model::Model;
use crate::parts::{OUTPUT, TOKEN_EMBEDDING};
use crate::rope::Pairing;
use crate::weights::{Bind, NamedMatrix, NamedVector};

/// The shapes of all products, by the names of their weights.
#[derive(Default)]
struct Products(HashMap<String, (u32, u32)>);

impl Bind for Products {
    type Matrix = ();
    type Vector = ();
    type Error = Infallible;

    fn matrix(&mut self, weight: &NamedMatrix) -> Result<(), Infallible> {
        // A stack of expert matrices is not one product, nor is a tensor whose rows belong to several.
        if weight.stack == 1 && weight.rows == weight.tensor_rows {
            let shape = (weight.rows, weight.cols);
            self.0.insert(weight.name.clone(), shape);
        }
        Ok(())
    }

    fn vector(&mut self, _: &NamedVector) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Products {
    fn of(model: &Model) -> Products {
        let mut products = Products::default();
        let Ok(_) = model.bind(&mut products);
        // The product of tied embeddings is that of the logits.
        products.0.remove(TOKEN_EMBEDDING);
        let logits = (model.vocab_size, model.dim);
        products.0.insert(OUTPUT.to_string(), logits);
        products
    }
}

/// Checks that the model has every product that the adapter changes, in that shape.
pub fn check_adapter(model: &Model, adapter: &AdapterFile) -> Result<(), ArchError> {
    let path = || adapter.path().to_path_buf();
    if let Some(found) = adapter.architecture().filter(|name| *name != model.arch) {
        return Err(ArchError::AdapterArchitecture {
            path: path(),
            found: found.to_string(),
            wanted: model.arch,
        });
    }
    let products = Products::of(model);
    for part in adapter.parts() {
        let name = &part.weight;
        let shape = products.0.get(name).copied();
        let Some((rows, cols)) = shape else {
            let name = name.clone();
            return Err(ArchError::AdapterWeight { path: path(), name });
        };
        let (rows, cols) = (rows as usize, cols as usize);
        if (part.rows, part.cols) != (rows, cols) {
            return Err(ArchError::AdapterShape {
                path: path(),
                name: name.clone(),
                found_rows: part.rows,
                found_cols: part.cols,
                rows,
                cols,
            });
        }
    }
    Ok(())
}

/// For each row of the model's weight, the row of the adapter's B that belongs to it; `None` where both are in the same
/// order.
///
/// Rows of queries and keys are pairs that turn together. Where pairs are neighbours, element `2 i + j` of a head is what
/// is element `j head_dim / 2 + i` where they are halves.
pub fn adapter_rows(
    model: &Model,
    adapter: &AdapterFile,
    part: &AdapterPart,
) -> Option<Vec<usize>> {
    let turns = ["attention.q.weight", "attention.k.weight"];
    let is_turned = turns.iter().any(|end| part.weight.ends_with(end));
    // The heads of latent attention turn by neighbours in every file.
    let of_model = model
        .attention()
        .filter(|attention| attention.latent.is_none())
        .find_map(|attention| attention.rope)?
        .pairing;
    let of_adapter = match adapter.architecture() {
        Some(name) => arch::by_gguf_name(name)?.pairing,
        None => Pairing::SplitHalves,
    };
    if !is_turned || of_model == of_adapter {
        return None;
    }
    let head_dim = model.max_head_dim() as usize;
    let half = head_dim / 2;
    let source = |row: usize| {
        let (head, element) = (row / head_dim, row % head_dim);
        let element = match of_model {
            Pairing::Interleaved => element % 2 * half + element / 2,
            Pairing::SplitHalves => element % half * 2 + element / half,
        };
        head * head_dim + element
    };
    Some((0..part.rows).map(source).collect())
}
