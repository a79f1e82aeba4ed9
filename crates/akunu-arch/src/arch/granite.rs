//! Granite: Llama with four factors.
//!
//! ```text
//! h = e * embedding;  h += r * block(norm(h));  scores = a * q . k;  logits = Woutput norm(h) / l
//! ```
//!
//! The stream `h / r` needs no factor in front of the blocks: it begins with `e / r`, and a norm of it is that of h when
//! `eps / r^2` is added under its root instead of eps.

use super::prelude::*;

/// Granite 3 and the dense models of Granite 4.
pub const ARCH: Architecture = Architecture {
    name: "granite",
    model_types: &["granite"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

const EMBEDDING: Key = Key::new(&["embedding_scale"], &["embedding_multiplier"]);
const RESIDUAL: Key = Key::new(&["residual_scale"], &["residual_multiplier"]);
const ATTENTION: Key = Key::new(&["attention.scale"], &["attention_multiplier"]);
const LOGITS: Key = Key::new(&["logit_scale"], &["logits_scaling"]);

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let (parts, factors) = parts(file)?;
    Ok(factors.decoder(&parts, |at| {
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(factors.attention(&parts, at), ffn, parts.input_norms(at))
    }))
}

/// The factors of a model, as far as it has them.
pub(super) struct Factors {
    pub embedding: Option<f32>,
    pub residual: Option<f32>,
    pub attention: Option<f32>,
    pub logits_divisor: Option<f32>,
}

/// Its parts and its factors.
pub(super) fn parts<'a>(file: &'a ModelFile) -> Result<(Parts<'a>, Factors), ArchError> {
    parts_with(file, Factors::read(file)?)
}

/// The parts of a model with these factors.
pub(super) fn parts_with<'a>(
    file: &'a ModelFile,
    factors: Factors,
) -> Result<(Parts<'a>, Factors), ArchError> {
    let mut parts = Parts::read(file, WindowPattern::None, None)?;
    let residual = factors.residual.unwrap_or(1.0);
    parts.eps /= residual * residual;
    Ok((parts, factors))
}

impl Factors {
    /// The factors that a file says.
    pub fn read(file: &ModelFile) -> Result<Factors, ArchError> {
        Ok(Factors {
            embedding: factor(file, EMBEDDING, "embedding scale")?,
            residual: factor(file, RESIDUAL, "residual scale")?,
            attention: factor(file, ATTENTION, "attention scale")?,
            logits_divisor: factor(file, LOGITS, "logit scale")?,
        })
    }

    /// Attention with the factor of its scores.
    pub fn attention(&self, parts: &Parts, at: usize) -> Attention {
        let plain = parts.attention(at);
        Attention {
            scale: self.attention.unwrap_or(plain.scale),
            ..plain
        }
    }

    /// A decoder of these layers.
    pub fn decoder(&self, parts: &Parts, layer: impl Fn(usize) -> Layer) -> Model {
        let mut model = parts.decoder(layer);
        model.embedding.scale = Some(self.embedding.unwrap_or(1.0) / self.residual.unwrap_or(1.0));
        if let Output::Logits(logits) = &mut model.output {
            logits.scale = self.logits_divisor.map(|divisor| 1.0 / divisor);
        }
        model
    }
}

/// A factor that the file may have; 0 is none.
fn factor(file: &ModelFile, key: Key, name: &str) -> Result<Option<f32>, ArchError> {
    let factor = file.f32(key)?.filter(|&factor| factor != 0.0);
    factor.map_or(Ok(()), |factor| file.check_positive(name, factor))?;
    Ok(factor)
}
