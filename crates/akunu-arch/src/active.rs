//! The weights that a token reads: of experts those that it uses, of everything else all.

use std::collections::HashMap;

use akunu_gguf::WeightStore;

use crate::ffn::{Experts, Ffn};
use crate::model::Model;

/// Weights that a token reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveWeights {
    /// Their bytes.
    pub bytes: u64,
    /// Their numbers.
    pub parameters: u64,
}

impl Model {
    /// The weights that a token reads if it reads those that `is_read` names; `None` if every token reads all of them, because
    /// there are no experts.
    pub fn active_weights(
        &self,
        store: &WeightStore,
        is_read: impl Fn(&str) -> bool,
    ) -> Option<ActiveWeights> {
        let experts = self.tensors_of_experts();
        if experts.is_empty() {
            return None;
        }
        let read = store.iter().filter(|weight| is_read(weight.name));
        Some(read.fold(ActiveWeights::default(), |sum, weight| {
            let [used, count] = experts.get(weight.name).copied().unwrap_or([1, 1]);
            let share = |n: usize| n as u64 * u64::from(used) / u64::from(count);
            ActiveWeights {
                bytes: sum.bytes + share(weight.size()),
                parameters: sum.parameters + share(weight.dims.n_elements()),
            }
        }))
    }

    /// The tensors of experts by their names: how many experts a token uses, and of how many.
    fn tensors_of_experts(&self) -> HashMap<String, [u32; 2]> {
        let mut tensors = HashMap::new();
        for layer in &self.layers {
            let Ffn::Experts(experts) = &layer.ffn else {
                continue;
            };
            let Experts { used, count, .. } = *experts;
            for linear in [&experts.gate, &experts.up, &experts.down] {
                let singles = (0..count).map(|expert| linear.weight.name_of_expert(expert));
                let names = singles.chain([linear.weight.name.clone()]);
                tensors.extend(names.map(|name| (name, [used, count])));
            }
        }
        tensors
    }
}
