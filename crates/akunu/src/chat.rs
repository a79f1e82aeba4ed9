//! Conversations.

mod saved;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use akunu_engine::{
    Adapters, CancelFlag, DRY_BREAKERS, Fed, GenerateOptions, Generation, Grammar, ImageSpan,
    LOOP_WINDOW, LogitRules, Overflow, Prompt, Sampling, SamplingOptions, Session, SessionOptions,
    Speculated, Speculation, Watch,
};
use akunu_tokenizer::Message;

use crate::channels::Channels;
use crate::error::Error;
use crate::history::{Before, History, Open};
use crate::reply::{Reply, ReplyStats};
use crate::sampling::chat_sampling;
use crate::turns;

/// Options of a conversation. [`Model::chat_options`](crate::Model::chat_options) returns those that suit a model.
///
/// ```no_run
/// # let model = akunu::Model::open("model.gguf")?;
/// let options = akunu::ChatOptions {
///     system: Some("Answer in one sentence.".into()),
///     max_tokens: Some(100),
///     grammar: Some(akunu::Grammar::json_schema(&model, r#"{"type": "string"}"#)?),
///     ..model.chat_options()
/// };
/// let chat = model.chat_with(options)?;
/// # Ok::<(), akunu::Error>(())
/// ```
///
/// Later versions may have further fields: end a value with `..ChatOptions::default()`.
#[derive(Clone, Debug)]
pub struct ChatOptions {
    /// The system prompt. A [new conversation](Chat::begin) sets it too.
    pub system: Option<String>,
    /// Length of the context in tokens; `None` for what the model was trained for, at most 4096.
    pub context: Option<u32>,
    /// Texts that end a reply; they are not part of it.
    pub stop: Vec<String>,
    /// Maximum number of tokens of a reply; `None`: what is left of the context.
    pub max_tokens: Option<usize>,
    /// How tokens are chosen. [`SamplingOptions::over`] changes some values and leaves the others as they suit the
    /// model.
    pub sampling: Sampling,
    /// [`GenerateOptions::logit_bias`]
    pub logit_bias: Vec<(u32, f32)>,
    /// [`GenerateOptions::dry_breakers`]
    pub dry_breakers: Vec<String>,
    /// [`GenerateOptions::logprobs`], which [`Reply::tokens`] then has.
    pub logprobs: Option<u32>,
    /// Whether the oldest turns are forgotten when the context is full. Otherwise the reply ends there.
    pub slides: bool,
    /// [`GenerateOptions::loop_window`]: a reply that only repeats itself ends.
    pub loop_window: Option<u32>,
    /// Adapters that [`Model::load_adapter`](akunu_engine::Model::load_adapter) has loaded, with their scales. Other ones
    /// apply from the next reply on; the conversation is then read again.
    pub adapters: Adapters,
    /// The form that replies must have.
    pub grammar: Option<Grammar>,
    /// Your own rules on the logits.
    pub rules: LogitRules,
    /// How tokens are guessed and checked several at once. Replies are the same with and without.
    pub speculation: Speculation,
    /// Stops a reply from another thread. It stays set until [`CancelFlag::reset`].
    pub cancel: CancelFlag,
    /// Makes room for further options.
    #[doc(hidden)]
    pub _more: (),
}

impl Default for ChatOptions {
    fn default() -> ChatOptions {
        ChatOptions {
            system: None,
            context: None,
            stop: Vec::new(),
            max_tokens: None,
            sampling: chat_sampling(&SamplingOptions::default()),
            logit_bias: Vec::new(),
            dry_breakers: DRY_BREAKERS.map(String::from).to_vec(),
            logprobs: None,
            slides: true,
            loop_window: Some(LOOP_WINDOW),
            adapters: Adapters::none(),
            grammar: None,
            rules: LogitRules::default(),
            speculation: Speculation::default(),
            cancel: CancelFlag::default(),
            _more: (),
        }
    }
}

/// A conversation with a model: its messages, and the session that holds them as tokens.
///
/// ```no_run
/// let mut chat = akunu::Model::open("model.gguf")?.chat()?;
/// for piece in chat.ask("What is the capital of France?")? {
///     print!("{}", piece?);
/// }
/// println!("{}", chat.messages().len()); // 2: the question and the answer
/// chat.save("talk.json")?;
/// # Ok::<(), akunu::Error>(())
/// ```
///
/// Only what is new since the last reply goes through the model. A question that fails is not kept: after an error
/// the conversation is as it was before the question.
pub struct Chat {
    session: Session,
    history: History,
    options: ChatOptions,
    /// The system prompt of the messages; a different one in the options has been set since.
    system: Option<String>,
}

