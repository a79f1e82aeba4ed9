//! The thread that steps a model's batch.
//!
//! ```text
//! forever:  take what came in          (wait for it, if there is nothing to do)
//!           give up what nobody waits for any more
//!           seat who waits              where the batch has room
//!           step, and hand out what came of it
//! ```
//!
//! Those who wait do so here and not in the batch: a sequence that is seated late finds the pages that others have read
//! meanwhile. Further choices of a request wait until the first one has read the prompt, for the same reason.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use akunu::{Batch, BatchEvent, Progress, SequenceId, TokenLogprobs};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::sessions::Sessions;
use super::work::{Asked, Event, Message, Waiting, What};
use crate::error::ApiError;
use crate::stats::{Stats, Task};

/// How long files of the cache are waited for before more are given to their writer.
const WRITING: Duration = Duration::from_millis(20);

/// An answer that has a place in the batch.
struct Running {
    choice: usize,
    events: UnboundedSender<Event>,
    /// Choices of the same request that wait for the prompt to be read.
    siblings: Vec<Waiting>,
    task: Task,
    last_token: Option<Instant>,
    /// Dropped with the answer, which gives it back.
    _place: OwnedSemaphorePermit,
}

pub(super) struct Worker {
    batch: Batch,
    sessions: Sessions,
    running: HashMap<SequenceId, Running>,
    /// In the order in which they came, but for further choices, which go before new requests.
    queue: VecDeque<Asked>,
    stats: Arc<Stats>,
    /// Tokens that all sequences can hold together.
    max_tokens: f64,
}

impl Worker {
    pub fn new(batch: Batch, sessions: Sessions, stats: Arc<Stats>, max_tokens: f64) -> Worker {
        Worker {
            batch,
            sessions,
            running: HashMap::new(),
            queue: VecDeque::new(),
            stats,
            max_tokens,
        }
    }

    /// Runs until nothing is left that could send a request.
    pub fn run(mut self, mut inbox: UnboundedReceiver<Message>) {
        loop {
            if self.running.is_empty() && self.queue.is_empty() {
                self.save_cache(&inbox);
                match inbox.blocking_recv() {
                    Some(message) => self.take(message),
                    None => return self.finish_cache(),
                }
            }
            while let Ok(message) = inbox.try_recv() {
                self.take(message);
            }
            self.give_up();
            self.seat();
            for event in self.batch.step() {
                self.hand_out(event);
            }
            self.count();
        }
    }

