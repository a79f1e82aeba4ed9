//! Replies for asynchronous programs.
//!
//! A thread computes the reply, and the task that reads it sleeps meanwhile. Nothing here knows a runtime: the thread wakes
//! whatever polls. It computes a piece only while somebody waits for one, as [`Reply`] does, so that the conversation keeps
//! what was read and at most one piece more.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use akunu_engine::{CancelFlag, Watch};
use futures_core::Stream;

use crate::chat::Chat;
use crate::error::Error;
use crate::reply::Reply;

/// The reply of [`Chat::ask_stream`]: a [`Stream`] of pieces of text, which any task or thread can own.
///
/// Dropping it ends the reply within a few tenths of a second, also while the question is read; [`ChatBack`] then returns the
/// conversation. After an error the stream ends, and the conversation is as it was before the question.
///
/// ```no_run
/// use tokio_stream::StreamExt;
///
/// # async fn example() -> Result<(), akunu::Error> {
/// let chat = akunu::Model::open("model.gguf")?.chat()?;
/// let (mut reply, back) = chat.ask_stream("What is the capital of France?");
/// let task = tokio::spawn(async move {
///     while let Some(piece) = reply.next().await {
///         print!("{}", piece?);
///     }
///     Ok::<(), akunu::Error>(())
/// });
/// let chat = back.await;
/// println!("{:?}", chat.last());
/// # drop(task);
/// # Ok(())
/// # }
/// ```
#[must_use = "a reply that nobody reads is cancelled"]
pub struct ReplyStream(Arc<Exchange>);

/// A [`Future`] of the conversation that a [`ReplyStream`] has taken: it is ready when the reply has ended or was dropped.
///
/// It waits as long as the stream is kept and not read to its end.
///
/// ```no_run
/// # async fn example(chat: akunu::Chat) -> Result<(), akunu::Error> {
/// let (reply, back) = chat.ask_stream("Count from one to a thousand.");
/// drop(reply);
/// let mut chat = back.await;
/// chat.say(akunu::Message::new("user", "Never mind."));
/// # Ok(())
/// # }
/// ```
#[must_use = "the conversation comes back through it"]
pub struct ChatBack(Arc<Exchange>);

/// State shared by the thread, the stream and the future.
struct Exchange {
    state: Mutex<State>,
    /// A reader waits, or has left.
    asked: Condvar,
    cancel: CancelFlag,
}

#[derive(Default)]
struct State {
    /// Whether a reader waits for a piece.
    is_wanted: bool,
    /// Whether the stream was dropped.
    has_left: bool,
    /// Whether no further piece will come.
    has_ended: bool,
    piece: Option<Result<String, Error>>,
    panic: Option<Box<dyn Any + Send>>,
    chat: Option<Chat>,
    reader: Option<Waker>,
    owner: Option<Waker>,
}

impl Chat {
    /// Like [`Chat::ask`] for asynchronous programs: a stream of pieces, and a future of the conversation. The question is read
    /// at once; an error is the first item of the stream.
    pub fn ask_stream(self, question: impl Into<String>) -> (ReplyStream, ChatBack) {
        let question = question.into();
        self.reply_stream(|chat, watch| chat.ask_watched(question, watch))
    }

    /// Any reply as a stream: `begin` starts it, on another thread, and passes `watch` on if it can.
    ///
    /// ```no_run
    /// # fn example(chat: akunu::Chat) {
    /// let (another, back) = chat.reply_stream(|chat, watch| chat.regenerate_watched(watch));
    /// # }
    /// ```
    pub fn reply_stream<F>(self, begin: F) -> (ReplyStream, ChatBack)
    where
        F: for<'c> FnOnce(&'c mut Chat, &mut Watch<'_>) -> Result<Reply<'c>, Error>,
        F: Send + 'static,
    {
        let exchange = Arc::new(Exchange {
            state: Mutex::default(),
            asked: Condvar::new(),
            cancel: CancelFlag::default(),
        });
        let ends = (
            ReplyStream(Arc::clone(&exchange)),
            ChatBack(Arc::clone(&exchange)),
        );
        let mut worker = Worker {
            chat: Some(self),
            exchange: Arc::clone(&exchange),
        };
        let spawned = std::thread::Builder::new()
            .name("akunu reply".into())
            .spawn(move || worker.run(begin));
        if let Err(error) = spawned {
            exchange.state().piece = Some(Err(Error::NoThread(error)));
        }
        ends
    }
}

