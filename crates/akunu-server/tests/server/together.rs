//! Many clients at once.

use super::client::post;
use super::{endless, question, serve};
use akunu::Lookup;

const QUESTIONS: [&str; 8] = [
    "What is the capital of France?",
    "Name three colours.",
    "What is 2 + 2?",
    "Write a short poem about the sea.",
    "Who wrote Hamlet?",
    "Tell me a joke.",
    "What do cows drink?",
    "Explain rain in one sentence.",
];

/// Breaks when sequences of one batch disturb each other.
#[test]
fn eight_clients_get_the_answers_that_each_gets_alone() {
    let server = serve(|_| {});
    let address = server.address;
    let ask = move |text: &str| {
        let body = post(address, "/v1/chat/completions", &question(text, 16)).json();
        body["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .to_string()
    };
    let alone: Vec<String> = QUESTIONS.iter().map(|text| ask(text)).collect();
    let asking = QUESTIONS.map(|text| std::thread::spawn(move || ask(text)));
    let together: Vec<String> = asking.map(|one| one.join().unwrap()).into();
    assert_eq!(together, alone);
    server.wait_for("akunu_requests_running", |n| n == 0.0);
}

/// Breaks when a server that may not guess does, when one that may does not, or when answers depend on it.
#[test]
fn guesses_are_made_where_they_are_allowed_and_change_no_answer() {
    let text =
        "Repeat: one two three four. One two three four. One two three four. One two three four.";
    let answer = |lookup: Lookup| {
        let server = serve(|options| options.lookup = lookup);
        let body = post(server.address, "/v1/chat/completions", &question(text, 24)).json();
        server.wait_for("akunu_requests_running", |n| n == 0.0);
        let guessed = server.metric("akunu_guessed_tokens_total");
        assert!(server.metric("akunu_right_guesses_total") <= guessed);
        (body["choices"][0]["message"]["content"].clone(), guessed)
    };
    let (plain, none) = answer(Lookup::Off);
    let (guessed, some) = answer(Lookup::On);
    assert_eq!(none, 0.0);
    assert!(some > 0.0);
    assert_eq!(plain, guessed);
}

/// Breaks when a queue grows without end, or when somebody who was refused is not told to come again.
#[test]
fn a_full_queue_answers_429() {
    let server = serve(|options| {
        options.sequences = 1;
        options.queue = 1;
    });
    let mut first = post(server.address, "/v1/chat/completions", &endless("One"));
    let second = post(server.address, "/v1/chat/completions", &endless("Two"));
    let refused = post(
        server.address,
        "/v1/chat/completions",
        &question("Three", 2),
    );
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (429, Some("1"))
    );
    let error = refused.json();
    assert_eq!(error["error"]["code"], "rate_limit_exceeded", "{error}");
    first.event().unwrap();
    drop((first, second));
    server.wait_for("akunu_requests_given_up_total", |n| n == 2.0);
    let again = post(
        server.address,
        "/v1/chat/completions",
        &question("Three", 2),
    );
    assert_eq!(again.status, 200);
}
