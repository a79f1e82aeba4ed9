//! What comes over the border and goes back: all of this crate's raw pointers are read and written here.
//!
//! Handles are no addresses (see [`crate::handles`]), so that only texts, lists of ids, results and callbacks are left.
//! Each of them is checked for null. That a pointer which is not null is one, and points at as much memory as the caller
//! says, nobody can check: it is what akunu.h asks for, and every `SAFETY` note below rests on it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::status::{AkunuStatus, Failure};

/// Receives a piece of text. The text is UTF-8 in whole characters, ends with a NUL after its `length` bytes, and is valid
/// only until the function returns. Return 0 to continue; anything else ends the answer.
pub type AkunuOnText =
    Option<unsafe extern "C" fn(text: *const c_char, length: usize, context: *mut c_void) -> c_int>;

/// Who hears of the pieces of an answer.
#[derive(Clone, Copy)]
pub struct Listener {
    /// Called with each piece, unless it is null.
    pub on_text: AkunuOnText,
    /// What the caller wants back with each call.
    pub context: *mut c_void,
}

impl Listener {
    /// Hands a piece over, which may have NULs in it; returns whether to go on.
    pub fn hear(&self, piece: &str) -> bool {
        let Some(on_text) = self.on_text else {
            return true;
        };
        let mut bytes = piece.as_bytes().to_vec();
        bytes.push(0);
        // SAFETY: the caller gave this function to be called so; the bytes live until it returns.
        unsafe { on_text(bytes.as_ptr().cast(), piece.len(), self.context) == 0 }
    }
}

/// A word of a segment. Its text is valid as long as that of the segment.
#[repr(C)]
pub struct AkunuWord {
    /// When it begins, in seconds.
    start: f64,
    /// When it ends.
    end: f64,
    /// The word, with the space before it.
    text: *const c_char,
}

/// A piece of speech in a recording. It and its texts, which are UTF-8 and end with a NUL, are valid only until the callback
/// returns.
#[repr(C)]
pub struct AkunuSegment {
    /// When it begins, in seconds.
    start: f64,
    /// When it ends.
    end: f64,
    /// The text.
    text: *const c_char,
    /// The spoken language: "en", for example.
    language: *const c_char,
    /// Its words, if the option words is set.
    words: *const AkunuWord,
    /// The number of words.
    n_words: usize,
}

/// Receives a segment of a recording. Return 0 to continue; anything else ends the transcription.
pub type AkunuOnSegment =
    Option<unsafe extern "C" fn(segment: *const AkunuSegment, context: *mut c_void) -> c_int>;

/// Who hears of the segments of a recording.
#[derive(Clone, Copy)]
pub struct SegmentListener {
    /// Called with each segment, unless it is null.
    pub on_segment: AkunuOnSegment,
    /// What the caller wants back with each call.
    pub context: *mut c_void,
}

impl SegmentListener {
    /// Hands a segment over; returns whether to go on.
    pub fn hear(&self, segment: &akunu::Segment, language: &str) -> bool {
        let Some(on_segment) = self.on_segment else {
            return true;
        };
        let (text, language) = (terminated(&segment.text), terminated(language));
        let texts: Vec<CString> = segment.words.iter().map(|w| terminated(&w.text)).collect();
        let words = segment.words.iter().zip(&texts);
        let words: Vec<AkunuWord> = words
            .map(|(word, text)| AkunuWord {
                start: word.start,
                end: word.end,
                text: text.as_ptr(),
            })
            .collect();
        let segment = AkunuSegment {
            start: segment.start,
            end: segment.end,
            text: text.as_ptr(),
            language: language.as_ptr(),
            words: words.as_ptr(),
            n_words: words.len(),
        };
        // SAFETY: the caller gave this function to be called so; what the segment points at lives until it returns.
        unsafe { on_segment(&raw const segment, self.context) == 0 }
    }
}

/// A text for C, which ends at its first NUL. What a model writes has none.
fn terminated(text: &str) -> CString {
    let words = text.split('\0').next().unwrap_or_default();
    CString::new(words).unwrap_or_default()
}

/// A text of the caller's, which is copied.
pub fn text(from: *const c_char, name: &str) -> Result<String, Failure> {
    if from.is_null() {
        return Err(Failure::argument(format!("`{name}` is null")));
    }
    // SAFETY: not null, and the caller's texts end with a NUL.
    let bytes = unsafe { CStr::from_ptr(from) };
    match bytes.to_str() {
        Ok(text) => Ok(text.to_string()),
        Err(_) => Err(Failure::argument(format!("`{name}` is not UTF-8"))),
    }
}

/// A list of texts of the caller's, which are copied.
pub fn texts(from: *const *const c_char, n: usize, name: &str) -> Result<Vec<String>, Failure> {
    let texts = list(from, n, name)?.into_iter().enumerate();
    texts
        .map(|(at, from)| text(from, &format!("{name}[{at}]")))
        .collect()
}

