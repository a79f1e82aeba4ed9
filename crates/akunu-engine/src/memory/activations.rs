//! What rows become on their way through the layers.

use akunu_arch::ModelConfig;
use akunu_kernels::Buffer;

use crate::error::EngineError;

/// Scratch buffers for some rows; every layer uses them again.
#[derive(Debug)]
pub(crate) struct Activations {
    /// The residual stream, (rows, dim).
    pub h: Buffer,
    /// What a block reads: the normalised residual stream, (rows, dim).
    pub x: Buffer,
    /// Queries, keys and values: (rows, q_dim), then (rows, kv_dim) twice.
    pub qkv: Buffer,
    /// What attention gives, (rows, q_dim).
    pub attention: Buffer,
    /// What a block gives before its norm, (rows, dim).
    pub y: Buffer,
    /// The gate, (rows, ffn_dim).
    pub gate: Buffer,
    /// The other half of the feed-forward block, (rows, ffn_dim).
    pub up: Buffer,
    /// The activated gate times the other half, (rows, ffn_dim).
    pub activated: Buffer,
}

impl Activations {
    /// Makes them with `buffer`, which takes a number of floats and what they are.
    pub fn make(
        config: &ModelConfig,
        rows: u32,
        mut buffer: impl FnMut(u64, &'static str) -> Result<Buffer, EngineError>,
    ) -> Result<Activations, EngineError> {
        let mut rows_of = |width: u32, label| buffer(u64::from(rows) * u64::from(width), label);
        let (dim, ffn_dim) = (config.dim, config.ffn_dim);
        Ok(Activations {
            h: rows_of(dim, "residual stream")?,
            x: rows_of(dim, "normalised")?,
            qkv: rows_of(qkv_dim(config), "q, k, v")?,
            attention: rows_of(config.q_dim(), "attention")?,
            y: rows_of(dim, "block output")?,
            gate: rows_of(ffn_dim, "gate")?,
            up: rows_of(ffn_dim, "up")?,
            activated: rows_of(ffn_dim, "activated")?,
        })
    }

    /// Floats of all of them.
    pub fn elements(config: &ModelConfig, rows: u32) -> u64 {
        let widths = [
            3 * u64::from(config.dim),
            u64::from(qkv_dim(config)),
            u64::from(config.q_dim()),
            3 * u64::from(config.ffn_dim),
        ];
        u64::from(rows) * widths.iter().sum::<u64>()
    }
}

fn qkv_dim(config: &ModelConfig) -> u32 {
    config.q_dim() + 2 * config.kv_dim()
}
