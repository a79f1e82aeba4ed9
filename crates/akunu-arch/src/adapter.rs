//! Whether an adapter fits a model, and in which order its rows come.

use akunu_gguf::{AdapterFile, AdapterPart};

use crate::arch;
use crate::config::ModelConfig;
use crate::descriptor::RopePairing;
use crate::error::ArchError;
use crate::weights::weight_shapes;

/// The weight that the embedding lookup reads. Its product is that of the logits, where it has one.
const EMBEDDING: &str = "token_embedding.weight";
/// The weight of the logits; a model with tied embeddings has the product and no weight of this name.
const OUTPUT: &str = "output.weight";

/// Checks that the model has every product that the adapter changes, in that shape.
pub fn check_adapter(config: &ModelConfig, adapter: &AdapterFile) -> Result<(), ArchError> {
    let path = || adapter.path().to_path_buf();
    if let Some(found) = adapter
        .architecture()
        .filter(|name| *name != config.arch.name)
    {
        return Err(ArchError::AdapterArchitecture {
            path: path(),
            found: found.to_string(),
            wanted: config.arch.name,
        });
    }
    let shapes = weight_shapes(config);
    for part in adapter.parts() {
        let name = &part.weight;
        let shape = match name.as_str() {
            EMBEDDING => None,
            OUTPUT => Some((config.vocab_size, config.dim)),
            _ => shapes
                .iter()
                .find(|shape| shape.name == *name && !shape.is_elementwise)
                .map(|shape| (shape.rows, shape.cols)),
        };
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
    config: &ModelConfig,
    adapter: &AdapterFile,
    part: &AdapterPart,
) -> Option<Vec<usize>> {
    let turns = ["attention.q.weight", "attention.k.weight"];
    let is_turned = turns.iter().any(|end| part.weight.ends_with(end));
    let of_model = config.arch.rope?;
    let of_adapter = match adapter.architecture() {
        Some(name) => arch::by_gguf_name(name)?.rope?,
        None => RopePairing::SplitHalves,
    };
    if !is_turned || of_model == of_adapter {
        return None;
    }
    let head_dim = config.head_dim as usize;
    let half = head_dim / 2;
    let source = |row: usize| {
        let (head, element) = (row / head_dim, row % head_dim);
        let element = match of_model {
            RopePairing::Interleaved => element % 2 * half + element / 2,
            RopePairing::SplitHalves => element % half * 2 + element / half,
        };
        head * head_dim + element
    };
    Some((0..part.rows).map(source).collect())
}
