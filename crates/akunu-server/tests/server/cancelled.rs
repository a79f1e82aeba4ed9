//! Clients that go away, and servers that end.

use super::client::{connect, post, response};
use super::{endless, question, serve};
use std::io::Write;

/// Breaks when a sequence whose client has gone goes on, or keeps its pages: while it answers, while it reads its
/// prompt, and while it waits.
#[test]
fn whoever_goes_away_stops_its_own_work() {
    let server = serve(|options| options.sequences = 1);
    let mut first = post(
        server.address,
        "/v1/chat/completions",
        &endless("Tell me a story."),
    );
    for _ in 0..4 {
        first.event().unwrap();
    }
    // A body that is answered as a whole, by somebody who waits behind the first.
    let waiting = {
        let body = question("And who waits?", 4).to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = connect(server.address);
        stream.write_all((head + &body).as_bytes()).unwrap();
        stream
    };
    server.wait_for("akunu_requests_waiting", |n| n == 1.0);
    drop(waiting);
    server.wait_for("akunu_requests_waiting", |n| n == 0.0);
    assert_eq!(
        server.metric("akunu_requests_running"),
        1.0,
        "the first goes on"
    );
    first.event().unwrap();
    drop(first);
    server.wait_for("akunu_requests_running", |n| n == 0.0);
    assert_eq!(server.metric("akunu_requests_given_up_total"), 2.0);

    let long = "Why is the sea blue? ".repeat(70);
    let reading = post(server.address, "/v1/chat/completions", &endless(&long));
    server.wait_for("akunu_requests_running", |n| n == 1.0);
    drop(reading);
    server.wait_for("akunu_requests_running", |n| n == 0.0);
    assert_eq!(server.metric("akunu_requests_given_up_total"), 3.0);
    server.wait_for("akunu_pages_in_use", |n| n == 0.0);
    let after = post(
        server.address,
        "/v1/chat/completions",
        &question("Hello", 2),
    );
    assert_eq!(after.status, 200, "and others are answered");
}

/// Breaks when an answer is cut off, or when somebody new is let in, after the server was told to end.
#[test]
fn a_server_that_ends_answers_what_was_asked() {
    let mut server = serve(|_| {});
    let mut asked = endless("Tell me a story.");
    asked["max_tokens"] = 60.into();
    let mut stream = post(server.address, "/v1/chat/completions", &asked);
    stream.event().unwrap();
    let idle = connect(server.address);
    server.handle.shut_down();
    let (chunks, is_done) = stream.events();
    assert!(is_done && chunks.len() >= 60, "{} chunks", chunks.len());
    server.join();
    assert_eq!(response(idle).status, 0, "the idle connection is closed");
    assert!(std::net::TcpStream::connect(server.address).is_err());
}

/// Breaks when the second request to end waits for a long answer.
#[test]
fn the_second_time_it_ends_at_once() {
    let mut server = serve(|_| {});
    let mut stream = post(
        server.address,
        "/v1/chat/completions",
        &endless("Tell me a story."),
    );
    stream.event().unwrap();
    server.handle.shut_down();
    server.handle.shut_down();
    server.join();
    let (chunks, is_done) = stream.events();
    assert!(!is_done && chunks.len() < 400);
}
