//! Pictures as a tower reads them.

/// Patches of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Rows of patches.
    pub height: u32,
    /// Patches of a row.
    pub width: u32,
}

impl Grid {
    /// The rows that the tower makes of these patches, when squares of `merge` x `merge` patches become one row.
    #[must_use]
    pub fn merged(self, merge: u32) -> Self {
        let merge = merge.max(1);
        Self {
            height: self.height.div_ceil(merge),
            width: self.width.div_ceil(merge),
        }
    }
}

/// One image that the tower reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Normalised pixels, planar: (3, grid.height * patch, grid.width * patch).
    pub pixels: Vec<f32>,
    /// Its patches. For a model that merges patches, those before the merge.
    pub grid: Grid,
}

/// How the tiles of one image stand in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One tile, the whole image.
    Single,
    /// The image cut into rows and columns.
    Tiled {
        /// Rows of tiles.
        rows: u32,
        /// Tiles of a row.
        columns: u32,
        /// After them comes a tile that shows the whole image.
        overview: bool,
    },
}

impl Layout {
    /// The number of tiles.
    #[must_use]
    pub fn n_tiles(self) -> usize {
        match self {
            Self::Single => 1,
            Self::Tiled {
                rows,
                columns,
                overview,
            } => (rows * columns) as usize + usize::from(overview),
        }
    }
}

/// One image, ready for its tower.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The tiles, row by row, then the overview.
    pub tiles: Vec<Tile>,
    /// How they stand in the text.
    pub layout: Layout,
}
