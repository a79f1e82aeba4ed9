//! Memory that stays wired between submissions: when changes to a set of buffers are committed, and what ends it.
//!
//! ```text
//! add, remove ─▶ changed ─▶ commit, request    before a submission, when a program is loaded, and at the next beat
//! beat        ─▶ request                       until some minutes after the last submission
//! end         ─▶ remove all, commit, end, work once nothing will be submitted any more
//! ```
//!
//! The system frees what has left a set only when the GPU works again, and never if this process gives it no work at all: without
//! the last submission a model that was loaded and dropped would stay in memory. Each commit makes the driver count its buffers
//! again, and machines have panicked while buffers came and went in a wired set: buffers that are freed one after the other are
//! one commit.

use std::time::{Duration, Instant};

/// How often a set is asked for again.
pub const BEAT: Duration = Duration::from_millis(500);
/// For how long after the last submission.
const KEPT: Duration = Duration::from_secs(180);

/// A set of buffers that the system keeps wired.
pub trait WiredSet {
    /// A buffer.
    type Buffer: ?Sized;

    /// Adds a buffer at the next commit.
    fn add(&mut self, buffer: &Self::Buffer);
    /// Removes a buffer at the next commit, and keeps it alive until then.
    fn remove(&mut self, buffer: &Self::Buffer);
    /// Removes all buffers at the next commit.
    fn clear(&mut self);
    /// Makes the changes count.
    fn commit(&mut self);
    /// Asks the system to wire what is in the set.
    fn request(&mut self);
    /// Ends what was asked for.
    fn end(&mut self);
    /// Gives the GPU something small to do, and waits for it.
    fn work(&mut self);
}

/// When the changes of a set are committed. Dropping it ends the set.
pub struct Residency<S: WiredSet> {
    set: S,
    /// Whether it changed since the last commit.
    is_changed: bool,
    /// Whether buffers wait for that commit to be freed.
    holds_removed: bool,
    /// When it was used last.
    used: Instant,
}

impl<S: WiredSet> Residency<S> {
    /// An empty set.
    pub fn new(set: S) -> Residency<S> {
        Residency {
            set,
            is_changed: false,
            holds_removed: false,
            used: Instant::now(),
        }
    }

    /// Adds a buffer.
    pub fn add(&mut self, buffer: &S::Buffer) {
        self.set.add(buffer);
        self.is_changed = true;
    }

    /// Removes a buffer, from the next commit on.
    pub fn remove(&mut self, buffer: &S::Buffer) {
        self.set.remove(buffer);
        (self.is_changed, self.holds_removed) = (true, true);
    }

    /// Removes a buffer whose memory goes at once, as a mapped file does.
    pub fn remove_now(&mut self, buffer: &S::Buffer) {
        self.remove(buffer);
        self.commit();
    }

    /// Frees the buffers that were removed: before the system is asked how much memory is left.
    pub fn free_removed(&mut self) {
        if self.holds_removed {
            self.commit();
        }
    }

    /// Before each submission, and when a program was loaded.
    pub fn use_now(&mut self) {
        self.used = Instant::now();
        self.commit();
    }

    /// Twice a second, while nothing may happen otherwise.
    pub fn beat(&mut self) {
        let is_in_use = self.used.elapsed() < KEPT;
        if self.is_changed {
            self.commit();
        } else if is_in_use {
            self.set.request();
        }
    }

    fn commit(&mut self) {
        if self.is_changed {
            self.set.commit();
            self.set.request();
            (self.is_changed, self.holds_removed) = (false, false);
        }
    }
}

impl<S: WiredSet> Drop for Residency<S> {
    fn drop(&mut self) {
        self.set.clear();
        self.set.commit();
        self.set.end();
        self.set.work();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Writes down its calls.
    #[derive(Clone, Default)]
    struct Log(Rc<RefCell<Vec<String>>>);

    impl Log {
        fn say(&self, call: impl Into<String>) {
            self.0.borrow_mut().push(call.into());
        }

        fn take(&self) -> Vec<String> {
            self.0.take()
        }
    }

    impl WiredSet for Log {
        type Buffer = str;

        fn add(&mut self, buffer: &str) {
            self.say(format!("add {buffer}"));
        }
        fn remove(&mut self, buffer: &str) {
            self.say(format!("remove {buffer}"));
        }
        fn clear(&mut self) {
            self.say("clear");
        }
        fn commit(&mut self) {
            self.say("commit");
        }
        fn request(&mut self) {
            self.say("request");
        }
        fn end(&mut self) {
            self.say("end");
        }
        fn work(&mut self) {
            self.say("work");
        }
    }

    /// Breaks when each of a model's buffers is a commit of its own, or a change never counts.
    #[test]
    fn changes_are_committed_together() {
        let log = Log::default();
        let mut residency = Residency::new(log.clone());
        residency.add("weights");
        residency.add("cache");
        residency.use_now();
        residency.use_now();
        assert_eq!(
            log.take(),
            ["add weights", "add cache", "commit", "request"]
        );
        residency.remove("cache");
        residency.remove("scratch");
        assert_eq!(log.take(), ["remove cache", "remove scratch"]);
        residency.beat();
        residency.beat();
        assert_eq!(log.take(), ["commit", "request", "request"]);
    }

    /// Breaks when memory that was given back counts as taken, or each question about memory is a commit.
    #[test]
    fn removed_buffers_are_freed_before_memory_is_counted() {
        let log = Log::default();
        let mut residency = Residency::new(log.clone());
        residency.add("weights");
        residency.free_removed();
        assert_eq!(log.take(), ["add weights"]);
        residency.remove("weights");
        residency.free_removed();
        residency.free_removed();
        assert_eq!(log.take(), ["remove weights", "commit", "request"]);
    }

    /// Breaks when a file is unmapped while the set still has its buffer.
    #[test]
    fn memory_that_goes_at_once_leaves_the_set_before() {
        let log = Log::default();
        let mut residency = Residency::new(log.clone());
        residency.remove_now("weights");
        assert_eq!(log.take(), ["remove weights", "commit", "request"]);
    }

    /// Breaks when the memory of a model that has not run yet stays wired after it was dropped.
    #[test]
    fn a_set_ends_empty_and_with_work_for_the_gpu() {
        let log = Log::default();
        let mut residency = Residency::new(log.clone());
        residency.add("weights");
        drop(residency);
        assert_eq!(
            log.take(),
            ["add weights", "clear", "commit", "end", "work"]
        );
    }
}
