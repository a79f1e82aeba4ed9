//! The thread that writes files, and what it tells.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::evict::{evict, total};
use super::options::CacheOptions;
use crate::replace_file::replace_file;

/// Bytes that may wait to be written.
const QUEUE: u64 = 256 << 20;

/// What the cache and its thread both know.
pub(super) struct Shared {
    options: CacheOptions,
    /// Whether writing has failed; nothing more is written then.
    is_off: AtomicBool,
    fault: Mutex<Option<String>>,
    waiting: Mutex<u64>,
    written: Condvar,
    /// Bytes of all files, as far as this program knows.
    total: AtomicU64,
}

impl Shared {
    pub fn new(options: &CacheOptions) -> Shared {
        Shared {
            options: options.clone(),
            is_off: AtomicBool::new(false),
            fault: Mutex::new(None),
            waiting: Mutex::new(0),
            written: Condvar::new(),
            total: AtomicU64::new(total(&options.folder)),
        }
    }

    /// The folder with those of all models.
    pub fn folder(&self) -> &Path {
        &self.options.folder
    }

    /// Keeps a sentence, unless there is one already that nobody has read.
    pub fn tell(&self, sentence: String) {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert(sentence);
    }

    pub fn take(&self) -> Option<String> {
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.take()
    }

    /// Writes nothing more.
    pub fn fail(&self, error: &std::io::Error) {
        self.is_off.store(true, Ordering::Relaxed);
        let folder = self.options.folder.display();
        self.tell(format!(
            "the cache folder {folder} cannot be written: {error}; nothing more is kept there"
        ));
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, u64> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a file, and makes room for others.
    fn write(&self, path: &Path, bytes: &[u8]) {
        if self.is_off.load(Ordering::Relaxed) {
            return;
        }
        let len = bytes.len() as u64;
        let most = self.options.max_bytes;
        if self.total.load(Ordering::Relaxed) + len > most {
            // Other programs write here, too: it is counted anew. A tenth is free then, so that not every file counts them.
            let left = evict(&self.options.folder, (most - most / 10).saturating_sub(len));
            self.total.store(left, Ordering::Relaxed);
        }
        if len > most {
            return;
        }
        match replace_file(path, bytes) {
            Ok(()) => {
                self.total.fetch_add(len, Ordering::Relaxed);
            }
            Err(error) => self.fail(&error),
        }
    }
}

/// The thread.
pub(super) struct Writer {
    shared: Arc<Shared>,
    sender: Option<Sender<(PathBuf, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(shared: Arc<Shared>) -> Writer {
        let (sender, files) = channel();
        let of_thread = Arc::clone(&shared);
        let run = move || write_all(&of_thread, &files);
        let named = std::thread::Builder::new().name("cache".to_string());
        let thread = named
            .spawn(run)
            .inspect_err(|error| shared.fail(error))
            .ok();
        Writer {
            shared,
            sender: Some(sender),
            thread,
        }
    }

    /// Whether something more may wait.
    pub fn has_room(&self) -> bool {
        *self.shared.waiting() < QUEUE
    }

    /// Whether writing has failed.
    pub fn is_off(&self) -> bool {
        self.shared.is_off.load(Ordering::Relaxed)
    }

    pub fn send(&self, path: PathBuf, bytes: Vec<u8>) {
        let len = bytes.len() as u64;
        *self.shared.waiting() += len;
        let sent = self
            .sender
            .as_ref()
            .map(|sender| sender.send((path, bytes)));
        if !matches!(sent, Some(Ok(()))) {
            *self.shared.waiting() -= len;
        }
    }

    /// Waits until everything is written.
    pub fn finish(&self) {
        let mut waiting = self.shared.waiting();
        while *waiting > 0 {
            let woken = self.shared.written.wait(waiting);
            waiting = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn write_all(shared: &Shared, files: &Receiver<(PathBuf, Vec<u8>)>) {
    for (path, bytes) in files {
        shared.write(&path, &bytes);
        *shared.waiting() -= bytes.len() as u64;
        shared.written.notify_all();
    }
}

impl Drop for Writer {
    /// What waits is written before the thread ends.
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // It has told what went wrong.
            let _ = thread.join();
        }
    }
}
