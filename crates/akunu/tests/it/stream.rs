//! Replies as streams, on tokio.

use std::time::{Duration, Instant};

use akunu::{CancelFlag, Chat, ChatOptions, EngineError, Error, Sampling, StopReason};
use tokio::time::timeout;
use tokio_stream::StreamExt;

use crate::smollm2;

fn chat(max_tokens: usize) -> Chat {
    let options = ChatOptions {
        context: Some(512),
        max_tokens: Some(max_tokens),
        sampling: Sampling::greedy(),
        ..ChatOptions::default()
    };
    smollm2().chat_with(options).unwrap()
}

/// Nothing may take longer: a thread that is never woken would wait for ever.
const LONG: Duration = Duration::from_secs(60);

/// Breaks when a piece is lost between the thread and the task, or the conversation does not come back.
#[tokio::test]
async fn a_reply_is_a_stream_that_a_task_can_own() {
    let mut same = chat(16);
    let question = "What is the capital of France?";
    let wanted: Result<String, Error> = same.ask(question).unwrap().collect();
    let (reply, back) = chat(16).ask_stream(question);
    let read = tokio::spawn(reply.collect::<Result<String, Error>>());
    let said = timeout(LONG, read).await.unwrap().unwrap().unwrap();
    assert_eq!(said, wanted.unwrap());
    let chat = timeout(LONG, back).await.unwrap();
    assert_eq!(chat.messages(), same.messages());
    assert_eq!(chat.last().unwrap().stop, Some(StopReason::EndToken));

    let (reply, back) = chat.reply_stream(|chat, watch| chat.regenerate_watched(watch));
    let again: Result<String, Error> = timeout(LONG, reply.collect()).await.unwrap();
    assert_eq!(again.unwrap(), said, "nothing is drawn");
    assert_eq!(back.await.messages(), same.messages());
}

/// Breaks when a dropped stream goes on, or takes the conversation with it.
#[tokio::test]
async fn a_dropped_stream_ends_and_the_conversation_goes_on() {
    let (mut reply, back) = chat(400).ask_stream("Count from one to a hundred.");
    let piece = timeout(LONG, reply.next()).await.unwrap().unwrap().unwrap();
    drop(reply);
    let chat = timeout(LONG, back).await.unwrap();
    assert_eq!(chat.messages().len(), 2);
    let answer = chat.messages()[1].content.as_str().unwrap();
    assert_eq!(answer, piece.trim(), "what was read is the answer");
    assert!(!chat.options().cancel.is_set(), "the caller's own flag");

    // A task that is aborted drops its stream as well.
    let (mut reply, back) = chat.ask_stream("Go on.");
    let task = tokio::spawn(async move { while reply.next().await.is_some() {} });
    tokio::task::yield_now().await;
    task.abort();
    let chat = timeout(LONG, back).await.unwrap();
    let (reply, back) = chat.ask_stream("Hello");
    let said: Result<String, Error> = reply.take(2).collect().await;
    assert!(!said.unwrap().is_empty());
    assert!(timeout(LONG, back).await.unwrap().messages().len() >= 4);
}

/// Breaks when the reading of a question cannot be ended.
#[tokio::test]
async fn a_question_is_not_read_for_nobody() {
    let mut long = chat(16);
    long.options_mut().context = Some(4096);
    let question = "one two three four five six seven eight nine ten ".repeat(300);
    let (reply, back) = long.ask_stream(question);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begin = Instant::now();
    drop(reply);
    let chat = timeout(LONG, back).await.unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    assert!(
        chat.messages().is_empty(),
        "what was not answered was not asked"
    );
}

#[tokio::test]
async fn errors_and_the_callers_flag_come_through() {
    let long = "word ".repeat(2000);
    let mut small = chat(16);
    small.options_mut().slides = false;
    let (mut reply, back) = small.ask_stream(long);
    let error = timeout(LONG, reply.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap_err();
    let is_full = matches!(error, Error::Engine(EngineError::ContextFull { .. }));
    assert!(is_full, "{error}");
    assert!(reply.next().await.is_none());
    let mut chat = timeout(LONG, back).await.unwrap();

    let flag = CancelFlag::default();
    chat.options_mut().cancel = flag.clone();
    let (mut reply, back) = chat.ask_stream("Count from one to a hundred.");
    timeout(LONG, reply.next()).await.unwrap().unwrap().unwrap();
    flag.cancel();
    let rest: Result<String, Error> = timeout(LONG, reply.collect()).await.unwrap();
    rest.unwrap();
    let chat = timeout(LONG, back).await.unwrap();
    assert_eq!(chat.last().unwrap().stop, Some(StopReason::Cancelled));
    let (mut reply, back) = chat.ask_stream("This is not read.");
    let error = reply.next().await.unwrap().unwrap_err();
    assert!(
        matches!(error, Error::Engine(EngineError::Cancelled { .. })),
        "{error}"
    );
    drop(back.await);
}

/// A fault of the thread is one of the task, and not a wait for ever.
#[tokio::test]
async fn a_panic_reaches_the_reader() {
    let (mut reply, back) = chat(16).reply_stream(|_, _| panic!("planted"));
    let reader = tokio::spawn(async move { reply.next().await.is_some() });
    assert!(timeout(LONG, reader).await.unwrap().unwrap_err().is_panic());
    let chat = timeout(LONG, back).await.unwrap();
    assert!(!chat.options().cancel.is_set());
}
