//! How far a device is with the weights of a model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a device is with the weights of a model that is being loaded. Clones share the figures: one goes to
/// [`Model::load_watched`](crate::Model::load_watched), another stays with whoever shows them, in another thread.
///
/// A GPU with memory of its own copies the weights while the model is loaded. A device that reads them where they lie
/// takes none at that time.
///
/// ```no_run
/// use akunu_engine::{Loading, Model, ModelOptions};
/// # fn example(device: Box<dyn akunu_engine::Device>) -> Result<(), akunu_engine::EngineError> {
/// let loading = Loading::default();
/// std::thread::scope(|scope| {
///     let opened = scope.spawn(|| Model::load_watched("model.gguf", device, ModelOptions::default(), &loading));
///     while !opened.is_finished() {
///         println!("{} of {} bytes", loading.taken(), loading.total());
///         std::thread::sleep(std::time::Duration::from_millis(100));
///     }
/// });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loading(Arc<Bytes>);

#[derive(Debug, Default)]
struct Bytes {
    total: AtomicU64,
    taken: AtomicU64,
}

impl Loading {
    /// Bytes of the files with the weights; 0 until they are open.
    pub fn total(&self) -> u64 {
        self.0.total.load(Ordering::Relaxed)
    }

    /// Bytes that the device has a copy of.
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed).min(self.total())
    }

    pub(crate) fn expect(&self, bytes: usize) {
        self.0.total.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn take(&self, bytes: usize) {
        self.0.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
