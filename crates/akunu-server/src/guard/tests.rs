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

#[test]
fn what_no_browser_sends_is_no_origin() {
    let with = |origin: &str| Security {
        origins: vec![origin.into()],
        ..Security::default()
    };
    assert!(check(&with("http://localhost:3000")).is_ok());
    for wrong in ["*", "localhost:3000", "https://", "https://a/b"] {
        assert!(check(&with(wrong)).is_err(), "{wrong}");
    }
}
