//! The images of a sequence, and what follows from them for each slot.
//!
//! Positions of models with three axes follow from the spans: the rows of an image have the position of its first row in
//! time, and that plus their line and column in height and width. The text goes on behind the largest of them.
//!
//! ```text
//! slot      0  1    2    3    4    5    6    7  8
//!           a  an image of 2 lines, 3 columns  b  c
//! time      0  1    1    1    1    1    1    4  5
//! height    0  1    1    1    2    2    2    4  5
//! width     0  1    2    3    1    2    3    4  5
//! ```

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::features::ImageFeatures;

/// An image in a sequence.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// Its first slot.
    pub start: usize,
    /// Rows of the image that the sequence has, from its first one on.
    pub len: usize,
    pub features: Arc<ImageFeatures>,
}

/// The images of a sequence, in the order of their slots. They may reach beyond its tokens while a prompt is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images(Vec<Span>);

/// Where a row stands on the three axes of some models. A token of a text has the same number on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axes {
    pub time: u32,
    pub height: u32,
    pub width: u32,
}

impl Span {
    /// The slot behind its last row.
    pub fn end(&self) -> usize {
        self.start + self.len
    }

    fn slots(&self) -> Range<usize> {
        self.start..self.end()
    }

    fn is_as(&self, other: &Span) -> bool {
        let same = Arc::ptr_eq(&self.features, &other.features);
        self.start == other.start && (same || self.features == other.features)
    }

    /// Positions that its rows take: those of the text behind it begin there.
    fn extent(&self) -> usize {
        let Some(grid) = self.features.grid() else {
            return self.len;
        };
        let width = grid.width as usize;
        self.len.div_ceil(width).max(self.len.min(width))
    }
}

