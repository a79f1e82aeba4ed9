//! How large an image may be.

/// How large an image may be. Everything is checked before memory for pixels is allocated.
///
/// ```
/// use akunu_image::Limits;
///
/// let thumbnails = Limits { max_side: 512, ..Limits::default() };
/// assert!(thumbnails.max_pixels > 512 * 512);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file: 64 MiB.
    pub max_bytes: u64,
    /// Pixels of one side: 16,384.
    pub max_side: u32,
    /// Width times height: 64 Mi pixels, such as 8192 x 8192. An RGB picture of that size takes 192 MiB.
    pub max_pixels: u64,
    /// Bytes that a decoder may allocate: 512 MiB, enough for 16-bit RGBA of [`max_pixels`](Self::max_pixels).
    pub max_memory: u64,
    /// Makes room for further limits.
    #[doc(hidden)]
    pub _more: (),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
            max_side: 16_384,
            max_pixels: 64 << 20,
            max_memory: 512 << 20,
            _more: (),
        }
    }
}