impl Chat {
    pub(crate) fn new(session: Session, options: ChatOptions) -> Chat {
        let system = options.system.clone();
        let mut chat = Chat {
            session,
            history: History::default(),
            options,
            system: None,
        };
        chat.begin(system);
        chat
    }

    /// Asks a question, and returns the reply as an iterator of pieces of text.
    pub fn ask(&mut self, question: impl Into<String>) -> Result<Reply<'_>, Error> {
        self.ask_watched(question, &mut |_| ControlFlow::Continue(()))
    }

    /// Asks a question about images, which [`Vision::look`](crate::Vision::look) has seen. They stay in the conversation: later
    /// questions may be about them too. A conversation that was saved cannot go on with its images in another process.
    #[cfg(feature = "images")]
    pub fn ask_with(
        &mut self,
        question: impl Into<String>,
        images: &[crate::Image],
    ) -> Result<Reply<'_>, Error> {
        self.ask_with_watched(question, images, &mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Chat::ask_with`], with `watch` as in [`Chat::ask_watched`].
    #[cfg(feature = "images")]
    pub fn ask_with_watched(
        &mut self,
        question: impl Into<String>,
        images: &[crate::Image],
        watch: &mut Watch<'_>,
    ) -> Result<Reply<'_>, Error> {
        self.apply_options()?;
        let before = self.history.before();
        self.history.show(images);
        self.say(crate::images::message(question.into(), images));
        self.reply(before, watch)
    }

    /// Like [`Chat::ask`]; `watch` is called with the progress of reading the question, and may end it with
    /// [`EngineError::Cancelled`](crate::EngineError::Cancelled).
    pub fn ask_watched(
        &mut self,
        question: impl Into<String>,
        watch: &mut Watch<'_>,
    ) -> Result<Reply<'_>, Error> {
        self.apply_options()?;
        let before = self.history.before();
        self.say(Message::new("user", question));
        self.reply(before, watch)
    }

    /// Adds a message of any role that the model's template takes, without a reply: what a tool found, or what was said
    /// elsewhere.
    pub fn say(&mut self, message: Message) {
        self.history.messages.push(message);
        self.history.open = None;
    }

    /// Replies to the messages so far. [`Chat::ask`] adds a message of the user and calls this.
    pub fn answer(&mut self) -> Result<Reply<'_>, Error> {
        self.apply_options()?;
        let before = self.history.before();
        self.reply(before, &mut |_| ControlFlow::Continue(()))
    }

    /// Removes the last answer and answers again, with the next seed. If that fails, the answer stays.
    pub fn regenerate(&mut self) -> Result<Reply<'_>, Error> {
        self.regenerate_watched(&mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Chat::regenerate`], with `watch` as in [`Chat::ask_watched`].
    pub fn regenerate_watched(&mut self, watch: &mut Watch<'_>) -> Result<Reply<'_>, Error> {
        self.apply_options()?;
        let before = self.history.take_answer().ok_or(Error::NothingAsked)?;
        let sampling = &mut self.options.sampling;
        sampling.seed = sampling.seed.wrapping_add(1);
        self.reply(before, watch)
    }

    /// Goes on with the last reply where it ended: at its maximum of tokens, at the end of the context, or because it was
    /// stopped. The new reply is what is added. With [`ChatOptions::slides`] a full context makes room: its oldest turns go,
    /// and if there is only one, the older half of its reply.
    pub fn resume(&mut self) -> Result<Reply<'_>, Error> {
        self.resume_watched(&mut |_| ControlFlow::Continue(()))
    }

    /// Like [`Chat::resume`], with `watch` as in [`Chat::ask_watched`].
    pub fn resume_watched(&mut self, watch: &mut Watch<'_>) -> Result<Reply<'_>, Error> {
        let (before, open) = self.history.reopen().ok_or(Error::NothingToResume)?;
        let resumed = self
            .options
            .resume(&mut self.session, &mut self.history, open, watch);
        match resumed {
            Ok(started) => Ok(Reply::new(started, &mut self.history, before)),
            Err(error) => {
                self.history.restore(before);
                Err(error)
            }
        }
    }

    /// Removes the last question and everything after it; returns the question.
    pub fn undo(&mut self) -> Option<Message> {
        self.history.take_question()
    }

    /// Starts a new conversation with this system prompt.
    pub fn begin(&mut self, system: Option<String>) {
        let told = system.map(|text| Message::new("system", text));
        self.go_on_with(told.into_iter().collect());
    }

    /// Forgets the conversation, except for the system prompt.
    pub fn reset(&mut self) {
        let mut messages = std::mem::take(&mut self.history.messages);
        messages.retain(|message| message.role == "system");
        self.go_on_with(messages);
    }

    /// Replaces the conversation by these messages.
    pub fn go_on_with(&mut self, messages: Vec<Message>) {
        self.session.clear();
        self.system = messages.first().and_then(system_prompt);
        self.options.system = self.system.clone();
        self.history = History {
            messages,
            ..History::default()
        };
    }

    /// Makes the conversation what [`Chat::options_mut`] may have made of its options.
    fn apply_options(&mut self) -> Result<(), Error> {
        if let Some(context) = self.options.context
            && context != self.session.context()
        {
            self.session = self.session.model().session(SessionOptions {
                context: Some(context),
                ..SessionOptions::default()
            })?;
            self.history.open = None;
        }
        if self.options.system != self.system {
            self.system = self.options.system.clone();
            self.history.set_system(self.system.as_deref());
        }
        Ok(())
    }

    /// All messages, including the system prompt.
    pub fn messages(&self) -> &[Message] {
        &self.history.messages
    }

    /// How many of the messages no longer fit the context, so that the model does not see them.
    pub fn n_forgotten(&self) -> usize {
        self.history.window.n_forgotten()
    }

    /// The options of the next reply.
    pub fn options(&self) -> &ChatOptions {
        &self.options
    }

    /// The same, to be changed: everything applies from the next reply on. Another `system` or `context` does not apply to
    /// [`Chat::resume`], and the conversation is then read again.
    pub fn options_mut(&mut self) -> &mut ChatOptions {
        &mut self.options
    }

    /// The session that holds the conversation as tokens.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Tokens and times of the last reply.
    pub fn last(&self) -> Option<&ReplyStats> {
        self.history.last.as_ref()
    }

    fn reply(&mut self, before: Before, watch: &mut Watch<'_>) -> Result<Reply<'_>, Error> {
        let started = self
            .options
            .start(&mut self.session, &mut self.history, watch);
        match started {
            Ok(started) => Ok(Reply::new(started, &mut self.history, before)),
            Err(error) => {
                self.history.restore(before);
                Err(error)
            }
        }
    }
}

/// The text of a message that is the system prompt.
fn system_prompt(message: &Message) -> Option<String> {
    let is_system = message.role == "system";
    let text = is_system.then(|| message.content.as_str()).flatten();
    text.map(str::to_string)
}

/// A reply that has begun.
pub(crate) struct Started<'s> {
    pub generation: Generation<&'s mut Session>,
    /// What it goes on with: nothing, or the text of a reply that was cut.
    pub text: String,
    /// Tokens of the session before those of the reply.
    pub n_prompt: usize,
    /// The images among those.
    pub images: Vec<ImageSpan>,
    pub channels: Channels,
    pub stats: ReplyStats,
}