impl Images {
    pub fn new(spans: Vec<Span>) -> Images {
        Images(spans)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All spans.
    pub fn spans(&self) -> &[Span] {
        &self.0
    }

    /// Whether all images lie before this slot.
    pub fn end_before(&self, slot: usize) -> bool {
        self.0.last().is_none_or(|span| span.end() <= slot)
    }

    /// Those of the first `len` slots.
    pub fn clipped(&self, len: usize) -> Images {
        let mut images = self.clone();
        images.clip(len);
        images
    }

    /// Forgets what is not in the first `len` slots. Returns the first slot of an image that was cut in two.
    pub fn clip(&mut self, len: usize) -> Option<usize> {
        self.0.retain(|span| span.start < len);
        let last = self.0.last_mut()?;
        let cut = last.end() > len;
        last.len = last.len.min(len - last.start);
        cut.then_some(last.start)
    }

    /// The image that a slot is of.
    pub fn at(&self, slot: usize) -> Option<&Span> {
        let mut spans = self.0.iter();
        spans.find(|span| span.slots().contains(&slot))
    }

    /// Up to `len`, how many slots have the same images as another sequence. With `whole`, the rows of an image see all of it, so that
    /// a part of an image is a different image.
    pub fn agree(&self, other: &Images, len: usize, whole: bool) -> usize {
        let n = self.0.len().max(other.0.len());
        let first_difference = (0..n).find_map(|at| match (self.0.get(at), other.0.get(at)) {
            (Some(a), Some(b)) if a.is_as(b) && a.len == b.len => None,
            (Some(a), Some(b)) if a.is_as(b) && !whole => Some(a.end().min(b.end())),
            (Some(a), Some(b)) => Some(a.start.min(b.start)),
            (Some(span), None) | (None, Some(span)) => Some(span.start),
            (None, None) => None,
        });
        first_difference.map_or(len, |at| at.min(len))
    }

    /// Adds the images of some slots to the name of their page. With `whole`, rows depend on how much of their image there is.
    pub fn hash_into(&self, slots: &Range<usize>, whole: bool, hash: &mut Sha256) {
        for span in &self.0 {
            let (first, end) = (span.start.max(slots.start), span.end().min(slots.end));
            if first >= end {
                continue;
            }
            hash.update(span.features.hash());
            let rows = if whole { span.len } else { 0 };
            for number in [first - slots.start, first - span.start, end - first, rows] {
                hash.update((number as u64).to_le_bytes());
            }
        }
    }

    /// The pieces of images that lie in these slots: the slots, and the image.
    pub fn pieces(&self, slots: Range<usize>) -> impl Iterator<Item = (Range<usize>, &Span)> {
        self.0.iter().filter_map(move |span| {
            let piece = span.start.max(slots.start)..span.end().min(slots.end);
            (!piece.is_empty()).then_some((piece, span))
        })
    }

    /// How many slots from `first` on, at most `most`, end with no image cut in two; 0 if the first image alone is longer.
    pub fn whole_images(&self, first: usize, most: usize) -> usize {
        let end = first + most;
        match self.at(end).filter(|span| span.start < end) {
            Some(cut) => cut.start.saturating_sub(first),
            None => most,
        }
    }

    /// Slots such that no image lies within them in part: an image that is there at their beginning stays before them, and
    /// one at their end is among them.
    pub fn without_parts(&self, slots: Range<usize>) -> Range<usize> {
        let boundary = |slot: usize| match self.at(slot) {
            Some(span) if span.start < slot => span.end(),
            _ => slot,
        };
        let (start, end) = (boundary(slots.start), boundary(slots.end));
        start..end.max(start)
    }

    /// Takes slots out, and the images in them.
    pub fn remove(&mut self, slots: Range<usize>) {
        self.0.retain(|span| !slots.contains(&span.start));
        let behind = self.0.iter_mut().filter(|span| span.start >= slots.end);
        behind.for_each(|span| span.start -= slots.len());
    }

    /// How much smaller the position of the text at this slot is than the slot, behind all images before it.
    pub fn offset(&self, slot: usize) -> usize {
        let before = self.0.iter().filter(|span| span.end() <= slot);
        before.map(|span| span.len - span.extent()).sum()
    }

    /// Where a slot stands on the three axes.
    pub fn axes(&self, slot: usize) -> Axes {
        let position = (slot - self.offset(slot)) as u32;
        let Some((span, grid)) = self.at(slot).and_then(|s| Some((s, s.features.grid()?))) else {
            return Axes {
                time: position,
                height: position,
                width: position,
            };
        };
        let row = (slot - span.start) as u32;
        let time = position - row;
        Axes {
            time,
            height: time + row / grid.width,
            width: time + row % grid.width,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::features::ImageGrid;
    use super::*;

    fn image(start: usize, n: usize, first: f32) -> Span {
        let features = ImageFeatures::new(1, vec![first; n]).expect("rows");
        Span {
            start,
            len: n,
            features: Arc::new(features),
        }
    }

    fn grid(start: usize, height: u32, width: u32) -> Span {
        let n = (height * width) as usize;
        let features = ImageFeatures::new(1, vec![0.0; n]).expect("rows");
        let features = features
            .with_grid(ImageGrid { height, width })
            .expect("the grid fits");
        Span {
            start,
            len: n,
            features: Arc::new(features),
        }
    }

    fn name(images: &Images, slots: Range<usize>, whole: bool) -> Vec<u8> {
        let mut hash = Sha256::new();
        images.hash_into(&slots, whole, &mut hash);
        hash.finalize().to_vec()
    }

    /// The table of the module's documentation, and a second image.
    #[test]
    fn positions_follow_from_the_images_before() {
        let images = Images::new(vec![grid(1, 2, 3), grid(8, 2, 1)]);
        let axes: Vec<[u32; 3]> = (0..12)
            .map(|slot| images.axes(slot))
            .map(|axes| [axes.time, axes.height, axes.width])
            .collect();
        let wanted = [
            [0, 0, 0],
            [1, 1, 1],
            [1, 1, 2],
            [1, 1, 3],
            [1, 2, 1],
            [1, 2, 2],
            [1, 2, 3],
            [4, 4, 4],
            [5, 5, 5],
            [5, 6, 5],
            [7, 7, 7],
            [8, 8, 8],
        ];
        assert_eq!(axes, wanted);
    }

    /// Fails when the pages of another image, or of another place in it, are taken for its own.
    #[test]
    fn pages_are_named_by_their_images() {
        let a = Images::new(vec![image(2, 6, 1.0)]);
        let others = [
            Images::default(),
            Images::new(vec![image(2, 6, 2.0)]),
            Images::new(vec![image(3, 5, 1.0)]),
            Images::new(vec![image(0, 6, 1.0)]),
        ];
        for other in &others {
            assert_ne!(name(&a, 0..4, false), name(other, 0..4, false));
        }
        // A page does not depend on the rows behind it, unless its rows see them.
        let cut = a.clipped(5);
        assert_eq!(name(&a, 0..4, false), name(&cut, 0..4, false));
        assert_ne!(name(&a, 0..4, true), name(&cut, 0..4, true));
        assert_ne!(name(&a, 4..8, false), name(&cut, 4..8, false));
        let plain = Sha256::new().finalize().to_vec();
        assert_eq!(name(&a, 8..12, true), plain, "no image there");
    }

    #[test]
    fn sequences_agree_up_to_the_first_other_image() {
        let a = Images::new(vec![image(2, 3, 1.0), image(7, 2, 2.0)]);
        assert_eq!(a.agree(&a.clone(), 20, true), 20);
        assert_eq!(a.agree(&Images::default(), 20, true), 2);
        assert_eq!(Images::default().agree(&a, 1, true), 1);
        let other = Images::new(vec![image(2, 3, 1.0), image(7, 2, 3.0)]);
        assert_eq!(a.agree(&other, 20, false), 7);
        assert_eq!(a.agree(&a.clipped(4), 20, false), 4);
        assert_eq!(a.agree(&a.clipped(4), 20, true), 2);
    }

    #[test]
    fn a_cut_goes_through_an_image_or_beside_it() {
        let mut images = Images::new(vec![image(2, 3, 1.0), image(7, 2, 2.0)]);
        assert_eq!(images.clip(9), None);
        assert_eq!(images.clip(8), Some(7));
        assert_eq!(images.clip(7), None);
        assert_eq!(images.clip(3), Some(2));
        assert_eq!(images.spans()[0].len, 1);
        assert_eq!(images.clip(2), None);
        assert!(images.is_empty());
    }

    /// Fails when an image is cut in two, or when one behind the gap stays where it was.
    #[test]
    fn slots_are_dropped_with_whole_images() {
        let mut images = Images::new(vec![image(2, 3, 1.0), image(6, 4, 2.0), image(12, 1, 3.0)]);
        assert_eq!(images.without_parts(2..6), 2..6);
        let dropped = images.without_parts(3..7);
        assert_eq!(dropped, 5..10);
        images.remove(dropped);
        let places: Vec<usize> = images.spans().iter().map(|span| span.start).collect();
        assert_eq!(places, [2, 7]);
    }

    #[test]
    fn a_step_takes_whole_images() {
        let images = Images::new(vec![image(2, 3, 1.0), image(5, 4, 2.0)]);
        let taken = |first, most| images.whole_images(first, most);
        assert_eq!([taken(0, 2), taken(0, 4), taken(0, 5)], [2, 2, 5]);
        assert_eq!([taken(2, 2), taken(3, 2), taken(0, 8)], [0, 2, 5]);
        assert_eq!([taken(5, 4), taken(9, 4), taken(0, 20)], [4, 4, 20]);
    }
}
