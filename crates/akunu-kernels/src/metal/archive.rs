//! Pipelines kept from one run to the next.
//!
//! The archive is a file in the user's cache folder. Its name holds the hash of the kernels, and one of
//! the GPU, its driver's class and the system's build, so that what another version left is never read. It is only a
//! cache: a broken archive only means that pipelines are compiled again. [`crate::gpu::Keeper`] decides when it is written.
//!
//! Under a validation or capture layer nothing is kept: Apple's shader validation instruments pipelines as they are made, and does
//! not work with archives.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2_foundation::{
    NSArray, NSProcessInfo, NSSearchPathDirectory, NSSearchPathDomainMask,
    NSSearchPathForDirectoriesInDomains, NSURL,
};
use objc2_metal::{
    MTLBinaryArchive, MTLBinaryArchiveDescriptor, MTLComputePipelineDescriptor, MTLDevice,
};

use super::said::said;
use super::system::Gpu;
use crate::flatten::sources_hash;
use crate::gpu::{PipelineStore, is_driver_class};
use crate::sources;

/// An archive and the file it belongs to.
#[derive(Clone)]
pub(super) struct Archive {
    path: Arc<PathBuf>,
    raw: Arc<Mutex<Raw>>,
}

struct Raw(Retained<ProtocolObject<dyn MTLBinaryArchive>>);

/// A pipeline that is to be kept.
pub(super) struct Descriptor(pub(super) Retained<MTLComputePipelineDescriptor>);

// SAFETY: archives belong to no thread; this one is only used under its mutex, one call at a time.
unsafe impl Send for Raw {}
// SAFETY: descriptors belong to no thread, and one that is kept is not used elsewhere any more.
unsafe impl Send for Descriptor {}

impl Archive {
    /// The archive of these kernels on this system. A file that cannot be read is replaced.
    pub(super) fn open(gpu: &Gpu) -> Option<Archive> {
        let class = class_name(gpu);
        if !is_driver_class(&class) {
            tracing::debug!(class, "a layer around the GPU: pipelines are not kept");
            return None;
        }
        let path = path(gpu, &class)?;
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
        Some(Archive {
            path: Arc::new(path),
            raw: Arc::new(Mutex::new(Raw(raw))),
        })
    }

    /// Lets a descriptor find its pipeline here while `make` runs, one at a time.
    pub(super) fn with<T>(
        &self,
        descriptor: &MTLComputePipelineDescriptor,
        make: impl FnOnce() -> T,
    ) -> T {
        let raw = self.lock();
        descriptor.setBinaryArchives(Some(&NSArray::from_slice(&[&*raw.0])));
        let made = make();
        descriptor.setBinaryArchives(None);
        made
    }

    /// Writes the file, whole or not at all. Other processes may be doing the same.
    fn replace_file(&self) -> Result<(), String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let ending = format!("{}-{count}.part", std::process::id());
        let part = self.path.with_extension(ending);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        }
        let url = NSURL::from_file_path(&part).ok_or("its path is no URL")?;
        let written = self.lock().0.serializeToURL_error(&url).map_err(said);
        let moved = written
            .and_then(|()| std::fs::rename(&part, &*self.path).map_err(|error| error.to_string()));
        moved.inspect_err(|_| {
            let _ = std::fs::remove_file(&part);
        })
    }

    fn lock(&self) -> MutexGuard<'_, Raw> {
        self.raw.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PipelineStore for Archive {
    type Kept = Descriptor;

    fn add(&mut self, kept: Descriptor) {
        autoreleasepool(|_| {
            let added = self
                .lock()
                .0
                .addComputePipelineFunctionsWithDescriptor_error(&kept.0);
            if let Err(error) = added {
                tracing::debug!(error = said(error), "a pipeline is not kept");
            }
        });
    }

    fn write(&mut self) {
        let written = autoreleasepool(|_| self.replace_file());
        if let Err(error) = written {
            tracing::warn!(path = %self.path.display(), error, "pipelines are not kept");
        }
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

/// The class of the object that the system gave for the GPU.
fn class_name(gpu: &Gpu) -> String {
    let object: &AnyObject = (**gpu).as_ref();
    object.class().name().to_string_lossy().into_owned()
}

fn path(gpu: &Gpu, class: &str) -> Option<PathBuf> {
    let folders = NSSearchPathForDirectoriesInDomains(
        NSSearchPathDirectory::CachesDirectory,
        NSSearchPathDomainMask::UserDomainMask,
        true,
    );
    let folder = PathBuf::from(folders.firstObject()?.to_string());
    let system = NSProcessInfo::processInfo().operatingSystemVersionString();
    let host = sources_hash([
        (&*gpu.name().to_string(), &*system.to_string()),
        ("class", class),
    ]);
    let name = format!("pipelines-{:016x}-{host:016x}.metalar", sources::HASH);
    Some(folder.join("akunu").join(name))
}