/// A list of the caller's, which is copied.
pub fn list<T: Copy>(from: *const T, n: usize, name: &str) -> Result<Vec<T>, Failure> {
    if n == 0 {
        return Ok(Vec::new());
    }
    if from.is_null() || !from.is_aligned() || n > isize::MAX as usize / size_of::<T>() {
        let text = format!("`{name}` is null or not aligned, or has no such length");
        return Err(Failure::argument(text));
    }
    // SAFETY: not null, aligned, no longer than a slice may be, and the caller has as many elements there.
    Ok(unsafe { std::slice::from_raw_parts(from, n) }.to_vec())
}

/// Writes a result where the caller wants it.
pub fn write<T>(to: *mut T, value: T, name: &str) -> Result<(), Failure> {
    check(to, name)?;
    // SAFETY: not null and aligned, and the caller has room for a value there.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes a result if the caller wants it.
pub fn write_if_wanted<T>(to: *mut T, value: T, name: &str) -> Result<(), Failure> {
    if to.is_null() {
        return Ok(());
    }
    write(to, value, name)
}

/// Whether a result can be written there, to be checked before long work.
pub fn check<T>(to: *mut T, name: &str) -> Result<(), Failure> {
    if to.is_null() || !to.is_aligned() {
        return Err(Failure::argument(format!(
            "`{name}` is null or not aligned"
        )));
    }
    Ok(())
}

/// Where the caller wants a list, and what it may hold.
pub struct Room<T> {
    /// The first element; null asks for the length only.
    pub to: *mut T,
    /// Elements that fit.
    pub capacity: usize,
    /// Where the length goes, which is that of the whole list even if it does not fit.
    pub length: *mut usize,
}

impl<T: Copy> Room<T> {
    /// Writes a list, or only its length where there is no room.
    pub fn fill(&self, values: &[T]) -> Result<(), Failure> {
        self.fill_with_end(values, &[])
    }

    /// Writes the length of a list of `length` elements and `n_more` behind it that are not counted; returns whether the
    /// caller wants the list itself, which then fits. Call this before computing an expensive list.
    pub fn is_wanted(&self, length: usize, n_more: usize) -> Result<bool, Failure> {
        write(self.length, length, "length")?;
        if self.to.is_null() && self.capacity == 0 {
            return Ok(false);
        }
        check(self.to, "to")?;
        let needed = length + n_more;
        if needed > self.capacity {
            let text = format!(
                "{needed} elements are needed, there is room for {}",
                self.capacity
            );
            return Err(Failure::new(AkunuStatus::Memory, text));
        }
        Ok(true)
    }

    /// Writes a list with an end behind it that the length does not count.
    fn fill_with_end(&self, values: &[T], end: &[T]) -> Result<(), Failure> {
        if !self.is_wanted(values.len(), end.len())? {
            return Ok(());
        }
        // SAFETY: not null and aligned, the caller has room for `capacity` elements, and our own memory is none of it.
        unsafe {
            self.to
                .copy_from_nonoverlapping(values.as_ptr(), values.len());
            self.to
                .add(values.len())
                .copy_from_nonoverlapping(end.as_ptr(), end.len());
        }
        Ok(())
    }
}

impl Room<c_char> {
    /// Writes a text and a NUL, which the length does not count.
    pub fn fill_text(&self, text: &str) -> Result<(), Failure> {
        let bytes: Vec<c_char> = text.bytes().map(|byte| byte as c_char).collect();
        self.fill_with_end(&bytes, &[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    /// Breaks when a byte is written behind the room, or the needed length is not told.
    #[test]
    fn a_list_that_does_not_fit_is_not_written() {
        let mut memory = [9u32; 3];
        let mut length = 0;
        let mut room = |capacity, length| Room {
            to: memory.as_mut_ptr(),
            capacity,
            length,
        };
        let failed = room(2, &raw mut length)
            .fill(&[1, 2, 3])
            .expect_err("no room");
        assert_eq!((failed.status, length), (AkunuStatus::Memory, 3));
        assert!(room(2, &raw mut length).fill(&[1, 2]).is_ok());
        assert_eq!(memory, [1, 2, 9]);
    }

    #[test]
    fn a_text_has_a_nul_behind_it_that_is_not_counted() {
        let mut memory = [9 as c_char; 4];
        let mut length = 0;
        let mut room = Room {
            to: memory.as_mut_ptr(),
            capacity: 2,
            length: &raw mut length,
        };
        assert!(room.fill_text("ab").is_err(), "no room for the NUL");
        room.capacity = 3;
        assert!(room.fill_text("ab").is_ok());
        assert_eq!((memory, length), ([97, 98, 0, 9], 2));
        let asked = Room::<c_char> {
            to: null_mut(),
            capacity: 0,
            length: &raw mut length,
        };
        assert!(asked.fill_text("abc").is_ok());
        assert_eq!(length, 3);
    }

    #[test]
    fn null_is_named() {
        let failed = text(std::ptr::null(), "path").expect_err("null");
        assert_eq!(failed.text, "`path` is null");
        assert!(text(c"\xff".as_ptr(), "path").is_err());
        assert!(list::<u32>(std::ptr::null(), 1, "ids").is_err());
        assert!(list::<u32>(std::ptr::null(), 0, "ids").is_ok_and(|ids| ids.is_empty()));
        assert!(write(null_mut::<u8>(), 1, "out").is_err());
    }
}
