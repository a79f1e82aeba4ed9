//! A row of the record of GPUs.

use super::round::{Gpu, GpuSizes, Speeds};
use crate::compare::random;
use crate::compare::summary::{Row, medians};
use serde::{Deserialize, Serialize};

/// One model on one GPU: every round of both.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GpuComparison {
    pub model: String,
    pub gpu: Gpu,
    /// The day it was measured, as 2026-11-17.
    pub date: String,
    /// What the file's weights take.
    pub weight_bytes: u64,
    pub ours: Vec<Speeds>,
    pub peer: Vec<Speeds>,
}

impl Row for GpuComparison {
    type Sizes = GpuSizes;
    /// The GPU, then the model's place and name.
    type Place = (String, usize, String);

    fn place(&self) -> Self::Place {
        let model = self.model.clone();
        (self.gpu.name.clone(), random::place(&model), model)
    }
}

impl GpuComparison {
    /// The medians of both tests of a pair: of each ours, the peer's.
    pub fn pair(&self, pair: fn(&Speeds) -> [f64; 2]) -> [(f64, f64); 2] {
        [0, 1].map(|test| medians(&self.ours, &self.peer, |speeds| pair(speeds)[test]))
    }
}
