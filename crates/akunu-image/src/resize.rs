//! Resizing as torchvision does it for bytes on a CPU, bit for bit.
//!
//! Each axis is resampled by itself, first the rows, then the columns, and rounded to bytes after each. With
//! scale = n_in / n_out and a filter f of radius r (stretched by s = max(scale, 1), which is the antialiasing):
//!
//! ```text
//! centre(i) = (i + 0.5) * scale
//! w(i, k)   = f((k + 0.5 - centre(i)) / s), normalised to a sum of 1,  |k + 0.5 - centre(i)| <= r * s
//! out[i]    = clamp(round(sum over k of w(i, k) * in[k]), 0, 255)
//! ```
//!
//! Weights are 16-bit integers with as many binary places as the largest weight of the axis allows. That is the only
//! departure from the formula, and it moves a result by at most one unit. Pillow keeps 22 places, and its versions differ
//! in which axis comes first.

use crate::picture::{Picture, Size};
use std::f64::consts::PI;

/// How pixels between pixels are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// A triangle of radius 1.
    Bilinear,
    /// Cubic pieces of radius 2, with a slope of -0.5 at 1.
    Bicubic,
    /// A windowed sinc of radius 3.
    Lanczos,
}

impl Filter {
    fn radius(self) -> f64 {
        match self {
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
            Self::Lanczos => 3.0,
        }
    }

    fn at(self, x: f64) -> f64 {
        let d = x.abs();
        match self {
            Self::Bilinear => (1.0 - d).max(0.0),
            Self::Bicubic if d < 1.0 => (1.5 * d - 2.5) * d * d + 1.0,
            Self::Bicubic if d < 2.0 => (((d - 5.0) * d + 8.0) * d - 4.0) * -0.5,
            Self::Lanczos if d < 3.0 => sinc(x) * sinc(x / 3.0),
            Self::Bicubic | Self::Lanczos => 0.0,
        }
    }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 {
        1.0
    } else {
        (PI * x).sin() / (PI * x)
    }
}

/// A rectangle of the resized picture.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) left: u32,
    pub(crate) top: u32,
    pub(crate) size: Size,
}

impl Picture {
    /// The picture with another size.
    ///
    /// ```
    /// use akunu_image::{Filter, Picture, Size};
    ///
    /// let grey = Picture::from_rgb(Size { width: 2, height: 1 }, vec![0, 0, 0, 200, 200, 200]).unwrap();
    /// assert_eq!(grey.resize(Size::square(1), Filter::Bilinear).rgb(), [100, 100, 100]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the size has no pixels.
    #[must_use]
    pub fn resize(&self, size: Size, filter: Filter) -> Self {
        let whole = Window {
            left: 0,
            top: 0,
            size,
        };
        self.resize_window(size, whole, filter)
    }

    /// A window of the picture with another size. Only the window's pixels are computed.
    pub(crate) fn resize_window(&self, size: Size, window: Window, filter: Filter) -> Self {
        assert!(size.n_pixels() > 0, "a size without pixels");
        let columns = Axis::new(self.size().width, size.width, filter);
        let rows = Axis::new(self.size().height, size.height, filter);
        let columns: Vec<_> = taps_of(&columns, window.left, window.size.width);
        let rows: Vec<_> = taps_of(&rows, window.top, window.size.height);
        // Only the rows that some output row reads are resampled horizontally.
        let first = rows.iter().map(|taps| taps.first).min().unwrap_or(0);
        let end = rows.iter().map(Taps::end).max().unwrap_or(0);
        let wide = self.resample_rows(&columns, first..end);
        let rgb = resample_columns(&wide, 3 * columns.len(), &rows, first);
        Self::from_rgb(window.size, rgb).unwrap_or_else(|| unreachable!("a pixel for each place"))
    }

