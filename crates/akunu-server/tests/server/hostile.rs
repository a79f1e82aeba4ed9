//! Requests that are wrong, and some that are meant to harm.

use super::client::{connect, get, post, raw, response, with};
use super::{endless, question, serve};
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// Breaks when a mistake is answered by something else than a 4xx that names the field.
#[test]
fn mistakes_are_answered_with_the_field() {
    let server = serve(|_| {});
    let changed = |field: &str, value: Value| {
        let mut asked = question("Hi", 2);
        asked[field] = value;
        asked
    };
    for (body, param) in [
        (changed("temperature", json!("hot")), "temperature"),
        (changed("temperature", json!(-3)), "temperature"),
        (changed("top_p", json!(7)), "top_p"),
        (changed("n", json!(0)), "n"),
        (changed("max_tokens", json!(0)), "max_tokens"),
        (changed("max_tokens", json!(-5)), "max_tokens"),
        (changed("stop", json!({"a": 1})), "stop"),
        (changed("messages", json!([])), "messages"),
        (changed("messages", json!("Hi")), "messages"),
        (
            changed("messages", json!([{"role": "user", "content": 7}])),
            "messages[0].content",
        ),
        (changed("stream", json!(1)), "stream"),
    ] {
        let response = post(server.address, "/v1/chat/completions", &body);
        let status = response.status;
        let error = response.json();
        assert_eq!(
            (status, &error["error"]["param"]),
            (400, &json!(param)),
            "{error}"
        );
    }
    let unknown = post(
        server.address,
        "/v1/chat/completions",
        &changed("model", json!("gpt")),
    );
    assert_eq!(unknown.status, 404);
    assert_eq!(unknown.json()["error"]["code"], "model_not_found");
    let ignored = post(
        server.address,
        "/v1/chat/completions",
        &changed("no_such_field", json!({"a": [1]})),
    );
    assert_eq!(ignored.status, 200, "unknown fields are ignored");
    assert_eq!(get(server.address, "/nowhere").status, 404);
    assert_eq!(get(server.address, "/v1/chat/completions").status, 405);
}

/// Breaks when a client is told to try again what can never be answered.
#[test]
fn more_answers_than_there_are_places_are_refused_for_good() {
    let server = serve(|options| {
        options.sequences = 2;
        options.queue = 1;
    });
    let ask = |n: usize| {
        let mut asked = question("Hi", 2);
        asked["n"] = n.into();
        post(server.address, "/v1/chat/completions", &asked)
    };
    let refused = ask(4);
    assert_eq!((refused.status, refused.header("retry-after")), (400, None));
    let error = refused.json();
    assert_eq!(error["error"]["param"], "n");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("at most 3"), "{message}");
    assert_eq!(ask(3).status, 200);
}

/// Breaks when a prompt is cut without a word, or when the two numbers are missing.
#[test]
fn a_prompt_over_the_context_is_refused_with_both_numbers() {
    let server = serve(|options| options.context = Some(64));
    let response = post(
        server.address,
        "/v1/chat/completions",
        &question(&"word ".repeat(200), 4),
    );
    assert_eq!(response.status, 400);
    let error = response.json();
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!(error["error"]["code"], "context_length_exceeded");
    let has = |n: &str| message.split([' ', ',']).any(|word| word == n);
    assert!(
        has("64") && message.contains("the prompt has 2"),
        "{message}"
    );
}

#[test]
fn bodies_that_are_no_requests() {
    let server = serve(|_| {});
    let send = |body: &[u8]| with(server.address, "POST", "/v1/chat/completions", &[], body).status;
    assert_eq!(send(br#"{"messages": [{"role": "user", "cont"#), 400);
    assert_eq!(send(b"\xff\xfe{}"), 400);
    assert_eq!(send(b""), 400);
    assert_eq!(send(b"[]"), 400);
    let deep = format!("{{\"messages\": {}", "[".repeat(1 << 20));
    assert_eq!(send(deep.as_bytes()), 400);
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n\r\n{";
    assert_eq!(
        raw(server.address, head.as_bytes()).status,
        413,
        "before the body comes"
    );
    let flood = format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: {}\r\n\r\n",
        "a".repeat(1 << 20)
    );
    let mut stream = connect(server.address);
    let _ = stream.write_all(flood.as_bytes());
    drop(stream);
    assert_eq!(
        get(server.address, "/health").status,
        200,
        "others do not notice"
    );
}

/// Breaks when a body without an announced length is read to its end.
#[test]
fn an_endless_body_is_cut_off() {
    let server = serve(|options| options.limits.body_bytes = 1 << 16);
    let mut stream = connect(server.address);
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b' '; 0x10000], b"\r\n"].concat();
    stream.write_all(&chunk).unwrap();
    let _ = stream.write_all(&chunk);
    assert_eq!(response(stream).status, 413);
}

