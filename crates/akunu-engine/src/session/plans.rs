//! The plans of a session, made when they are first needed.

use std::ops::Range;
use std::sync::Arc;

use akunu_kernels::plan::Slice;
use akunu_kernels::{Device, Plan};

use super::Session;
use crate::builder::{Builder, Choice, Lane};
use crate::error::EngineError;
use crate::sampling::Sampling;

/// The plans that choose tokens in one way.
pub(crate) struct DecodePlans {
    sampling: Sampling,
    /// Chooses a token from logits that are there.
    pub choose: Plan,
    /// Runs a token through the layers, and chooses the next one from its logits.
    pub step: Plan,
}

/// A prefill plan is for so many rows, and computes the logits of the last one or not.
type PrefillKey = (u32, bool);

/// The prefill plans that were used last. Prompts have any length, and a plan is large: the others
/// are made again.
#[derive(Default)]
pub(super) struct PrefillPlans {
    /// The last one used comes last.
    recent: Vec<(PrefillKey, Arc<Plan>)>,
}

impl PrefillPlans {
    /// A whole chunk with and without logits, and the ends of two prompts.
    const CAPACITY: usize = 4;

    fn get(&mut self, key: PrefillKey) -> Option<Arc<Plan>> {
        let at = self.recent.iter().position(|(has, _)| *has == key)?;
        let found = self.recent.remove(at);
        let plan = Arc::clone(&found.1);
        self.recent.push(found);
        Some(plan)
    }

    fn insert(&mut self, key: PrefillKey, plan: &Arc<Plan>) {
        if self.recent.len() == PrefillPlans::CAPACITY {
            self.recent.remove(0);
        }
        self.recent.push((key, Arc::clone(plan)));
    }
}

impl Session<'_> {
    /// The plan for `rows` tokens, with the logits of the last one when they are wanted.
    pub(super) fn prefill_plan(
        &mut self,
        rows: u32,
        with_logits: bool,
    ) -> Result<Arc<Plan>, EngineError> {
        let key = (rows, with_logits);
        if let Some(plan) = self.prefills.get(key) {
            return Ok(plan);
        }
        let mut device = self.model.device();
        let mut builder = self.builder(device.as_mut(), rows);
        builder.layers(self.memory.prompt)?;
        if with_logits {
            builder.logits(rows - 1..rows, self.memory.logits.into())?;
        }
        let plan = Plan::check(builder.dispatches, self.sizes.context - rows)?;
        device.prepare(&plan)?;
        drop(device);
        let plan = Arc::new(plan);
        self.prefills.insert(key, &plan);
        Ok(plan)
    }

    /// A plan for the logits of some rows of the last chunk.
    pub(super) fn logits_plan(&self, rows: Range<u32>, to: Slice) -> Result<Plan, EngineError> {
        let mut device = self.model.device();
        let mut builder = self.builder(device.as_mut(), 1);
        builder.logits(rows, to)?;
        let plan = Plan::check(builder.dispatches, 0)?;
        device.prepare(&plan)?;
        Ok(plan)
    }

    /// The plans that choose tokens with `sampling`.
    pub(super) fn decode_plans(
        &mut self,
        sampling: Sampling,
    ) -> Result<Arc<DecodePlans>, EngineError> {
        sampling.check()?;
        if let Some(plans) = &self.decode
            && plans.sampling == sampling
        {
            return Ok(Arc::clone(plans));
        }
        let last = self.sizes.context - 1;
        let mut device = self.model.device();
        let mut builder = self.builder(device.as_mut(), 1);
        sampling.write(&mut builder, self.choice())?;
        let choose = Plan::check(builder.dispatches, last)?;
        device.prepare(&choose)?;
        let mut builder = self.builder(device.as_mut(), 1);
        builder.layers(self.memory.token)?;
        builder.logits(0..1, self.memory.logits.into())?;
        sampling.write(&mut builder, self.choice())?;
        let step = Plan::check(builder.dispatches, last)?;
        device.prepare(&step)?;
        log_kernels(&step);
        drop(device);
        let plans = Arc::new(DecodePlans {
            sampling,
            choose,
            step,
        });
        self.decode = Some(Arc::clone(&plans));
        Ok(plans)
    }

    pub(super) fn builder<'a>(&'a self, device: &'a mut dyn Device, rows: u32) -> Builder<'a> {
        Builder {
            device,
            config: self.model.config(),
            weights: self.model.weights(),
            activations: &self.memory.activations,
            lanes: vec![self.lane(rows)],
            rows,
            dispatches: Vec::new(),
        }
    }

    /// This session with all rows of a plan.
    pub(crate) fn lane(&self, n_rows: u32) -> Lane<'_> {
        Lane {
            memory: &self.memory,
            context: self.sizes.context,
            first_row: 0,
            n_rows,
            ahead: 0,
        }
    }

    /// The choice of a token from this session's own logits.
    fn choice(&self) -> Choice<'_> {
        Choice {
            lane: self.lane(1),
            logits: self.memory.logits.into(),
            token: self.memory.token.into(),
        }
    }
}

/// Says once which kernels a model decodes with.
fn log_kernels(plan: &Plan) {
    let mut kernels: Vec<String> = Vec::new();
    for dispatch in plan.dispatches() {
        let name = dispatch.kernel.row().name();
        if !kernels.contains(&name) {
            kernels.push(name);
        }
    }
    tracing::info!(
        dispatches = plan.dispatches().len(),
        kernels = kernels.join(" "),
        "decode plan"
    );
}
