//! Pipelines kept from one run to the next: when they are written.
//!
//! A file of pipelines grows with each and is written as a whole, so that writing it after each of hundreds would take longer than
//! compiling them. A thread collects new pipelines and writes once none has come for a while, and a last time when the device goes.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// New pipelines are written when as long none has come: those of a model come in a fraction of it.
const QUIET: Duration = Duration::from_secs(2);

/// Where pipelines are kept.
pub trait PipelineStore: Send + 'static {
    /// What is kept of a pipeline.
    type Kept: Send + 'static;

    /// Adds a pipeline.
    fn add(&mut self, kept: Self::Kept);
    /// Writes all of them.
    fn write(&mut self);
}

/// Hands new pipelines to a store. Dropping it waits until all of them are written.
pub struct Keeper<K> {
    sender: Option<Sender<K>>,
    thread: Option<JoinHandle<()>>,
}

impl<K: Send + 'static> Keeper<K> {
    /// A keeper for this store.
    pub fn new(store: impl PipelineStore<Kept = K>) -> Keeper<K> {
        Keeper::after(QUIET, store)
    }

    fn after(quiet: Duration, store: impl PipelineStore<Kept = K>) -> Keeper<K> {
        let (sender, receiver) = channel();
        let spawned = std::thread::Builder::new()
            .name("pipeline archive".into())
            .spawn(move || keep(store, &receiver, quiet));
        let thread = spawned
            .inspect_err(|error| tracing::debug!(%error, "pipelines are not kept"))
            .ok();
        Keeper {
            sender: Some(sender),
            thread,
        }
    }

    /// Keeps a new pipeline, some time from now.
    pub fn keep(&self, kept: K) {
        if let Some(sender) = &self.sender {
            // Without its thread nothing is kept, which only costs time at the next start.
            let _ = sender.send(kept);
        }
    }
}

impl<K> Drop for Keeper<K> {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn keep<S: PipelineStore>(mut store: S, receiver: &Receiver<S::Kept>, quiet: Duration) {
    while let Ok(first) = receiver.recv() {
        let mut new = vec![first];
        let ended = loop {
            match receiver.recv_timeout(quiet) {
                Ok(kept) => new.push(kept),
                Err(why) => break why,
            }
        };
        new.into_iter().for_each(|kept| store.add(kept));
        store.write();
        if ended == RecvTimeoutError::Disconnected {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    /// Writes down what it is asked for.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Log {
        fn calls(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    impl PipelineStore for Log {
        type Kept = u32;

        fn add(&mut self, kept: u32) {
            self.0.lock().unwrap().push(format!("add {kept}"));
        }

        fn write(&mut self) {
            self.0.lock().unwrap().push("write".into());
        }
    }

    const NEVER: Duration = Duration::from_secs(3600);

    /// Breaks when the file is written for each pipeline, or what came last is lost at the end.
    #[test]
    fn pipelines_are_written_once_at_the_end() {
        let log = Log::default();
        let keeper = Keeper::after(NEVER, log.clone());
        (0..3).for_each(|n| keeper.keep(n));
        drop(keeper);
        assert_eq!(log.calls(), ["add 0", "add 1", "add 2", "write"]);
    }

    /// Breaks when a server that runs for months writes nothing until it ends.
    #[test]
    fn pipelines_are_written_when_no_more_come() {
        let log = Log::default();
        let keeper = Keeper::after(Duration::from_millis(1), log.clone());
        keeper.keep(7);
        while log.calls() != ["add 7", "write"] {
            std::thread::yield_now();
        }
        keeper.keep(8);
        drop(keeper);
        assert_eq!(log.calls(), ["add 7", "write", "add 8", "write"]);
    }

    #[test]
    fn nothing_is_written_where_nothing_is_new() {
        let log = Log::default();
        drop(Keeper::after(NEVER, log.clone()));
        assert!(log.calls().is_empty());
    }
}