/// Breaks when a connection that says nothing, or half of something, keeps others waiting or stays forever.
#[test]
fn half_open_connections_block_nobody() {
    let server = serve(|options| options.limits.reading = Duration::from_millis(300));
    let silent: Vec<_> = (0..50).map(|_| connect(server.address)).collect();
    let mut half = connect(server.address);
    half.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nHost: loc")
        .unwrap();
    let mut no_body = connect(server.address);
    no_body
        .write_all(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        .unwrap();
    let answer = post(server.address, "/v1/chat/completions", &question("Hi", 2));
    assert_eq!(answer.status, 200);
    assert_eq!(response(no_body).status, 408);
    let closed = response(half).status;
    assert!(closed == 0 || closed == 408, "{closed}");
    drop(silent);
}

/// Breaks when somebody who never ends a request keeps the server from ending, or when an answer is cut off because of it.
#[test]
fn half_a_request_does_not_hold_up_the_end() {
    let mut server = serve(|_| {});
    let mut half = connect(server.address);
    half.write_all(b"GET /hea").unwrap();
    let mut no_body = connect(server.address);
    no_body
        .write_all(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        .unwrap();
    let mut answer = post(server.address, "/v1/chat/completions", &endless("Hi"));
    answer.event().unwrap();
    let since = Instant::now();
    server.handle.shut_down();
    assert_eq!(response(half).status, 0);
    assert_eq!(response(no_body).status, 0);
    assert!(since.elapsed() < Duration::from_secs(10));
    assert!(answer.events().1, "the answer goes on to its end");
    server.join();
}

/// Breaks when connections that say nothing, or announce a body that does not come, keep others out, or when somebody who is being
/// answered has to make room.
#[test]
fn connections_that_do_not_ask_make_room() {
    let server = serve(|options| options.limits.connections = 8);
    let mut streams: Vec<_> = (0..4)
        .map(|_| post(server.address, "/v1/chat/completions", &endless("Hi")))
        .collect();
    for stream in &mut streams {
        stream.event().unwrap();
    }
    let half =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{";
    let crowd: Vec<_> = (0..200)
        .map(|n| {
            let mut stream = connect(server.address);
            // It may have been closed already.
            let _ = stream.write_all(if n % 2 == 0 { b"" } else { half.as_bytes() });
            stream
        })
        .collect();
    let answer = post(server.address, "/v1/chat/completions", &question("Hi", 2));
    assert_eq!(answer.status, 200);
    for mut stream in streams {
        assert!(stream.events().1, "the stream goes on to its end");
    }
    drop(crowd);
}

/// Breaks when a flood of headers is read, or when others notice it.
#[test]
fn a_flood_of_headers_is_refused() {
    let server = serve(|_| {});
    let many: String = (0..20_000).map(|n| format!("X-{n}: 1\r\n")).collect();
    let request = format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    let mut stream = connect(server.address);
    // The server may close the connection before all was written.
    let _ = stream.write_all(request.as_bytes());
    let status = response(stream).status;
    assert!([0, 400, 431].contains(&status), "{status}");
    assert_eq!(get(server.address, "/health").status, 200);
}

/// Breaks when the limit of headers is another than the documentation says.
#[test]
fn headers_have_64_kib_and_are_100() {
    let server = serve(|_| {});
    let long = |bytes: usize| {
        let value = "a".repeat(bytes);
        with(server.address, "GET", "/health", &[("X-A", &value)], b"").status
    };
    assert_eq!(long(65_000), 200);
    assert_eq!(long(66_000), 431);
    let path = format!("/health?{}", "a".repeat(66_000));
    // hyper refuses lines of this length by itself.
    assert!([414, 431].contains(&get(server.address, &path).status));
    let many = |n: usize| {
        let names: Vec<String> = (0..n).map(|at| format!("X-{at}")).collect();
        let headers: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
        with(server.address, "GET", "/health", &headers, b"").status
    };
    // `Host`, `Connection` and `Content-Length` are further ones.
    assert_eq!(many(97), 200);
    assert_eq!(many(98), 431);
}

/// Breaks when a web page of somebody else can use the server of whoever looks at it.
#[test]
fn names_and_pages_from_elsewhere_are_refused() {
    let server = serve(|options| options.security.origins = vec!["https://app.example".into()]);
    let ask = |headers: &[(&str, &str)]| with(server.address, "GET", "/v1/models", headers, b"");
    for (header, value, option) in [
        ("Host", "evil.example", "--allow-host"),
        ("Origin", "https://evil.example", "--allow-origin"),
    ] {
        let refused = ask(&[(header, value)]);
        assert_eq!(refused.status, 403);
        let message = refused.json()["error"]["message"].to_string();
        assert!(message.contains(option), "{message}");
    }
    let own = format!("http://{}", server.address);
    assert_eq!(ask(&[("Origin", &own)]).status, 200);
    assert_eq!(
        ask(&[("Origin", &own)]).header("access-control-allow-origin"),
        None
    );
    let named = ask(&[("Origin", "https://app.example")]);
    assert_eq!(
        named.header("access-control-allow-origin"),
        Some("https://app.example")
    );
    let asked = [
        ("Origin", "https://app.example"),
        ("Access-Control-Request-Method", "POST"),
        (
            "Access-Control-Request-Headers",
            "authorization,x-stainless-os",
        ),
    ];
    let preflight = with(
        server.address,
        "OPTIONS",
        "/v1/chat/completions",
        &asked,
        b"",
    );
    assert_eq!(preflight.status, 204);
    assert_eq!(
        preflight.header("access-control-allow-headers"),
        Some("authorization,x-stainless-os"),
        "clients have headers of their own"
    );
}

#[test]
fn keys_are_asked_for_everywhere_but_at_the_door() {
    let server = serve(|options| options.security.keys = vec!["secret".into()]);
    let ask =
        |path: &str, headers: &[(&str, &str)]| with(server.address, "GET", path, headers, b"");
    let refused = ask("/v1/models", &[]);
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json()["error"]["code"], "invalid_api_key");
    assert_eq!(
        ask("/v1/models", &[("Authorization", "Bearer wrong")]).status,
        401
    );
    assert_eq!(
        ask("/v1/models", &[("Authorization", "Bearer secret")]).status,
        200
    );
    assert_eq!(ask("/v1/models", &[("X-Api-Key", "secret")]).status, 200);
    assert_eq!(ask("/metrics", &[]).status, 401);
    assert_eq!(ask("/health", &[]).status, 200);
}
