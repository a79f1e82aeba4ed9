//! Pipelines kept from one run to the next.
//!
//! The archive is a file in the user's cache folder. Its name holds the hash of the kernels, and one of
//! the GPU and the system's build, so that what another version left is never read. It is only a
//! cache: whatever is wrong with it, pipelines are made without it.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_foundation::{
    NSArray, NSProcessInfo, NSSearchPathDirectory, NSSearchPathDomainMask,
    NSSearchPathForDirectoriesInDomains, NSURL,
};
use objc2_metal::{
    MTLBinaryArchive, MTLBinaryArchiveDescriptor, MTLComputePipelineDescriptor, MTLDevice,
};

use super::compiler::said;
use super::system::Gpu;
use crate::flatten::sources_hash;
use crate::sources;

/// An archive and the file it belongs to.
pub(super) struct Archive {
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    raw: Retained<ProtocolObject<dyn MTLBinaryArchive>>,
    /// Whether it holds pipelines that the file does not.
    is_changed: bool,
}

// SAFETY: an archive belongs to no thread; it is only used under the mutex, one call at a time, and by
// Metal itself while it makes a pipeline, which Metal guards.
unsafe impl Send for State {}

impl Archive {
    /// The archive of these kernels on this system. A file that cannot be read is made anew.
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
            is_changed: false,
        };
        Some(Archive {
            path,
            state: Mutex::new(state),
        })
    }

    /// Lets a pipeline be looked up here.
    pub(super) fn attach(&self, descriptor: &MTLComputePipelineDescriptor) {
        let archives = NSArray::from_slice(&[&*self.lock().raw]);
        descriptor.setBinaryArchives(Some(&archives));
    }

    /// Adds a pipeline.
    pub(super) fn learn(&self, descriptor: &MTLComputePipelineDescriptor) {
        let mut state = self.lock();
        match state
            .raw
            .addComputePipelineFunctionsWithDescriptor_error(descriptor)
        {
            Ok(()) => state.is_changed = true,
            Err(error) => tracing::debug!(error = said(error), "a pipeline is not kept"),
        }
    }

    /// Writes the file if there is something new, whole or not at all.
    pub(super) fn save(&self) {
        let mut state = self.lock();
        if !state.is_changed {
            return;
        }
        state.is_changed = false;
        // Another process may be saving the same archive.
        let part = self
            .path
            .with_extension(format!("{}.part", std::process::id()));
        let saved = write(&state.raw, &part)
            .and_then(|()| std::fs::rename(&part, &self.path).map_err(|error| error.to_string()));
        if let Err(error) = saved {
            tracing::warn!(path = %self.path.display(), error, "pipelines are not kept");
            let _ = std::fs::remove_file(&part);
        }
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

fn write(archive: &ProtocolObject<dyn MTLBinaryArchive>, path: &Path) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    let url = NSURL::from_file_path(path).ok_or("its path is no URL")?;
    archive.serializeToURL_error(&url).map_err(said)
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
