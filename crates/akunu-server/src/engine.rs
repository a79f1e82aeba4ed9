//! One thread for a loaded model, and the way to it.

mod sessions;
mod work;
mod worker;

use std::sync::Arc;
use std::thread;

use akunu::{DraftModel, Model, Mtp, SamplingOptions, Speculation, TokenLogprobs};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::{ApiError, ServerError};
use crate::options::ServerOptions;
use crate::source::ModelSettings;
use crate::stats::{Stats, Task};

use self::sessions::Sessions;
use self::work::{Asked, Message, Waiting};
pub(crate) use self::work::{Event, What, Work};
use self::worker::Worker;

/// A loaded model. When the last handle is dropped, its thread ends and the model is unloaded.
pub(crate) struct Engine {
    pub model: Model,
    /// Tokens of a sequence.
    pub context: u32,
    /// How tokens are guessed.
    pub speculation: Speculation,
    /// How they are drawn where a request does not say it.
    pub sampling: SamplingOptions,
    /// The system prompt of conversations that have no system prompt.
    pub system: Option<String>,
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
        settings: &ModelSettings,
        stats: Arc<Stats>,
    ) -> Result<Engine, ServerError> {
        let sessions = Sessions::new(&model, options.context, settings)?;
        // Whether the context is possible is told now, and not to the first client.
        let context = sessions.open()?.context();
        let trained = model.config().context_length;
        if context > trained {
            tracing::warn!(
                context,
                trained,
                "the context is longer than what the model was trained for: do not expect good answers beyond that"
            );
        }
        let speculation = Speculation {
            lookup: options.lookup,
            draft: draft(&model, settings)?,
            draft_tokens: settings.draft_tokens,
            mtp: match model.config().mtp {
                Some(_) => options.mtp,
                None => Mtp::Off,
            },
            ..Speculation::default()
        };
        let batch = model.batch(options.sequences)?;
        let max_tokens = f64::from(options.sequences) * f64::from(context);
        let (inbox, messages) = unbounded_channel();
        let worker = Worker::new(batch, sessions, Arc::clone(&stats), max_tokens);
        let named = thread::Builder::new().name("akunu-engine".into());
        named.spawn(move || worker.run(messages))?;
        let n_places = options.sequences as usize + options.queue;
        Ok(Engine {
            context,
            speculation,
            sampling: settings.sampling.or(*model.suggested_sampling()),
            system: settings.system.clone(),
            log_texts: options.log_texts,
            model,
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
        for prompt in &work.prompts {
            if prompt.len() >= self.context as usize {
                return Err(ApiError::too_long(prompt.len(), self.context));
            }
        }
        let (n_prompts, n_choices) = (work.prompts.len(), work.choices.len());
        let n_answers = self.check_places(n_prompts, n_choices)?;
        let places: Result<Vec<OwnedSemaphorePermit>, _> = (0..n_answers)
            .map(|_| Arc::clone(&self.places).try_acquire_owned())
            .collect();
        let mut places = places
            .map_err(|_| ApiError::busy(self.n_places))?
            .into_iter();
        let (events, receiver) = unbounded_channel();
        for (at, prompt) in work.prompts.into_iter().enumerate() {
            let prompt: Arc<[u32]> = prompt.into();
            let choices = work.choices.iter().zip(places.by_ref().take(n_choices));
            let waiting = choices
                .enumerate()
                .map(|(choice, (options, place))| Waiting {
                    prompt: Arc::clone(&prompt),
                    choice: at * n_choices + choice,
                    options: options.clone(),
                    events: events.clone(),
                    place,
                    task: Task::new(&self.stats),
                });
            let mut waiting: Vec<Waiting> = waiting.collect();
            let siblings = waiting.split_off(1);
            if let Some(first) = waiting.pop() {
                self.send(Message::Answer(Box::new(Asked { first, siblings })))?;
            }
        }
        Ok(receiver)
    }

    /// The number of answers to so many prompts with so many choices each, if as many can be taken.
    fn check_places(&self, n_prompts: usize, n_choices: usize) -> Result<usize, ApiError> {
        let places = self.n_places;
        let n_answers = n_prompts.saturating_mul(n_choices);
        if n_answers == 0 {
            return Err(ApiError::bad_field("n", "n must be 1 or more"));
        }
        if n_answers > places {
            let field = if n_prompts > 1 { "prompt" } else { "n" };
            let message = format!(
                "{n_answers} answers are asked for; this server takes at most {places} of a model at once"
            );
            return Err(ApiError::bad_field(field, message));
        }
        Ok(n_answers)
    }

    /// How likely each token is after those before it, from the second on, with so many of the best.
    pub async fn score(
        &self,
        ids: Vec<u32>,
        n_best: usize,
    ) -> Result<Vec<TokenLogprobs>, ApiError> {
        if ids.len() > self.context as usize {
            return Err(ApiError::too_long(ids.len(), self.context));
        }
        let (reply, answer) = oneshot::channel();
        self.send(Message::Score { ids, n_best, reply })?;
        answer.await.map_err(|_| stopped())?
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

/// The model that guesses for this one.
fn draft(model: &Model, settings: &ModelSettings) -> Result<Option<DraftModel>, ServerError> {
    let Some(open) = &settings.draft else {
        return Ok(None);
    };
    let draft = open().map_err(ServerError::Open)?;
    let draft = DraftModel::new(model, &draft).map_err(akunu::Error::from)?;
    Ok(Some(draft))
}

/// The thread has ended before its time, which only a fault of ours brings about.
pub(crate) fn stopped() -> ApiError {
    ApiError::internal(&"the thread of the model has ended")
}