    /// (rows of `range`, columns.len(), 3)
    fn resample_rows(&self, columns: &[Taps], range: std::ops::Range<usize>) -> Vec<u8> {
        let mut out = Vec::with_capacity(range.len() * columns.len() * 3);
        let rows = self.rgb().chunks_exact(self.stride());
        for row in rows.skip(range.start).take(range.len()) {
            for taps in columns {
                let mut sums = [taps.half(); 3];
                let pixels = row[3 * taps.first..].chunks_exact(3);
                for (pixel, &weight) in pixels.zip(&taps.weights) {
                    for (sum, &byte) in sums.iter_mut().zip(pixel) {
                        *sum += weight * i32::from(byte);
                    }
                }
                out.extend(sums.map(|sum| taps.byte(sum)));
            }
        }
        out
    }
}

/// (rows.len(), stride) from rows of `stride` bytes, of which the first is row `first` of the picture.
fn resample_columns(wide: &[u8], stride: usize, rows: &[Taps], first: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * stride);
    let mut sums = vec![0i32; stride];
    for taps in rows {
        sums.fill(taps.half());
        let inputs = wide.chunks_exact(stride).skip(taps.first - first);
        for (input, &weight) in inputs.zip(&taps.weights) {
            for (sum, &byte) in sums.iter_mut().zip(input) {
                *sum += weight * i32::from(byte);
            }
        }
        out.extend(sums.iter().map(|&sum| taps.byte(sum)));
    }
    out
}

/// One axis of a resized picture.
struct Axis {
    n_in: u32,
    scale: f64,
    filter: Filter,
    /// Binary places of the weights; none if the axis keeps its length.
    places: u32,
}

/// The pixels that one pixel is made of.
struct Taps {
    first: usize,
    /// 16-bit numbers.
    weights: Vec<i32>,
    places: u32,
}

impl Taps {
    fn end(&self) -> usize {
        self.first + self.weights.len()
    }

    /// One half, so that shifting rounds.
    fn half(&self) -> i32 {
        (1 << self.places) >> 1
    }

    fn byte(&self, sum: i32) -> u8 {
        (sum >> self.places).clamp(0, 255) as u8
    }
}

fn taps_of(axis: &Axis, from: u32, n: u32) -> Vec<Taps> {
    (from..from + n).map(|place| axis.taps(place)).collect()
}

impl Axis {
    /// The binary places follow from the largest weight of the whole axis, not of a window.
    fn new(n_in: u32, n_out: u32, filter: Filter) -> Self {
        let scale = f64::from(n_in) / f64::from(n_out);
        let mut axis = Self {
            n_in,
            scale,
            filter,
            places: 0,
        };
        if n_in != n_out {
            let weights = (0..n_out).flat_map(|place| axis.weights(place).1);
            let largest = weights.fold(0.0, f64::max);
            let fits = |places: &u32| 0.5 + largest * f64::from(1 << (places + 1)) < 32768.0;
            axis.places = (0..MAX_PLACES).take_while(fits).count() as u32;
        }
        axis
    }

    fn taps(&self, place: u32) -> Taps {
        // An axis that keeps its length is copied.
        let (first, weights) = if self.places == 0 {
            (place as usize, vec![1])
        } else {
            let (first, weights) = self.weights(place);
            let unit = f64::from(1 << self.places);
            let weights = weights.iter().map(|w| (w * unit).round() as i32);
            (first, weights.collect())
        };
        Taps {
            first,
            weights,
            places: self.places,
        }
    }

    /// The first pixel that counts for this one, and the weights from there, with a sum of 1.
    fn weights(&self, place: u32) -> (usize, Vec<f64>) {
        let stretch = self.scale.max(1.0);
        let radius = self.filter.radius() * stretch;
        let centre = (f64::from(place) + 0.5) * self.scale;
        let first = (centre - radius + 0.5).max(0.0) as u32;
        let end = ((centre + radius + 0.5) as u32).min(self.n_in);
        let at = |k: u32| {
            self.filter
                .at((f64::from(k) - centre + 0.5) * (1.0 / stretch))
        };
        let mut weights: Vec<f64> = (first..end).map(at).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
        (first as usize, weights)
    }
}

/// With 22 places, 255 times the sum of the weights stays below 2^31.
const MAX_PLACES: u32 = 22;
