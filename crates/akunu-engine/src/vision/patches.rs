//! From the pixels of an image to the rows of its patches.
//!
//! ```text
//! row of patch (y, x) = red of its pixels, line by line; green of them; blue of them; zeros
//! ```
//!
//! The patches of a square of `merge` × `merge` follow each other, and so do the squares: both in reading order.

use akunu_arch::vision::{Grids, ImageInput, MAX_PATCHES};

/// Red, green and blue.
const CHANNELS: usize = 3;

/// Lines and columns of the patches of an image, or of the rows that squares of them become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Lines of patches.
    pub height: u32,
    /// Patches of a line.
    pub width: u32,
}

impl Grid {
    /// How many there are.
    pub fn len(self) -> usize {
        self.height as usize * self.width as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The grid of the squares of `merge` × `merge`.
    pub(super) fn merged(self, merge: u32) -> Grid {
        Grid {
            height: self.height / merge,
            width: self.width / merge,
        }
    }

    /// Refuses a grid that the tower does not read.
    pub(super) fn check(self, input: &ImageInput) -> Result<(), String> {
        let Grid { height, width } = self;
        match input.grids {
            Grids::Square(side) if height != side || width != side => {
                let pixels = side * input.patch;
                Err(format!(
                    "it has {height} × {width} patches of {0} pixels, and must have {side} × {side} ({pixels} × {pixels} pixels)",
                    input.patch
                ))
            }
            Grids::Square(_) => Ok(()),
            Grids::Any if !self.is_whole(input.merge) => {
                let merge = input.merge;
                Err(format!(
                    "it has {height} × {width} patches, and both must be multiples of {merge}"
                ))
            }
            Grids::Any if u64::from(height) * u64::from(width) > u64::from(MAX_PATCHES) => {
                Err(format!(
                    "it has {height} × {width} patches, which are more than {MAX_PATCHES}: make it smaller"
                ))
            }
            Grids::Any => Ok(()),
        }
    }

    /// Whether it is a whole number of squares, and at least one.
    fn is_whole(self, merge: u32) -> bool {
        let sides = [self.height, self.width];
        sides
            .iter()
            .all(|&side| side > 0 && side.is_multiple_of(merge))
    }

    /// Line and column of each patch, in the order of the rows.
    pub(super) fn patches(self, merge: u32) -> impl Iterator<Item = (usize, usize)> {
        let square = move |y: u32, x: u32| {
            let places = (0..merge).flat_map(move |dy| (0..merge).map(move |dx| (y + dy, x + dx)));
            places.map(|(y, x)| (y as usize, x as usize))
        };
        let lines = (0..self.height).step_by(merge as usize);
        lines.flat_map(move |y| {
            let squares = (0..self.width).step_by(merge as usize);
            squares.flat_map(move |x| square(y, x))
        })
    }
}

/// Refuses pixels that are not those of the grid. The grid was checked.
pub(super) fn check_pixels(pixels: &[f32], grid: Grid, input: &ImageInput) -> Result<(), String> {
    let wanted = grid.len() * input.patch_numbers() as usize;
    match pixels.len() == wanted {
        true => Ok(()),
        false => {
            let found = pixels.len();
            Err(format!(
                "it has {found} numbers, and its grid of patches has {wanted}"
            ))
        }
    }
}

/// The rows of the patches, (patches, row_len). `pixels` are (channels, lines, columns).
pub(super) fn patch_rows(
    pixels: &[f32],
    grid: Grid,
    input: &ImageInput,
    row_len: usize,
) -> Vec<f32> {
    let side = input.patch as usize;
    let columns = grid.width as usize * side;
    let plane = grid.height as usize * side * columns;
    let mut rows = vec![0f32; grid.len() * row_len];
    let patches = grid.patches(input.merge);
    for (row, (y, x)) in rows.chunks_exact_mut(row_len).zip(patches) {
        let mut lines = row.chunks_exact_mut(side);
        for channel in 0..CHANNELS {
            for (line, to) in (0..side).zip(&mut lines) {
                let from = channel * plane + (y * side + line) * columns + x * side;
                to.copy_from_slice(&pixels[from..][..side]);
            }
        }
    }
    rows
}
