//! Pipelines kept from one run to the next.
//!
//! The archive is a file in the user's cache folder. Its name holds the hash of the kernels, and one of
//! the GPU and the system's build, so that what another version left is never read. It is only a
//! cache: whatever is wrong with it, pipelines are made without it. New pipelines are added, and the
//! file is written, in a thread of its own, without blocking anything.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::{
    NSArray, NSProcessInfo, NSSearchPathDirectory, NSSearchPathDomainMask,
    NSSearchPathForDirectoriesInDomains, NSURL,
};
use objc2_metal::{
    MTLBinaryArchive, MTLBinaryArchiveDescriptor, MTLComputePipelineDescriptor,
    MTLComputePipelineState, MTLDevice, MTLPipelineOption,
};

use super::said::said;
use super::system::Gpu;
use crate::flatten::sources_hash;
use crate::sources;

/// An archive and the file it belongs to.
#[derive(Clone)]
pub(super) struct Archive {
    path: Arc<PathBuf>,
    state: Arc<Mutex<State>>,
}

struct State {
    raw: Retained<ProtocolObject<dyn MTLBinaryArchive>>,
    /// Pipelines that are not in it yet.
    new: Vec<Retained<MTLComputePipelineDescriptor>>,
}

// SAFETY: archives and descriptors belong to no thread. They are only used under the mutex, one call at
// a time; a descriptor that is handed in here is not used elsewhere any more.
unsafe impl Send for State {}

impl Archive {
    /// The archive of these kernels on this system. A file that cannot be read is replaced.
    pub(super) fn open(gpu: &Gpu) -> Option<Archive> {
        let path = path(gpu)?;
        let kept = path.is_file().then(|| load(gpu, Some(&path)));
        let raw = match kept {
            Some(Ok(raw)) => Ok(raw),
            None => load(gpu, None),
            Some(Err(error)) => {
                tracing::warn!(path = %path.display(), error, "the pipeline cache is made anew");
                // It is replaced when it is saved; until then it must not be read again.
                let _ = std::fs::remove_file(&path);
                load(gpu, None)
            }
        };
        let raw = raw
            .inspect_err(|error| tracing::warn!(error, "pipelines are not kept"))
            .ok()?;
        let state = State {
            raw,
            new: Vec::new(),
        };
        Some(Archive {
            path: Arc::new(path),
            state: Arc::new(Mutex::new(state)),
        })
    }

    /// A pipeline that was kept.
    pub(super) fn find(
        &self,
        gpu: &Gpu,
        descriptor: &MTLComputePipelineDescriptor,
    ) -> Option<Retained<ProtocolObject<dyn MTLComputePipelineState>>> {
        let state = self.lock();
        descriptor.setBinaryArchives(Some(&NSArray::from_slice(&[&*state.raw])));
        let kept = gpu.newComputePipelineStateWithDescriptor_options_reflection_error(
            descriptor,
            MTLPipelineOption::FailOnBinaryArchiveMiss,
            None,
        );
        // What is not here is compiled outside of the mutex, without the archive.
        descriptor.setBinaryArchives(None);
        kept.ok()
    }

    /// Takes note of a pipeline that is to be kept.
    pub(super) fn learn(&self, descriptor: Retained<MTLComputePipelineDescriptor>) {
        self.lock().new.push(descriptor);
    }

    /// Adds what is new and writes the file, if there is something new.
    pub(super) fn save(&self) {
        if self.lock().new.is_empty() {
            return;
        }
        let archive = self.clone();
        let spawned = std::thread::Builder::new()
            .name("pipeline archive".into())
            .spawn(move || autoreleasepool(|_| archive.add_and_write()));
        if let Err(error) = spawned {
            tracing::debug!(%error, "pipelines are not kept");
        }
    }

    fn add_and_write(&self) {
        // The mutex is free between two pipelines, so that others can look one up.
        loop {
            let mut state = self.lock();
            let Some(descriptor) = state.new.pop() else {
                break;
            };
            let added = state
                .raw
                .addComputePipelineFunctionsWithDescriptor_error(&descriptor);
            if let Err(error) = added {
                tracing::debug!(error = said(error), "a pipeline is not kept");
            }
        }
        if let Err(error) = self.write() {
            tracing::warn!(path = %self.path.display(), error, "pipelines are not kept");
        }
    }

    /// Writes the file, whole or not at all. Other threads and processes may be doing the same.
    fn write(&self) -> Result<(), String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let ending = format!("{}-{count}.part", std::process::id());
        let part = self.path.with_extension(ending);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        }
        let url = NSURL::from_file_path(&part).ok_or("its path is no URL")?;
        let written = self.lock().raw.serializeToURL_error(&url).map_err(said);
        let moved = written
            .and_then(|()| std::fs::rename(&part, &*self.path).map_err(|error| error.to_string()));
        moved.inspect_err(|_| {
            let _ = std::fs::remove_file(&part);
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The archive in a file, or an empty one.
fn load(
    gpu: &Gpu,
    path: Option<&Path>,
) -> Result<Retained<ProtocolObject<dyn MTLBinaryArchive>>, String> {
    let descriptor = MTLBinaryArchiveDescriptor::new();
    if let Some(path) = path {
        let url = NSURL::from_file_path(path).ok_or("its path is no URL")?;
        descriptor.setUrl(Some(&url));
    }
    gpu.newBinaryArchiveWithDescriptor_error(&descriptor)
        .map_err(said)
}

fn path(gpu: &Gpu) -> Option<PathBuf> {
    let folders = NSSearchPathForDirectoriesInDomains(
        NSSearchPathDirectory::CachesDirectory,
        NSSearchPathDomainMask::UserDomainMask,
        true,
    );
    let folder = PathBuf::from(folders.firstObject()?.to_string());
    let system = NSProcessInfo::processInfo().operatingSystemVersionString();
    let host = sources_hash([(&*gpu.name().to_string(), &*system.to_string())]);
    let name = format!("pipelines-{:016x}-{host:016x}.metalar", sources::HASH);
    Some(folder.join("akunu").join(name))
}
