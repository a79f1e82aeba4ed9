//! States that become infinite or NaN.
//!
//! A state keeps what it has once become, so that it is enough to look now and then: at the end of a prompt, and whenever a state is
//! put aside. Whatever follows a layer with such a state is NaN, too, so that only the inputs and the state of the last layer are
//! read, and those of the others if there is something wrong.

use akunu_program::op::StatePool;

use super::state::Runtime;
use crate::error::EngineError;
use crate::sequence::{Sequence, State};

/// A layer that has a state, and where the parts of it lie.
struct Place {
    layer: usize,
    inputs: (StatePool, u32),
    memory: (StatePool, u32),
}

impl Runtime {
    /// An error that names a layer whose state is not finite, if the last state of the sequence is so.
    pub(super) fn check_last_state(&self, sequence: &mut Sequence) -> Result<(), EngineError> {
        match self.has_states() {
            true => {
                let last = self.state_at(sequence, sequence.cached)?;
                self.check_state(sequence, last)
            }
            false => Ok(()),
        }
    }

    /// The same of one state of the sequence.
    pub(super) fn check_state(
        &self,
        sequence: &mut Sequence,
        state: Option<State>,
    ) -> Result<(), EngineError> {
        let Some(state) = state.filter(|state| sequence.states.checked != Some(state.at)) else {
            return Ok(());
        };
        let places = self.state_layers();
        if let Some(last) = places.last()
            && !self.is_finite(last, state.block)?
        {
            return Err(self.state_fault(&places, state.block)?);
        }
        sequence.states.checked = Some(state.at);
        Ok(())
    }

    /// The first layer whose memory is not finite; or, if inputs are so before, that weights are damaged.
    fn state_fault(&self, places: &[Place], block: u32) -> Result<EngineError, EngineError> {
        let path = self.model.path.clone();
        for place in places {
            if !self.are_finite(place.inputs, block)? {
                return Ok(EngineError::NotNumbers { path });
            }
            if !self.are_finite(place.memory, block)? {
                let layer = place.layer;
                return Ok(EngineError::State { path, layer });
            }
        }
        Ok(EngineError::NotNumbers { path })
    }

    fn is_finite(&self, place: &Place, block: u32) -> Result<bool, EngineError> {
        Ok(self.are_finite(place.inputs, block)? && self.are_finite(place.memory, block)?)
    }

    fn are_finite(
        &self,
        (pool, numbers): (StatePool, u32),
        block: u32,
    ) -> Result<bool, EngineError> {
        let mut found = vec![0f32; numbers as usize];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut found);
        let offset = block as usize * bytes.len();
        self.device.read(pool.blocks, offset, bytes)?;
        Ok(found.iter().all(|number| number.is_finite()))
    }

    fn state_layers(&self) -> Vec<Place> {
        let layers = self.model.config.layers.iter().enumerate();
        let sizes = layers.filter_map(|(at, layer)| Some((at, layer.mixer.state()?)));
        let places = sizes.zip(&self.memory.states);
        let place = |((layer, size), pools): ((usize, akunu_arch::StateSize), _)| {
            let &crate::builder::LayerStates { inputs, memory } = pools;
            Place {
                layer,
                inputs: (inputs, size.inputs),
                memory: (memory, size.memory),
            }
        };
        places.map(place).collect()
    }
}
