//! The text around an image: which tokens stand before, between and after the rows that a tower makes of it.
//!
//! ```text
//! Idefics 3   <fake_token_around_image><global-img> rows <fake_token_around_image>
//!   in tiles  (<fake_token_around_image><row_1_col_1> rows ...)\n for each row of tiles, \n, and then as above
//! Gemma 3     \n\n<start_of_image> rows <end_of_image>\n\n
//! Gemma 4     <|image> rows <image|>
//! LFM2-VL     <|image_start|> rows <|image_end|>
//!   in tiles  <|image_start|>(<|img_row_1_col_1|> rows ...) [<|img_thumbnail|> rows] <|image_end|>
//! Qwen        rows                                (its template writes <|vision_start|> and <|vision_end|> itself)
//! Pixtral     (row [IMG_BREAK]) for each row of patches, the last of which ends with [IMG_END]
//! ```

use crate::layout::{Grid, Layout};
use std::borrow::Cow;

/// A family of models that put the same text around images.
///
/// ```
/// use akunu_image::{Grid, Layout, Piece, Wording};
///
/// let pieces = Wording::Gemma4.pieces(Layout::Single, &[Grid { height: 2, width: 3 }]);
/// assert_eq!(pieces[0], Piece::Control("<|image>".into()));
/// assert_eq!(pieces[1], Piece::Rows { tile: 0, start: 0, n: 6 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Idefics 3 and SmolVLM.
    Idefics3,
    /// Gemma 3.
    Gemma3,
    /// Gemma 4.
    Gemma4,
    /// LFM2-VL.
    Lfm2,
    /// Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen 3.5.
    Qwen,
    /// Pixtral and Mistral 3.
    Pixtral,
}

/// A piece of what an image becomes in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A token of this name.
    Control(Cow<'static, str>),
    /// Text, which is encoded together with the text beside it.
    Text(&'static str),
    /// Rows of a tower, in the place of tokens named [`Wording::row_token`].
    Rows {
        /// The tile, in the order of [`Prepared::tiles`](crate::Prepared::tiles).
        tile: usize,
        /// The first of the tile's rows.
        start: u32,
        /// How many.
        n: u32,
    },
}

const FAKE: &str = "<fake_token_around_image>";

impl Wording {
    /// The token that a chat template writes for an image, and that the pieces replace.
    #[must_use]
    pub fn placeholder(self) -> &'static str {
        match self {
            Self::Gemma3 => "<start_of_image>",
            Self::Idefics3 | Self::Gemma4 | Self::Lfm2 | Self::Qwen | Self::Pixtral => {
                self.row_token()
            }
        }
    }

    /// The token whose places the rows take.
    #[must_use]
    pub fn row_token(self) -> &'static str {
        match self {
            Self::Idefics3 | Self::Lfm2 => "<image>",
            Self::Gemma3 => "<image_soft_token>",
            Self::Gemma4 => "<|image|>",
            Self::Qwen => "<|image_pad|>",
            Self::Pixtral => "[IMG]",
        }
    }

    /// What an image becomes. `grids` are the rows of each tile after its patches were merged.
    #[must_use]
    pub fn pieces(self, layout: Layout, grids: &[Grid]) -> Vec<Piece> {
        let mut out = Pieces {
            grids,
            next_tile: 0,
            pieces: Vec::new(),
        };
        match self {
            Self::Idefics3 => out.idefics3(layout),
            Self::Gemma3 => {
                out.text("\n\n");
                out.around("<start_of_image>", "<end_of_image>");
                out.text("\n\n");
            }
            Self::Gemma4 => out.around("<|image>", "<image|>"),
            Self::Lfm2 => out.lfm2(layout),
            Self::Qwen => out.tile(),
            Self::Pixtral => out.lines(),
        }
        out.pieces
    }
}

/// Pieces that are written one after the other, and the tile that comes next.
struct Pieces<'g> {
    grids: &'g [Grid],
    next_tile: usize,
    pieces: Vec<Piece>,
}

impl Pieces<'_> {
    fn control(&mut self, name: impl Into<Cow<'static, str>>) {
        self.pieces.push(Piece::Control(name.into()));
    }

    fn text(&mut self, text: &'static str) {
        self.pieces.push(Piece::Text(text));
    }

    /// All rows of the next tile.
    fn tile(&mut self) {
        if let Some(grid) = self.grids.get(self.next_tile) {
            self.pieces.push(Piece::Rows {
                tile: self.next_tile,
                start: 0,
                n: grid.height * grid.width,
            });
        }
        self.next_tile += 1;
    }

    fn around(&mut self, before: &'static str, after: &'static str) {
        self.control(before);
        self.tile();
        self.control(after);
    }

    fn idefics3(&mut self, layout: Layout) {
        if let Layout::Tiled { rows, columns, .. } = layout {
            for row in 1..=rows {
                for column in 1..=columns {
                    self.control(FAKE);
                    self.control(format!("<row_{row}_col_{column}>"));
                    self.tile();
                }
                self.text(if row == rows { "\n\n" } else { "\n" });
            }
        }
        self.control(FAKE);
        self.around("<global-img>", FAKE);
    }

    fn lfm2(&mut self, layout: Layout) {
        self.control("<|image_start|>");
        match layout {
            Layout::Single => self.tile(),
            Layout::Tiled {
                rows,
                columns,
                overview,
            } => {
                for place in 0..rows * columns {
                    let (row, column) = (place / columns + 1, place % columns + 1);
                    self.control(format!("<|img_row_{row}_col_{column}|>"));
                    self.tile();
                }
                if overview {
                    self.control("<|img_thumbnail|>");
                    self.tile();
                }
            }
        }
        self.control("<|image_end|>");
    }

    /// A line of rows for each line of patches.
    fn lines(&mut self) {
        let Some(&Grid { height, width }) = self.grids.first() else {
            return;
        };
        for line in 0..height {
            self.pieces.push(Piece::Rows {
                tile: 0,
                start: line * width,
                n: width,
            });
            let is_last = line + 1 == height;
            self.control(if is_last { "[IMG_END]" } else { "[IMG_BREAK]" });
        }
    }
}
