//! Many conversations at once as tasks, some of which lose their patience:
//! `cargo run --release --example stream model.gguf [CONVERSATIONS]`
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::time::Duration;

use akunu::{Chat, ChatOptions, Model};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_stream::StreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name a model file")?;
    let n_chats: u64 = arguments.next().as_deref().unwrap_or("100").parse()?;
    let model = Model::open(path)?;
    let mut tasks = JoinSet::new();
    for number in 0..n_chats {
        let chat = model.chat_with(ChatOptions {
            context: Some(256),
            max_tokens: Some(24),
            ..model.chat_options()
        })?;
        // From none to more than a reply has.
        let patience = number * 7919 % 48;
        tasks.spawn(converse(chat, patience));
    }
    let (mut n_read, mut n_left) = (0, 0);
    while let Some(ended) = tasks.join_next().await {
        match ended?? {
            true => n_read += 1,
            false => n_left += 1,
        }
    }
    println!("{n_read} replies were read to their end, and {n_left} were left before");
    Ok(())
}

/// Asks, waits for so many pieces, and leaves while the next one is computed; then asks again, which must work. Returns
/// whether the first reply came to its end.
async fn converse(chat: Chat, patience: u64) -> Result<bool, akunu::Error> {
    let (mut reply, back) = chat.ask_stream("Count from one to a hundred.");
    let mut n_pieces = 0;
    let is_read = loop {
        let wait = match n_pieces < patience {
            true => Duration::MAX,
            false => Duration::from_millis(1),
        };
        match timeout(wait, reply.next()).await {
            Ok(Some(piece)) => n_pieces += piece.map(|_| 1)?,
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    drop(reply);
    let mut chat = back.await;
    chat.options_mut().max_tokens = Some(4);
    let (mut reply, back) = chat.ask_stream("What is the capital of France?");
    while let Some(piece) = reply.next().await {
        piece?;
    }
    assert!(back.await.messages().len() >= 2, "it was answered");
    Ok(is_read)
}
