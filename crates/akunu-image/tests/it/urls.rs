//! `data:` URLs and base64.

use akunu_image::{Limits, PictureProblem, decode_base64, decode_data_url};

fn decode(url: &str) -> Option<Result<Vec<u8>, PictureProblem>> {
    decode_data_url(url, &Limits::default())
}

/// Fails if a URL of another kind is taken for data, or data for another kind.
#[test]
fn only_data_urls_are_decoded() {
    for url in [
        "",
        "data",
        "https://example.com/a.png",
        "file:///etc/passwd",
        "é€data:",
    ] {
        assert!(decode(url).is_none(), "{url}");
    }
    for url in [
        "data:image/png;base64,R0lGODlh",
        "DATA:;BASE64,R0lGODlh",
        "data:image/svg+xml;name=x;base64,R0lG\r\nODlh",
    ] {
        assert_eq!(decode(url).unwrap().unwrap(), b"GIF89a", "{url}");
    }
}

#[test]
fn damaged_data_urls_are_refused_in_words() {
    let refuse = |url: &str| decode(url).unwrap().unwrap_err().to_string();
    let message = |reason: &str| {
        format!("is not a valid data URL: {reason}; expected data:image/png;base64,...")
    };
    assert_eq!(refuse("data:image/png"), message("the comma is missing"));
    assert_eq!(refuse("data:,hello"), message("only base64 is supported"));
    assert_eq!(
        refuse("data:image/png;base64,%%%"),
        message("the base64 is damaged")
    );
    assert_eq!(
        refuse("data:image/png;base64,A"),
        message("the base64 is damaged")
    );
}

/// Line breaks and missing padding are common; too many bytes are refused before they are decoded.
#[test]
fn base64_is_lenient_and_limited() {
    let limits = Limits {
        max_bytes: 6,
        ..Limits::default()
    };
    for text in ["AAECAw==", "AAECAw", "AAEC\nAw==", " AAECAw= ="] {
        assert_eq!(
            decode_base64(text, &limits).unwrap(),
            [0, 1, 2, 3],
            "{text:?}"
        );
    }
    let long = decode_base64(&"AAAA".repeat(4), &limits).unwrap_err();
    assert!(matches!(
        long,
        PictureProblem::TooManyBytes {
            found: 12,
            limit: 6
        }
    ));
}
