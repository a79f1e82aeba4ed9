//! `data:` URLs, as browsers and the clients of the OpenAI API write them.
//!
//! ```text
//! data:[image/png][;name=value]*;base64,<base64, of which spaces and line breaks are left out>
//! ```

use crate::error::PictureProblem;
use crate::limits::Limits;

/// The bytes of a `data:` URL. `None` if the text is another kind of URL.
///
/// The media type is not used, because decoding looks at the bytes. The length is checked before anything is decoded.
///
/// ```
/// use akunu_image::{Limits, decode_data_url};
///
/// let limits = Limits::default();
/// let bytes = decode_data_url("data:image/png;base64,iVBORw0KGgo=", &limits).unwrap().unwrap();
/// assert_eq!(&bytes[1..4], b"PNG");
/// assert!(decode_data_url("https://example.com/cat.png", &limits).is_none());
/// ```
#[must_use]
pub fn decode_data_url(url: &str, limits: &Limits) -> Option<Result<Vec<u8>, PictureProblem>> {
    let (scheme, rest) = url.split_at_checked(5)?;
    if !scheme.eq_ignore_ascii_case("data:") {
        return None;
    }
    Some(decode(rest, limits))
}

/// The bytes of base64, with or without line breaks and padding, within a limit.
///
/// ```
/// use akunu_image::{Limits, decode_base64};
///
/// assert_eq!(decode_base64("R0lG", &Limits::default()).unwrap(), b"GIF");
/// ```
pub fn decode_base64(text: &str, limits: &Limits) -> Result<Vec<u8>, PictureProblem> {
    let found = text.len() as u64 / 4 * 3;
    if found > limits.max_bytes.saturating_add(2) {
        let limit = limits.max_bytes;
        return Err(PictureProblem::TooManyBytes { found, limit });
    }
    let is_text = |byte: &u8| !byte.is_ascii_whitespace();
    let mut text: Vec<u8> = text.bytes().filter(is_text).collect();
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    text.truncate(text.len() - padding);
    base64::decode_config(text, base64::STANDARD_NO_PAD)
        .map_err(|_| PictureProblem::DataUrl("the base64 is damaged"))
}

fn decode(rest: &str, limits: &Limits) -> Result<Vec<u8>, PictureProblem> {
    let (head, data) = rest
        .split_once(',')
        .ok_or(PictureProblem::DataUrl("the comma is missing"))?;
    let is_base64 = head
        .rsplit_once(';')
        .is_some_and(|(_, last)| last.eq_ignore_ascii_case("base64"));
    if !is_base64 {
        return Err(PictureProblem::DataUrl("only base64 is supported"));
    }
    decode_base64(data, limits)
}
