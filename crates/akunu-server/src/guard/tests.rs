use super::*;

fn security() -> Security {
    Security {
        keys: Vec::new(),
        origins: vec!["https://app.example".into()],
        hosts: vec!["Box.lan".into()],
        ..Security::default()
    }
}

/// Breaks when a name that somebody else controls passes as this machine's.
#[test]
fn a_foreign_name_is_not_ours() {
    let ours = [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1:8080",
        "10.1.2.3",
        "[::1]:80",
        "box.LAN:1",
    ];
    for host in ours {
        assert!(is_our_name(&security(), host), "{host}");
    }
    let foreign = [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example:80",
        "::1",
        "[evil]",
        "localhost@evil",
    ];
    for host in foreign {
        assert!(!is_our_name(&security(), host), "{host}");
    }
}

fn from(host: &str, origin: &str) -> Result<(), ApiError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, host.parse().expect("a header"));
    headers.insert(header::ORIGIN, origin.parse().expect("a header"));
    admit(&security(), &headers, &Method::POST, "/v1/models")
}

#[test]
fn pages_from_elsewhere_are_refused_unless_named() {
    assert!(from("localhost:8080", "http://localhost:8080").is_ok());
    assert!(from("localhost:8080", "https://app.example").is_ok());
    for origin in [
        "http://localhost:3000",
        "https://evil.example",
        "null",
        "https://app.example.evil",
        "localhost:8080",
    ] {
        let refused = from("localhost:8080", origin).expect_err(origin);
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
}

/// Breaks when a program's own scheme is refused, when nonsense passes, or when everybody on a network could be asked for by any page.
#[test]
fn what_no_browser_sends_is_no_origin() {
    let with = |origin: &str, address: [u8; 4], keys: &[&str]| ServerOptions {
        address: (address, 8080).into(),
        security: Security {
            origins: vec![origin.into()],
            keys: keys.iter().map(|key| key.to_string()).collect(),
            ..Security::default()
        },
        ..ServerOptions::default()
    };
    let (here, everywhere) = ([127, 0, 0, 1], [0, 0, 0, 0]);
    for right in [
        "http://localhost:3000",
        "app://obsidian.md",
        "chrome-extension://abcdef",
        "vscode-webview://1a2b",
    ] {
        assert!(check(&with(right, everywhere, &[])).is_ok(), "{right}");
    }
    for wrong in [
        "localhost:3000",
        "https://",
        "https://a/b",
        "://a",
        "a b://c",
        "null",
    ] {
        assert!(check(&with(wrong, here, &[])).is_err(), "{wrong}");
    }
    assert!(check(&with("*", here, &[])).is_ok());
    assert!(check(&with("*", everywhere, &["key"])).is_ok());
    assert!(matches!(
        check(&with("*", everywhere, &[])),
        Err(ServerError::AnyOrigin)
    ));
}

/// Breaks when `*` does not mean every page, or an allowed page may not send the headers of its client.
#[test]
fn every_page_may_ask_where_all_are_allowed() {
    let security = Security {
        origins: vec!["*".into()],
        ..Security::default()
    };
    assert!(is_named(
        &security,
        &HeaderValue::from_static("https://anywhere.example")
    ));
    let asked = HeaderValue::from_static("authorization, x-stainless-lang");
    let allowed = preflight(Some(asked.clone()));
    assert_eq!(
        allowed.headers()[header::ACCESS_CONTROL_ALLOW_HEADERS],
        asked
    );
}

/// Breaks when a refusal does not say by which option the name or the origin is allowed.
#[test]
fn refusals_name_the_option() {
    let host = from("evil.example", "http://evil.example").expect_err("a foreign name");
    assert!(host.message.contains("--allow-host"), "{}", host.message);
    let origin = from("localhost", "http://evil.example").expect_err("a foreign page");
    assert!(
        origin.message.contains("--allow-origin"),
        "{}",
        origin.message
    );
}
