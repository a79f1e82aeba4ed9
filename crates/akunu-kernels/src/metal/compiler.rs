//! A key to a pipeline.

use std::ptr::NonNull;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{
    MTLComputePipelineDescriptor, MTLComputePipelineState, MTLDataType, MTLDevice, MTLFunction,
    MTLFunctionConstantValues, MTLLibrary, MTLPipelineOption,
};

use super::archive::{Archive, Descriptor};
use super::library::Libraries;
use super::reflection;
use super::said::said;
use super::system::Gpu;
use crate::constant::{ConstantValue, Constants};
use crate::gpu::{Compiled, Compiler, Keeper};
use crate::pipeline::PipelineKey;

type RawPipeline = Retained<ProtocolObject<dyn MTLComputePipelineState>>;

/// A compiled kernel.
pub struct MetalPipeline(pub(super) RawPipeline);

/// Makes pipelines, on any number of threads.
pub struct MetalCompiler {
    gpu: Gpu,
    libraries: Libraries,
    archive: Option<(Archive, Keeper<Descriptor>)>,
}

impl MetalCompiler {
    pub(super) fn new(gpu: Gpu) -> MetalCompiler {
        MetalCompiler {
            libraries: Libraries::new(gpu.clone()),
            archive: Archive::open(&gpu).map(|archive| (archive.clone(), Keeper::new(archive))),
            gpu,
        }
    }

    fn descriptor(
        &self,
        key: &PipelineKey,
    ) -> Result<Retained<MTLComputePipelineDescriptor>, String> {
        let row = key.kernel.row();
        let name = NSString::from_str(&row.name());
        let library = self.libraries.of(&row.source_path())?;
        let general = library
            .newFunctionWithName(&name)
            .ok_or_else(|| format!("{} has no such function", row.source_path()))?;
        // Metal wants a function that looks at constants to be specialised, even with none set.
        let function = if general.functionConstantsDictionary().is_empty() {
            general
        } else {
            library
                .newFunctionWithName_constantValues_error(&name, &values(&key.constants))
                .map_err(said)?
        };
        let descriptor = MTLComputePipelineDescriptor::new();
        descriptor.setComputeFunction(Some(&function));
        descriptor.setLabel(Some(&name));
        Ok(descriptor)
    }

    fn make(&self, key: &PipelineKey) -> Result<Compiled<MetalPipeline>, String> {
        let descriptor = self.descriptor(key)?;
        let kept = self.archive.as_ref().map(|(archive, _)| {
            let only_from_it = MTLPipelineOption::FailOnBinaryArchiveMiss;
            archive.with(&descriptor, || self.state(&descriptor, key, only_from_it))
        });
        let pipeline = match kept {
            Some(Ok(pipeline)) => pipeline,
            Some(Err(_)) | None => {
                let pipeline = self.state(&descriptor, key, MTLPipelineOption::None)?;
                if let Some((_, keeper)) = &self.archive {
                    keeper.keep(Descriptor(descriptor));
                }
                pipeline
            }
        };
        let in_use = pipeline.staticThreadgroupMemoryLength();
        let room = self.gpu.maxThreadgroupMemoryLength().saturating_sub(in_use);
        Ok(Compiled {
            max_threads: pipeline.maxTotalThreadsPerThreadgroup() as u32,
            threadgroup_room: u32::try_from(room).unwrap_or(u32::MAX),
            pipeline: MetalPipeline(pipeline),
        })
    }
}

impl MetalCompiler {
    /// The pipeline of a descriptor; in debug builds its bindings come with it, and are compared with the kernel table.
    fn state(
        &self,
        descriptor: &MTLComputePipelineDescriptor,
        key: &PipelineKey,
        options: MTLPipelineOption,
    ) -> Result<RawPipeline, String> {
        let make = |options, reflection| {
            self.gpu
                .newComputePipelineStateWithDescriptor_options_reflection_error(
                    descriptor, options, reflection,
                )
                .map_err(said)
        };
        if !cfg!(debug_assertions) {
            return make(options, None);
        }
        let mut seen = None;
        let with_bindings = MTLPipelineOption::BindingInfo | MTLPipelineOption::BufferTypeInfo;
        let pipeline = make(options | with_bindings, Some(&mut seen))?;
        match seen {
            Some(reflection) => reflection::check(&reflection, key).map(|()| pipeline),
            None => Ok(pipeline),
        }
    }
}

impl Compiler for MetalCompiler {
    type Pipeline = MetalPipeline;

    fn compile(&self, key: &PipelineKey) -> Result<Compiled<MetalPipeline>, String> {
        autoreleasepool(|_| self.make(key))
    }
}

/// The constants with the types that the sources declare.
fn values(constants: &Constants) -> Retained<MTLFunctionConstantValues> {
    let values = MTLFunctionConstantValues::new();
    for (constant, value) in constants.iter() {
        let index = constant.spec().index.into();
        let (pointer, kind) = match &value {
            ConstantValue::Bool(value) => (NonNull::from(value).cast(), MTLDataType::Bool),
            ConstantValue::U32(value) => (NonNull::from(value).cast(), MTLDataType::UInt),
            ConstantValue::F32(value) => (NonNull::from(value).cast(), MTLDataType::Float),
        };
        // SAFETY: the pointer leads to a value of this type, which is copied before the call returns;
        // indices of the registry are small.
        unsafe { values.setConstantValue_type_atIndex(pointer, kind, index) };
    }
    values
}
