//! Forms as clients send them, and forms that nobody should send.

use super::*;

fn form(body: &str) -> Result<Form, &'static str> {
    split(body.as_bytes(), "XX").map(|parts| Form { parts })
}

/// Breaks when a field, a file name or a byte of a file is lost: files have line ends and boundaries of others in them.
#[test]
fn fields_and_files_are_found() {
    let mut form = form(
        "a preamble\r\n--XX\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n\
         --XX  \r\ncontent-disposition: form-data; filename=\"a \\\"b\\\"; c.wav\"; name=file\r\n\
         Content-Type: audio/wav\r\n\r\n\r\n--X\r\n--Y\0\r\n\
         --XX\r\nContent-Disposition: form-data; name=\"g[]\"\r\n\r\nword\r\n\
         --XX\r\nContent-Disposition: form-data; name=\"g[]\"\r\n\r\nsegment\r\n--XX--\r\nan epilogue",
    )
    .expect("a form");
    assert_eq!(form.text("model").expect("text"), Some("whisper"));
    assert_eq!(form.text("language").expect("nothing"), None);
    assert_eq!(form.texts("g[]").expect("text"), ["word", "segment"]);
    let file = form.take("file").expect("a file");
    assert_eq!(file.file_name.as_deref(), Some("a \"b\"; c.wav"));
    assert_eq!(file.bytes, b"\r\n--X\r\n--Y\0");
    assert!(form.take("file").is_none());
}

/// Breaks when a form that was cut off is taken for a whole one, or when a part without a name gets through.
#[test]
fn broken_forms_say_what_is_wrong() {
    let name = "Content-Disposition: form-data; name=\"a\"\r\n\r\n1";
    for (body, wanted) in [
        (String::new(), "the boundary does not occur"),
        ("--XY\r\n".into(), "the boundary does not occur"),
        (format!("--XX\r\n{name}"), "it ends within a part"),
        (format!("--XX{name}"), "it ends within a part"),
        (
            "--XX\r\n\r\n--XX--".into(),
            "a part has no end of its headers",
        ),
        (
            format!("--XX\r\n{}\r\n\r\n\r\n--XX--", "a".repeat(9000)),
            "a part has no end of its headers",
        ),
        (
            "--XX\r\nName: a\r\n\r\n1\r\n--XX--".into(),
            "a part has no Content-Disposition of form-data",
        ),
        (
            "--XX\r\nContent-Disposition: form-data; x=\"a\r\n\r\n1\r\n--XX--".into(),
            "a part has no name",
        ),
        (
            format!("--XX\r\n{name}\r\n").repeat(65) + "--XX--",
            "it has too many parts",
        ),
    ] {
        assert_eq!(form(&body).expect_err("broken"), wanted, "{body}");
    }
}

#[test]
fn a_boundary_may_be_quoted() {
    assert_eq!(
        boundary("multipart/form-data; boundary=abc").as_deref(),
        Some("abc")
    );
    let quoted = "Multipart/Form-Data; charset=utf-8; BOUNDARY=\"a b\"; x=1";
    assert_eq!(boundary(quoted).as_deref(), Some("a b"));
    for wrong in [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "application/json; boundary=a",
    ] {
        assert_eq!(boundary(wrong), None, "{wrong}");
    }
}

#[test]
fn a_field_that_is_no_text_is_named() {
    let parts = split(
        b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff\r\n--XX--",
        "XX",
    );
    let form = Form {
        parts: parts.expect("a form"),
    };
    assert_eq!(
        form.text("a").expect_err("bytes").param.as_deref(),
        Some("a")
    );
}
