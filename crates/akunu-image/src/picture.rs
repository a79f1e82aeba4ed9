//! Decoded pixels.

/// Width and height in pixels.
///
/// ```
/// use akunu_image::Size;
///
/// let tile = Size { width: 512, height: 512 };
/// assert_eq!(tile, Size::square(512));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Size {
    /// A square.
    #[must_use]
    pub const fn square(side: u32) -> Self {
        Self {
            width: side,
            height: side,
        }
    }

    /// Width times height.
    #[must_use]
    pub const fn n_pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }

    /// Width divided by height.
    pub(crate) fn aspect_ratio(self) -> f64 {
        f64::from(self.width) / f64::from(self.height)
    }

    pub(crate) fn longest(self) -> u32 {
        self.width.max(self.height)
    }

    pub(crate) fn shortest(self) -> u32 {
        self.width.min(self.height)
    }
}

/// An image as red, green and blue bytes, upright and without transparency.
///
/// ```
/// use akunu_image::{Picture, Size};
///
/// let red = Picture::from_rgb(Size { width: 2, height: 1 }, vec![255, 0, 0, 255, 0, 0]).unwrap();
/// assert_eq!(red.size().width, 2);
/// assert!(Picture::from_rgb(Size { width: 2, height: 2 }, vec![0; 6]).is_none());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    size: Size,
    /// (height, width, 3)
    rgb: Vec<u8>,
}

impl Picture {
    /// Pixels of rows from top to bottom, (height, width, 3). `None` if there are no pixels or if `rgb` has another length.
    #[must_use]
    pub fn from_rgb(size: Size, rgb: Vec<u8>) -> Option<Self> {
        let n_bytes = size.n_pixels().checked_mul(3)?;
        let fits = n_bytes > 0 && u64::try_from(rgb.len()) == Ok(n_bytes);
        fits.then_some(Self { size, rgb })
    }

    /// A picture of one colour. The size must have pixels.
    pub(crate) fn filled(size: Size, colour: [u8; 3]) -> Self {
        let rgb = colour.repeat(size.n_pixels() as usize);
        Self { size, rgb }
    }

    /// Width and height, both at least 1.
    #[must_use]
    pub fn size(&self) -> Size {
        self.size
    }

    /// The bytes, (height, width, 3).
    #[must_use]
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// Bytes of a row.
    pub(crate) fn stride(&self) -> usize {
        3 * self.size.width as usize
    }

    /// The rectangle of `size` whose upper left corner is (left, top). It must lie inside.
    pub(crate) fn crop(&self, left: u32, top: u32, size: Size) -> Self {
        let rows = self
            .rgb
            .chunks_exact(self.stride())
            .skip(top as usize)
            .take(size.height as usize);
        let from = 3 * left as usize;
        let n = 3 * size.width as usize;
        Self {
            size,
            rgb: rows.flat_map(|row| &row[from..from + n]).copied().collect(),
        }
    }

    /// Copies `other` over the rectangle at (left, top), which must lie inside.
    pub(crate) fn paste(&mut self, left: u32, top: u32, other: &Self) {
        let stride = self.stride();
        let rows = self.rgb.chunks_exact_mut(stride).skip(top as usize);
        let from = 3 * left as usize;
        for (to, row) in rows.zip(other.rgb.chunks_exact(other.stride())) {
            to[from..from + row.len()].copy_from_slice(row);
        }
    }
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Size { width, height } = self.size;
        write!(f, "Picture({width} x {height})")
    }
}
