//! One thread for a loaded model, and the way to it.

mod work;
mod worker;

use std::sync::Arc;
use std::thread;

use akunu::{Lookup, Model, SessionOptions};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::{ApiError, ServerError};
use crate::options::ServerOptions;
use crate::stats::{Stats, Task};

use self::work::{Asked, Message, Waiting};
pub(crate) use self::work::{Event, What, Work};
use self::worker::Worker;

/// A loaded model. When the last handle is dropped, its thread ends and the model is unloaded.
pub(crate) struct Engine {
    pub model: Model,
    /// Tokens of a sequence.
    pub context: u32,
    /// How tokens are guessed.
    pub lookup: Lookup,
    /// Whether prompts and answers are logged.
    pub log_texts: bool,
    pub stats: Arc<Stats>,
    inbox: UnboundedSender<Message>,
    /// One for each sequence that may be in the batch or wait.
    places: Arc<Semaphore>,
    n_places: usize,
}

impl Engine {
    /// Starts the thread of a model.
    pub fn start(
        model: Model,
        options: &ServerOptions,
        stats: Arc<Stats>,
    ) -> Result<Engine, ServerError> {
        let session = SessionOptions {
            context: options.context,
            ..SessionOptions::default()
        };
        // Whether the context is possible is told now, and not to the first client.
        let context = model.session(session)?.context();
        let batch = model.batch(options.sequences)?;
        let (inbox, messages) = unbounded_channel();
        let max_tokens = f64::from(options.sequences) * f64::from(context);
        let worker = Worker::new(
            batch,
            model.clone(),
            session,
            Arc::clone(&stats),
            max_tokens,
        );
        let named = thread::Builder::new().name("akunu-engine".into());
        named.spawn(move || worker.run(messages))?;
        let n_places = options.sequences as usize + options.queue;
        Ok(Engine {
            model,
            context,
            lookup: options.lookup,
            log_texts: options.log_texts,
            stats,
            inbox,
            places: Arc::new(Semaphore::new(n_places)),
            n_places,
        })
    }

    /// What tokens say, control tokens included.
    pub fn text_of(&self, ids: &[u32]) -> String {
        let tokenizer = self.model.tokenizer();
        let bytes = ids.iter().filter_map(|id| tokenizer.token_bytes(*id));
        let bytes: Vec<u8> = bytes.flatten().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Refuses ids that no token has.
    pub fn check_ids(
        &self,
        field: &str,
        ids: impl IntoIterator<Item = u32>,
    ) -> Result<(), ApiError> {
        let vocab_size = self.model.config().vocab_size;
        match ids.into_iter().find(|id| *id >= vocab_size) {
            Some(id) => {
                let message =
                    format!("{field}: token {id} is beyond the vocabulary of {vocab_size}");
                Err(ApiError::bad_field(field, message))
            }
            None => Ok(()),
        }
    }

    /// Whether its thread still takes requests.
    pub fn is_alive(&self) -> bool {
        !self.inbox.is_closed()
    }

    /// Whether it has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.places.available_permits() == self.n_places
    }

    /// Asks for answers. They are given up when the receiver is dropped.
    pub fn ask(&self, work: Work) -> Result<UnboundedReceiver<Event>, ApiError> {
        if work.prompt.len() >= self.context as usize {
            return Err(ApiError::too_long(work.prompt.len(), self.context));
        }
        let n_choices = work.choices.len();
        if n_choices > self.n_places {
            let places = self.n_places;
            let message = format!(
                "n is {n_choices}; this server takes at most {places} answers of a model at once"
            );
            return Err(ApiError::bad_field("n", message));
        }
        let places: Result<Vec<OwnedSemaphorePermit>, _> = (0..n_choices)
            .map(|_| Arc::clone(&self.places).try_acquire_owned())
            .collect();
        let places = places.map_err(|_| ApiError::busy(self.n_places))?;
        let (events, receiver) = unbounded_channel();
        let prompt: Arc<[u32]> = work.prompt.into();
        let choices = work.choices.into_iter().zip(places).enumerate();
        let waiting = choices.map(|(choice, (options, place))| Waiting {
            prompt: Arc::clone(&prompt),
            choice,
            options,
            events: events.clone(),
            place,
            task: Task::new(&self.stats),
        });
        let mut waiting: Vec<Waiting> = waiting.collect();
        let siblings = waiting.split_off(1.min(n_choices));
        let Some(first) = waiting.pop() else {
            return Err(ApiError::bad_field("n", "n must be 1 or more"));
        };
        self.send(Message::Answer(Box::new(Asked { first, siblings })))?;
        Ok(receiver)
    }

    /// The hidden state after some tokens.
    pub async fn embed(&self, ids: Vec<u32>) -> Result<Vec<f32>, ApiError> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let _place = place.map_err(|_| ApiError::busy(self.n_places))?;
        let (reply, answer) = oneshot::channel();
        self.send(Message::Embed { ids, reply })?;
        answer.await.map_err(|_| stopped())?
    }

    fn send(&self, message: Message) -> Result<(), ApiError> {
        self.inbox.send(message).map_err(|_| stopped())
    }
}

/// The thread has ended before its time, which only a fault of ours brings about.
pub(crate) fn stopped() -> ApiError {
    ApiError::internal(&"the thread of the model has ended")
}
