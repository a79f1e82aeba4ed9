//! How many values a JSON text has, counted before it is parsed.

/// Numbers, texts, lists and objects in a JSON text, without the names of fields, or a few more; of a text that is not JSON, no
/// fewer than a parser can see before it notices.
///
/// Parsers take memory for each value and not for each byte: `[[],[],…]` costs 30 times its size. So a limit on this number
/// bounds them.
///
/// ```
/// assert_eq!(akunu_gguf::n_json_values(br#"{"a": [1, 2, "[,{"]}"#), 5);
/// ```
pub fn n_json_values(json: &[u8]) -> usize {
    let mut n_values = 1;
    let mut is_text = false;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match (byte, is_text) {
            (b'"', _) => is_text = !is_text,
            (b'\\', true) => {
                bytes.next();
            }
            (b',' | b'[' | b'{', false) => n_values += 1,
            _ => {}
        }
    }
    n_values
}
