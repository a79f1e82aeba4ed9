//! Pipelines, made in parallel.
//!
//! Asking for a pipeline starts a thread that makes it and returns its number at once; whoever needs
//! the pipeline itself waits for it. A model asks for all of its pipelines while its plans are laid
//! out, so that they are made at the same time.

use std::sync::Arc;
use std::thread::JoinHandle;

use akunu_program::DeviceError;

use crate::pipeline::{PipelineCache, PipelineId, PipelineKey};

/// Makes pipelines, on several threads at once.
pub trait Compiler: Send + Sync + 'static {
    /// A compiled kernel.
    type Pipeline: Send + 'static;

    /// Makes the pipeline of a key, or says why it cannot.
    fn compile(&self, key: &PipelineKey) -> Result<Compiled<Self::Pipeline>, String>;
}

/// A pipeline and what it allows.
#[derive(Debug)]
pub struct Compiled<P> {
    /// The pipeline.
    pub pipeline: P,
    /// Most threads of a threadgroup that it can be launched with.
    pub max_threads: u32,
    /// Bytes that it leaves for dynamic threadgroup memory.
    pub threadgroup_room: u32,
}

type Outcome<P> = Result<Compiled<P>, String>;

enum Slot<P> {
    Making(JoinHandle<Outcome<P>>),
    Made(Outcome<P>),
}

/// All pipelines of a device.
pub(super) struct Pipelines<C: Compiler> {
    compiler: Arc<C>,
    keys: PipelineCache<()>,
    slots: Vec<Slot<C::Pipeline>>,
    /// The slots before this one are made.
    n_made: usize,
}

impl<C: Compiler> Pipelines<C> {
    pub(super) fn new(compiler: Arc<C>) -> Pipelines<C> {
        Pipelines {
            compiler,
            keys: PipelineCache::new(),
            slots: Vec::new(),
            n_made: 0,
        }
    }

    /// The number of a key's pipeline; starts making it at the first request.
    pub(super) fn id(&mut self, key: &PipelineKey) -> Result<PipelineId, DeviceError> {
        let (compiler, slots) = (&self.compiler, &mut self.slots);
        self.keys.get_or_make(key, |key| {
            slots.push(start(compiler, key));
            Ok(())
        })
    }

    /// Waits for one pipeline.
    pub(super) fn wait(&mut self, id: PipelineId) -> Result<&Compiled<C::Pipeline>, DeviceError> {
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            settle(slot);
        }
        self.made(id)
    }

    /// Waits for all pipelines that were asked for.
    pub(super) fn wait_all(&mut self) -> Result<(), DeviceError> {
        if self.n_made == self.slots.len() {
            return Ok(());
        }
        for at in self.n_made..self.slots.len() {
            settle(&mut self.slots[at]);
            self.made(PipelineId(at as u32))?;
            self.n_made = at + 1;
        }
        Ok(())
    }

    /// A pipeline that was waited for.
    pub(super) fn made(&self, id: PipelineId) -> Result<&Compiled<C::Pipeline>, DeviceError> {
        let slot = self.slots.get(id.0 as usize);
        let key = self.keys.get(id);
        match (slot, key) {
            (Some(Slot::Made(Ok(compiled))), _) => Ok(compiled),
            (Some(Slot::Made(Err(why))), Some((key, ()))) => Err(DeviceError::Pipeline {
                kernel: key.kernel.row().name(),
                why: why.clone(),
            }),
            _ => Err(DeviceError::Foreign {
                what: "pipeline",
                id: id.0,
            }),
        }
    }
}

fn start<C: Compiler>(compiler: &Arc<C>, key: &PipelineKey) -> Slot<C::Pipeline> {
    let (thread_compiler, thread_key) = (Arc::clone(compiler), key.clone());
    let spawned = std::thread::Builder::new()
        .name("pipeline".into())
        .spawn(move || thread_compiler.compile(&thread_key));
    match spawned {
        Ok(thread) => Slot::Making(thread),
        // No thread to be had: here and now, then.
        Err(_) => Slot::Made(compiler.compile(key)),
    }
}

fn settle<P>(slot: &mut Slot<P>) {
    if let Slot::Making(_) = slot {
        let gone = Slot::Made(Err("it is being waited for".into()));
        if let Slot::Making(thread) = std::mem::replace(slot, gone) {
            let panicked = || Err("its compiler panicked".to_owned());
            *slot = Slot::Made(thread.join().unwrap_or_else(|_| panicked()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::KernelId;
    use std::sync::Barrier;

    /// Makes pipelines only when two are being made at the same time; refuses LayerNorm.
    struct Pair {
        both: Barrier,
    }

    impl Compiler for Pair {
        type Pipeline = KernelId;

        fn compile(&self, key: &PipelineKey) -> Result<Compiled<KernelId>, String> {
            if key.kernel == KernelId::LayerNorm {
                return Err("no norm today".into());
            }
            self.both.wait();
            Ok(Compiled {
                pipeline: key.kernel,
                max_threads: 512,
                threadgroup_room: 1024,
            })
        }
    }

    fn pipelines() -> Pipelines<Pair> {
        Pipelines::new(Arc::new(Pair {
            both: Barrier::new(2),
        }))
    }

    /// One after another, each would wait for the other for ever.
    #[test]
    fn pipelines_are_made_at_the_same_time_and_once() {
        let mut all = pipelines();
        let keys = [KernelId::RmsNorm, KernelId::Argmax].map(PipelineKey::plain);
        let ids = keys.clone().map(|key| all.id(&key).unwrap());
        assert_eq!(keys.clone().map(|key| all.id(&key).unwrap()), ids);
        all.wait_all().unwrap();
        all.wait_all().unwrap();
        for (key, id) in keys.iter().zip(ids) {
            assert_eq!(all.wait(id).unwrap().pipeline, key.kernel);
        }
    }

    #[test]
    fn a_failure_names_the_kernel_each_time() {
        let mut all = pipelines();
        let id = all.id(&PipelineKey::plain(KernelId::LayerNorm)).unwrap();
        for _ in 0..2 {
            let error = all.wait_all().unwrap_err().to_string();
            assert_eq!(error, "kernel layernorm_f32 cannot be made: no norm today");
        }
        assert!(all.wait(id).is_err());
        assert!(matches!(
            all.made(PipelineId(7)),
            Err(DeviceError::Foreign { id: 7, .. })
        ));
    }
}
