//! The block for multi-token prediction, with the names of its weights.

use std::convert::Infallible;

use akunu_gguf::Data;

use super::{OUTPUT, Parts, TOKEN_EMBEDDING, in_layer};
use crate::layer::Layer;
use crate::linear::Linear;
use crate::model::{Model, Output};
use crate::mtp::MtpBlock;
use crate::weights::{Bind, NamedMatrix, NamedVector};

impl Parts<'_> {
    /// The same model with the block that its file has behind the last layer, if that is there. The layer of the block is like the
    /// last one of the model.
    pub(crate) fn with_mtp(&self, model: Model) -> Model {
        let mtp = model.layers.last().and_then(|last| self.mtp(&model, last));
        Model { mtp, ..model }
    }

    fn mtp(&self, model: &Model, last: &Layer) -> Option<MtpBlock> {
        let at = self.n_layers;
        let name = |part: &str| in_layer(at, &format!("mtp.{part}"));
        let [of_embedding, of_hidden] =
            NamedMatrix::halves(name("join.weight"), self.dim, self.dim)
                .map(|weight| Linear { weight, bias: None });
        if !self.can_halve(&of_embedding.weight) {
            return None;
        }
        let own_or = |part: &str, other: &str| {
            let own = name(part);
            let name = if self.has(&own) { &own } else { other };
            NamedMatrix::new(name, self.vocab_size, self.dim)
        };
        let Output::Logits(logits) = &model.output else {
            return None;
        };
        let output = match logits.is_tied {
            true => TOKEN_EMBEDDING,
            false => OUTPUT,
        };
        let norm = match self.has(&name("norm.weight")) {
            true => name("norm"),
            false => "output_norm".to_string(),
        };
        let block = MtpBlock {
            embedding: own_or("embedding.weight", TOKEN_EMBEDDING),
            embedding_norm: self.norm(name("embedding_norm")),
            hidden_norm: self.norm(name("hidden_norm")),
            of_embedding,
            of_hidden,
            layer: moved(last, at),
            norm: self.norm(norm),
            output: own_or("output.weight", output),
            dim: self.dim,
        };
        block.is_supported().then_some(block)
    }

    /// Whether the file has this tensor, and its columns can be taken apart where the halves meet.
    fn can_halve(&self, half: &NamedMatrix) -> bool {
        let Some(view) = self.file.store.tensor(&half.name) else {
            return false;
        };
        let is_plain = matches!(view.data, Data::Plain(_) | Data::Converted(_));
        is_plain && view.dtype.bytes_of(half.cols as usize).is_some()
    }
}

/// A layer like this one, whose weights are those of layer `at`.
fn moved(layer: &Layer, at: usize) -> Layer {
    let Ok(layer) = layer.bind(&mut Moved { at });
    layer
}

/// Renames the weights of a layer to those of a different layer.
struct Moved {
    at: usize,
}

impl Moved {
    fn name(&self, name: &str) -> String {
        let part = name.strip_prefix("layers.");
        let part = part.and_then(|rest| rest.split_once('.'));
        part.map_or(name.to_string(), |(_, part)| in_layer(self.at, part))
    }
}

impl Bind for Moved {
    type Matrix = NamedMatrix;
    type Vector = NamedVector;
    type Error = Infallible;

    fn matrix(&mut self, weight: &NamedMatrix) -> Result<NamedMatrix, Infallible> {
        Ok(NamedMatrix {
            name: self.name(&weight.name),
            ..weight.clone()
        })
    }

    fn vector(&mut self, weight: &NamedVector) -> Result<NamedVector, Infallible> {
        Ok(NamedVector {
            name: self.name(&weight.name),
            times: weight.times.as_ref().map(|times| self.name(times)),
            ..weight.clone()
        })
    }
}
