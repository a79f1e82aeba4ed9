//! What plans cost.

use super::work::{Cost, Work};
use crate::plan::{Dispatch, Plan};

impl Dispatch {
    /// What it does in a full step.
    pub fn work(&self) -> Work {
        let row = self.kernel.row();
        row.work(&row.args(self.params.as_bytes(), &self.constants))
    }
}

impl Plan {
    /// What a full step costs.
    pub fn cost(&self) -> Cost {
        self.dispatches().iter().map(|d| d.work().cost()).sum()
    }
}
