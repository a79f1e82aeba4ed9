//! Forms as clients send them, and forms that nobody should send.

use super::*;

async fn form(body: impl Into<Body>) -> Result<Form, ApiError> {
    let request = Request::builder().header(
        header::CONTENT_TYPE,
        "Multipart/Form-Data; charset=utf-8; BOUNDARY=\"XX\"",
    );
    let request = request.body(body.into()).expect("a request");
    let limits = Limits {
        audio_bytes: 3 << 20,
        ..Limits::default()
    };
    Form::read(request, &limits).await
}

/// Breaks when a field, a file name or a byte of a file is lost: files have line ends and boundaries of others in them.
#[tokio::test]
async fn fields_and_files_are_found() {
    let mut form = form(
        "a preamble\r\n--XX\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n\
         --XX  \r\ncontent-disposition: form-data; filename=\"a \\\"b\\\"; c.wav\"; name=file\r\n\
         Content-Type: audio/wav\r\n\r\n\r\n--X\r\n--Y\0\r\n\
         --XX\r\nContent-Disposition: form-data; name=\"language\"\r\n\r\n\r\n\
         --XX\r\nContent-Disposition: form-data; name=\"g[]\"\r\n\r\nword\r\n\
         --XX\r\nContent-Disposition: form-data; name=\"g[]\"\r\n\r\nsegment\r\n--XX--\r\nan epilogue",
    )
    .await
    .expect("a form");
    assert_eq!(form.text("model").expect("text"), Some("whisper"));
    assert_eq!(form.text("language").expect("nothing"), None);
    assert_eq!(form.texts("g[]").expect("text"), ["word", "segment"]);
    let file = form.take("file").expect("a file");
    assert_eq!(file.file_name.as_deref(), Some("a \"b\"; c.wav"));
    assert_eq!(&file.bytes[..], b"\r\n--X\r\n--Y\0");
    assert!(form.take("file").is_none());
}

/// Breaks when a form that was cut off is taken for a whole one, or when a part without a name gets through.
#[tokio::test]
async fn broken_forms_are_refused() {
    let name = "Content-Disposition: form-data; name=\"a\"\r\n\r\n1";
    for body in [
        String::new(),
        "--XY\r\n".into(),
        format!("--XX\r\n{name}"),
        format!("--XX{name}"),
        "--XX\r\n\r\n--XX--".into(),
        "--XX\r\nName: a\r\n\r\n1\r\n--XX--".into(),
        "--XX\r\nContent-Disposition: form-data; x=\"a\r\n\r\n1\r\n--XX--".into(),
        format!("--XX\r\n{name}\r\n").repeat(65) + "--XX--",
    ] {
        let refused = form(body.clone()).await.expect_err(&body);
        assert_eq!(refused.status, 400, "{body}: {}", refused.message);
        let has_reason = refused
            .message
            .starts_with("the form is not as it should be: ");
        assert!(has_reason, "{}", refused.message);
    }
    let no_form = Request::new(Body::from("{}"));
    let refused = Form::read(no_form, &Limits::default()).await;
    let refused = refused.expect_err("no form");
    assert!(refused.message.contains("multipart/form-data"));
}

/// Breaks when another limit than ours holds: that of axum is 2 MB.
#[tokio::test]
async fn a_form_is_as_large_as_the_limit() {
    let of = |bytes: usize| {
        let head = "--XX\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n";
        let file = "a".repeat(bytes);
        format!("{head}{file}\r\n--XX--")
    };
    let mut whole = form(of(5 << 19)).await.expect("2.5 MiB of 3");
    assert_eq!(
        whole.take("file").map(|part| part.bytes.len()),
        Some(5 << 19)
    );
    let refused = form(of(3 << 20)).await.expect_err("more than 3 MiB");
    assert_eq!(refused.status, 413);
    assert_eq!(refused.message, "the body is larger than 3145728 bytes");
}

#[tokio::test]
async fn a_field_that_is_no_text_is_named() {
    let body = b"--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\xff\r\n--XX--";
    let form = form(&body[..]).await.expect("a form");
    assert_eq!(
        form.text("a").expect_err("bytes").param.as_deref(),
        Some("a")
    );
}
