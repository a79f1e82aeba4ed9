//! A reader that cannot leave the bytes it was given.

use super::error::Fault;
use super::utf8;

/// Reads little-endian numbers and lengths from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    /// Bytes consumed so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Bytes that are left.
    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[inline]
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], Fault> {
        let end = self.at.checked_add(n).ok_or(Fault::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(Fault::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A 64-bit count of things that take at least `min_bytes` each, refused when the bytes that are
    /// left cannot hold that many. What is allocated for it is then in proportion to the file.
    pub(crate) fn count(&mut self, min_bytes: usize) -> Result<usize, Fault> {
        let count = self.u64()?;
        let limit = self.remaining() / min_bytes;
        match usize::try_from(count) {
            Ok(n) if n <= limit => Ok(n),
            _ => Err(Fault::CountBeyondFile { count, limit }),
        }
    }

    /// A string: its length in bytes as a 64-bit number, then UTF-8.
    pub(crate) fn string(&mut self) -> Result<&'a str, Fault> {
        let n = self.count(1)?;
        std::str::from_utf8(self.take(n)?).map_err(|_| Fault::InvalidUtf8)
    }

    /// The bytes of a string, without a look at them. The cursor stays where it is when they are not there.
    #[inline]
    pub(crate) fn string_bytes(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.bytes.get(self.at..)?.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let text = rest.get(..length)?;
        self.at += 8 + length;
        Some(text)
    }

    /// Steps over a string that is right. Another one stays, for [`Cursor::string`] to say what is wrong.
    #[inline]
    pub(crate) fn skip_string(&mut self) -> bool {
        let before = *self;
        let Some(text) = self.string_bytes() else {
            return false;
        };
        let first = self.bytes.get(self.at - text.len()..);
        let is_simple = text.len() <= utf8::MAX_BYTES
            && first
                .and_then(|first| first.first_chunk())
                .is_some_and(|bytes| utf8::is_simple(*bytes, text.len()));
        let is_right = is_simple || std::str::from_utf8(text).is_ok();
        if !is_right {
            *self = before;
        }
        is_right
    }
}