impl Exchange {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the reader.
    fn tell(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        let reader = state.reader.take();
        drop(state);
        reader.into_iter().for_each(Waker::wake);
    }

    /// Waits until somebody wants a piece; false if nobody ever will.
    fn is_wanted(&self) -> bool {
        let is_idle = |state: &mut State| !state.is_wanted && !state.has_left;
        let waited = self.asked.wait_while(self.state(), is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_wanted = false;
        !state.has_left
    }
}

/// The thread's side. When it is dropped, however that comes, the conversation goes back.
struct Worker {
    chat: Option<Chat>,
    exchange: Arc<Exchange>,
}

impl Worker {
    fn run<F>(&mut self, begin: F)
    where
        F: for<'c> FnOnce(&'c mut Chat, &mut Watch<'_>) -> Result<Reply<'c>, Error>,
    {
        let Some(chat) = &mut self.chat else {
            return;
        };
        let exchange = &self.exchange;
        // Two flags can end the reply: the caller's own, which may be that of many conversations, and that of this stream.
        let own = std::mem::replace(&mut chat.options_mut().cancel, exchange.cancel.clone());
        let made = catch_unwind(AssertUnwindSafe(|| reply(exchange, chat, begin, &own)));
        chat.options_mut().cancel = own;
        match made {
            Ok(Ok(())) => {}
            Ok(Err(error)) => exchange.tell(|state| state.piece = Some(Err(error))),
            Err(panic) => exchange.tell(|state| state.panic = Some(panic)),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let chat = self.chat.take();
        let mut owner = None;
        self.exchange.tell(|state| {
            state.has_ended = true;
            state.chat = chat;
            owner = state.owner.take();
        });
        owner.into_iter().for_each(Waker::wake);
    }
}

fn reply<F>(exchange: &Exchange, chat: &mut Chat, begin: F, own: &CancelFlag) -> Result<(), Error>
where
    F: for<'c> FnOnce(&'c mut Chat, &mut Watch<'_>) -> Result<Reply<'c>, Error>,
{
    let mut reply = begin(chat, &mut |_| match own.is_set() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })?;
    while exchange.is_wanted() {
        if own.is_set() {
            exchange.cancel.cancel();
        }
        match reply.next() {
            Some(piece) => exchange.tell(|state| state.piece = Some(piece)),
            None => break,
        }
    }
    Ok(())
}

impl Stream for ReplyStream {
    type Item = Result<String, Error>;

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<String, Error>>> {
        let mut state = self.0.state();
        if let Some(piece) = state.piece.take() {
            return Poll::Ready(Some(piece));
        }
        if let Some(panic) = state.panic.take() {
            drop(state);
            resume_unwind(panic);
        }
        if state.has_ended {
            return Poll::Ready(None);
        }
        state.reader = Some(context.waker().clone());
        state.is_wanted = true;
        self.0.asked.notify_one();
        Poll::Pending
    }
}

impl Drop for ReplyStream {
    fn drop(&mut self) {
        self.0.cancel.cancel();
        self.0.state().has_left = true;
        self.0.asked.notify_one();
    }
}

impl Future for ChatBack {
    type Output = Chat;

    /// # Panics
    ///
    /// If it is polled after it was ready, as any future may.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Chat> {
        let mut state = self.0.state();
        if let Some(chat) = state.chat.take() {
            return Poll::Ready(chat);
        }
        assert!(!state.has_ended, "the conversation came back before");
        state.owner = Some(context.waker().clone());
        Poll::Pending
    }
}