/// Tokens for a reply that are kept free at least, if its length has no other limit.
const ROOM: usize = 1024;

impl ChatOptions {
    /// Reads what the model sees of a conversation, and begins to reply.
    fn start<'s>(
        &self,
        session: &'s mut Session,
        history: &mut History,
        watch: &mut Watch<'_>,
    ) -> Result<Started<'s>, Error> {
        session.set_adapters(&self.adapters)?;
        let Prompt { tokens, images } = self.prompt(session, history)?;
        let open = Open {
            text: String::new(),
            n_prompt: tokens.len(),
            images,
            channels: Channels::default(),
        };
        let overflow = self.overflow(session, tokens.len());
        self.reply(session, (tokens, open), overflow, watch)
    }

    /// A reply with a length of its own may be longer than what its prompt leaves: then its own beginning gives way.
    fn overflow(&self, session: &Session, n_prompt: usize) -> Overflow {
        let half = session.context() as usize / 2;
        match self.max_tokens {
            Some(_) if self.slides && n_prompt <= half => Overflow::Shift { keep: n_prompt },
            _ => Overflow::Stop,
        }
    }

    /// Goes on with a reply.
    fn resume<'s>(
        &self,
        session: &'s mut Session,
        history: &mut History,
        open: Open,
        watch: &mut Watch<'_>,
    ) -> Result<Started<'s>, Error> {
        let context = session.context() as usize;
        let ids = session.tokens().to_vec();
        if ids.len() < context || !self.slides {
            let overflow = self.overflow(session, open.n_prompt);
            return self.reply(session, (ids, open), overflow, watch);
        }
        if open.n_prompt <= context / 2 {
            let keep = open.n_prompt;
            return self.reply(session, (ids, open), Overflow::Shift { keep }, watch);
        }
        // The turns before the reply fill the context: the oldest of them go, then the beginning of the reply.
        let mut answer = &ids[open.n_prompt..];
        let room = (context / 2).saturating_sub(answer.len());
        let Prompt { mut tokens, images } = self.fit(session, history, room)?;
        let left = context.saturating_sub(tokens.len());
        if answer.len() >= left {
            answer = &answer[answer.len() - left / 2..];
        }
        let open = Open {
            n_prompt: tokens.len(),
            images,
            ..open
        };
        tokens.extend(answer);
        self.reply(session, (tokens, open), Overflow::Stop, watch)
    }

    /// Reads `tokens`, which end with what there is of the reply, and generates what follows.
    fn reply<'s>(
        &self,
        session: &'s mut Session,
        (tokens, open): (Vec<u32>, Open),
        overflow: Overflow,
        watch: &mut Watch<'_>,
    ) -> Result<Started<'s>, Error> {
        let begin = Instant::now();
        let context = session.context() as usize;
        // A full context is read already, and is shifted by the generation.
        let is_full = session.tokens() == tokens && tokens.len() >= context;
        let images = open.images.clone();
        let prompt = match is_full {
            true => Fed::reused(tokens.len()),
            false => session.feed_prompt_until(Prompt { tokens, images }, &self.cancel, watch)?,
        };
        let stats = ReplyStats {
            prompt,
            tokens: 0,
            seed: self.sampling.seed,
            reading: begin.elapsed(),
            first: Duration::ZERO,
            rest: Duration::ZERO,
            speculated: Speculated::default(),
            stop: None,
        };
        // What is left of the context, or what a shift leaves of it.
        let room = match overflow {
            Overflow::Shift { .. } => context.saturating_sub(open.n_prompt) / 2,
            _ => usize::MAX,
        };
        let options = GenerateOptions {
            max_tokens: self.max_tokens.unwrap_or(room),
            sampling: self.sampling,
            logit_bias: self.logit_bias.clone(),
            dry_breakers: self.dry_breakers.clone(),
            logprobs: self.logprobs,
            stop: [turns::stops(session.model()), self.stop.clone()].concat(),
            loop_window: self.loop_window,
            n_prompt: Some(open.n_prompt),
            overflow,
            grammar: self.grammar.clone(),
            rules: self.rules.clone(),
            speculation: self.speculation.clone(),
            cancel: self.cancel.clone(),
            ..GenerateOptions::default()
        };
        Ok(Started {
            text: open.text,
            n_prompt: open.n_prompt,
            images: open.images,
            channels: open.channels,
            generation: session.generate(options)?,
            stats,
        })
    }

    /// A conversation as tokens, without what has to be forgotten.
    fn prompt(&self, session: &Session, history: &mut History) -> Result<Prompt, Error> {
        if !self.slides {
            return history.prompt(session.model(), &history.messages);
        }
        let context = session.context() as usize;
        let reply = self.max_tokens.unwrap_or(ROOM).min(context / 2);
        self.fit(session, history, context - reply)
    }

    /// The latest turns of a conversation, in at most `room` tokens.
    fn fit(&self, session: &Session, history: &mut History, room: usize) -> Result<Prompt, Error> {
        let mut window = history.window;
        let encode = |messages: &[Message]| history.prompt(session.model(), messages);
        let prompt = window.fit(&history.messages, room, encode)?;
        history.window = window;
        Ok(prompt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server keeps conversations where it likes.
    #[test]
    fn a_chat_can_be_kept_and_moved() {
        fn can_be<T: Send + 'static>() {}
        can_be::<Chat>();
        can_be::<crate::Model>();
    }
}
