//! Pipelines: a kernel specialised by its function constants.

use std::collections::HashMap;

use akunu_program::DeviceError;

use crate::chip::ChipConfig;
use crate::constant::Constants;
use crate::table::KernelId;

/// The key of a pipeline: the kernel and every constant's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PipelineKey {
    /// The kernel.
    pub kernel: KernelId,
    /// The constants it is specialised with.
    pub constants: Constants,
}

impl PipelineKey {
    /// The kernel without constants.
    pub fn plain(kernel: KernelId) -> PipelineKey {
        PipelineKey {
            kernel,
            constants: Constants::none(),
        }
    }
}

/// A pipeline of one device: an index that is looked up once and used for every dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PipelineId(pub u32);

/// Makes the pipelines of a plan.
pub trait Pipelines {
    /// The chip that launches are laid out for.
    fn chip(&self) -> &ChipConfig;

    /// The pipeline of this key, made at the first request.
    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError>;

    /// Most threads of a threadgroup that a pipeline can be launched with.
    fn thread_limit(&mut self, pipeline: PipelineId) -> Result<u32, DeviceError> {
        let _ = pipeline;
        Ok(self.chip().max_threads)
    }
}

/// Pipelines in the order in which they were first asked for.
#[derive(Debug, Default)]
pub struct PipelineCache<P> {
    ids: HashMap<PipelineKey, PipelineId>,
    pipelines: Vec<(PipelineKey, P)>,
}

impl<P> PipelineCache<P> {
    /// An empty cache.
    pub fn new() -> PipelineCache<P> {
        PipelineCache {
            ids: HashMap::new(),
            pipelines: Vec::new(),
        }
    }

    /// The pipeline's id; `make` is called when it is not there yet.
    pub fn get_or_make<E>(
        &mut self,
        key: &PipelineKey,
        make: impl FnOnce(&PipelineKey) -> Result<P, E>,
    ) -> Result<PipelineId, E> {
        if let Some(&id) = self.ids.get(key) {
            return Ok(id);
        }
        let pipeline = make(key)?;
        let id = PipelineId(self.pipelines.len() as u32);
        self.pipelines.push((key.clone(), pipeline));
        self.ids.insert(key.clone(), id);
        Ok(id)
    }

    /// The key and the pipeline of an id; `None` for an id of another cache.
    pub fn get(&self, id: PipelineId) -> Option<&(PipelineKey, P)> {
        self.pipelines.get(id.0 as usize)
    }
}

/// The pipelines of a device that launches nothing: kernels in the form `P`, made by `make`.
pub struct HostPipelines<P> {
    cache: PipelineCache<P>,
    make: fn(&PipelineKey) -> P,
    chip: ChipConfig,
}

impl<P> HostPipelines<P> {
    /// Pipelines that `make` makes.
    pub fn new(make: fn(&PipelineKey) -> P) -> HostPipelines<P> {
        HostPipelines {
            cache: PipelineCache::new(),
            make,
            chip: ChipConfig::least(),
        }
    }

    /// The pipeline with this id.
    pub fn get(&self, id: PipelineId) -> Option<&P> {
        self.cache.get(id).map(|(_, pipeline)| pipeline)
    }
}

impl Default for HostPipelines<()> {
    fn default() -> Self {
        HostPipelines::new(|_| ())
    }
}

impl<P> Pipelines for HostPipelines<P> {
    /// Nothing is launched; shapes that no kernel can take are refused as by the least of all chips.
    fn chip(&self) -> &ChipConfig {
        &self.chip
    }

    fn pipeline(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        let make = self.make;
        self.cache.get_or_make(key, |key| Ok(make(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constant::Constant;
    use std::convert::Infallible;

    #[test]
    fn a_pipeline_is_made_once_for_each_set_of_constants() {
        let mut cache = PipelineCache::new();
        let mut made = 0;
        let mut ask = |cache: &mut PipelineCache<u32>, key: &PipelineKey| {
            cache
                .get_or_make(key, |_| {
                    made += 1;
                    Ok::<_, Infallible>(made)
                })
                .unwrap()
        };
        let plain = PipelineKey::plain(KernelId::RmsNorm);
        let special = PipelineKey {
            constants: Constants::none().with_u32(Constant::HeadDim, 64),
            ..plain.clone()
        };
        let first = ask(&mut cache, &plain);
        let second = ask(&mut cache, &special);
        assert_ne!(first, second);
        assert_eq!(ask(&mut cache, &plain), first);
        assert_eq!(cache.get(second).map(|(_, made)| *made), Some(2));
        assert!(cache.get(PipelineId(2)).is_none());
    }
}