    /// Gives new pages and states to the cache's writer, until the next request.
    fn save_cache(&self, inbox: &UnboundedReceiver<Message>) {
        while inbox.is_empty() && !inbox.is_closed() {
            match self.sessions.model.save_cache() {
                // The writer has enough to do.
                Ok(true) => std::thread::sleep(WRITING),
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(%error, "the cache could not be written");
                    break;
                }
            }
        }
        self.tell_cache_fault();
    }

    /// Waits until all of them are written: no request can follow.
    fn finish_cache(&self) {
        if let Err(error) = self.sessions.model.finish_cache() {
            tracing::warn!(%error, "the cache could not be written");
        }
        self.tell_cache_fault();
    }

    fn tell_cache_fault(&self) {
        if let Some(fault) = self.sessions.model.take_cache_fault() {
            tracing::warn!("{fault}");
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Answer(asked) => self.queue.push_back(*asked),
            Message::Embed { ids, reply } => {
                // Whoever has gone does not want it any more.
                if !reply.is_closed() {
                    let _ = reply.send(self.embed(&ids));
                }
            }
            Message::Score { ids, n_best, reply } => {
                // As above.
                if !reply.is_closed() {
                    let _ = reply.send(self.score(&ids, n_best));
                }
            }
        }
    }

    fn score(&self, ids: &[u32], n_best: usize) -> Result<Vec<TokenLogprobs>, ApiError> {
        let mut session = self.sessions.open()?;
        Ok(session.score_best(ids, 1, n_best)?)
    }

    fn embed(&self, ids: &[u32]) -> Result<Vec<f32>, ApiError> {
        let mut session = self.sessions.open()?;
        Ok(session.embed(ids)?)
    }

    /// Takes those out whose clients have gone.
    fn give_up(&mut self) {
        self.queue.retain(|asked| !asked.first.events.is_closed());
        let gone = self
            .running
            .iter()
            .filter(|(_, one)| one.events.is_closed());
        let gone: Vec<SequenceId> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            self.leave(id);
            self.running.remove(&id);
        }
    }

    fn seat(&mut self) {
        while self.batch.has_room()
            && let Some(Asked {
                mut first,
                siblings,
            }) = self.queue.pop_front()
        {
            match self.join(&first) {
                Ok(id) => self.begin(id, first, siblings),
                Err(error) => {
                    first.task.fail();
                    first.tell(What::Failed(error));
                }
            }
        }
    }

    /// Gives an answer its place in the batch.
    fn join(&mut self, first: &Waiting) -> Result<SequenceId, ApiError> {
        let session = self.sessions.open()?;
        let options = first.options.clone();
        let joined = self.batch.join_prompt(session, &first.prompt, options);
        joined.map_err(|refused| (*refused.error).into())
    }

    fn begin(&mut self, id: SequenceId, mut first: Waiting, siblings: Vec<Waiting>) {
        let n_cached = self.batch.session(id).map_or(0, |it| it.tokens().len());
        self.stats.began(first.prompt.len(), n_cached);
        first.task.run();
        first.tell(What::Began { n_cached });
        let running = Running {
            choice: first.choice,
            events: first.events,
            siblings,
            task: first.task,
            last_token: None,
            _place: first.place,
        };
        self.running.insert(id, running);
    }

    fn hand_out(&mut self, event: BatchEvent) {
        let sequence = event.sequence;
        let has_ended = matches!(event.progress, Progress::Ended { .. } | Progress::Failed(_));
        if has_ended && self.running.contains_key(&sequence) {
            // Counted before the end is sent: a client that then reads the counters finds these guesses.
            self.leave(sequence);
        }
        let Some(running) = self.running.get_mut(&sequence) else {
            return;
        };
        let what = match event.progress {
            Progress::Token(token) => {
                running.count_token(&self.stats);
                What::Token {
                    id: token.id,
                    text: token.text,
                    logprobs: token.logprobs,
                }
            }
            Progress::Ended { reason, tail } => {
                running.task.end();
                What::Ended { reason, tail }
            }
            Progress::Failed(error) => {
                running.task.fail();
                What::Failed(error.into())
            }
            // A piece of the prompt was read: nothing to tell.
            _ => return,
        };
        // The prompt has been read by now, or never will be.
        for sibling in running.siblings.drain(..).rev() {
            self.queue.push_front(Asked {
                first: sibling,
                siblings: Vec::new(),
            });
        }
        // Whoever has gone is found before the next step.
        let _ = running.events.send(Event {
            choice: running.choice,
            what,
        });
        if has_ended {
            self.running.remove(&sequence);
        }
    }

    fn leave(&mut self, sequence: SequenceId) {
        if let Some(speculated) = self.batch.speculated(sequence) {
            self.stats.guessed(&speculated);
        }
        self.batch.leave(sequence);
    }

    fn count(&self) {
        let ids = self.running.keys();
        let held = ids.filter_map(|id| Some(self.batch.session(*id)?.tokens().len()));
        let share = held.sum::<usize>() as f64 / self.max_tokens.max(1.0);
        self.stats
            .stepped(self.sessions.model.pages_in_use(), share);
    }
}

impl Waiting {
    fn tell(&self, what: What) {
        // Whoever has gone is found before the next step.
        let _ = self.events.send(Event {
            choice: self.choice,
            what,
        });
    }
}

impl Running {
    fn count_token(&mut self, stats: &Stats) {
        let now = Instant::now();
        match self.last_token.replace(now) {
            None => stats.first_token(self.task.age()),
            Some(before) => stats.next_token(now - before),
        }
    }
}
