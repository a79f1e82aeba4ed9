//! MiniCPM: Granite under other names.
//!
//! Blocks are multiplied by `depth / sqrt(layers)`, and logits are divided by `dim / base`.

use super::granite::{self, Factors};
use super::prelude::*;
use crate::file::keys;

/// MiniCPM 1B and 2B, and MiniCPM4.
pub const ARCH: Architecture = Architecture {
    name: "minicpm",
    model_types: &["minicpm"],
    pairing: Pairing::Interleaved,
    read: Read::Text(model),
};

/// What the first GGUF files leave out.
const EMBEDDING: f32 = 12.0;
const DEPTH: f32 = 1.4;
const BASE: f32 = 256.0;

fn model(file: &ModelFile) -> Result<Model, ArchError> {
    let found = factors(file)?;
    let (parts, factors) = granite::parts_with(file, found)?;
    Ok(factors.decoder(&parts, |at| {
        let ffn = parts.gated(at, Activation::Silu);
        Layer::gated(factors.attention(&parts, at), ffn, parts.input_norms(at))
    }))
}

fn factors(file: &ModelFile) -> Result<Factors, ArchError> {
    let Some(config) = file.config() else {
        let plain = Factors::read(file)?;
        let [layers, dim] = [file.required(keys::LAYERS)?, file.required(keys::DIM)?];
        return Ok(Factors {
            embedding: plain.embedding.or(Some(EMBEDDING)),
            residual: plain.residual.or(Some(DEPTH / (layers as f32).sqrt())),
            logits_divisor: plain.logits_divisor.or(Some(dim as f32 / BASE)),
            ..plain
        });
    };
    let number = |key: &str| {
        let found = config.f32(key)?;
        found.map_or(Ok(()), |number| file.check_positive(key, number))?;
        Ok::<_, ArchError>(found)
    };
    let [layers, dim] = [file.required(keys::LAYERS)?, file.required(keys::DIM)?];
    Ok(Factors {
        embedding: number("scale_emb")?,
        residual: number("scale_depth")?.map(|depth| depth / (layers as f32).sqrt()),
        attention: None,
        logits_divisor: number("dim_model_base")?.map(|base| dim as f32 / base),
    })
}
