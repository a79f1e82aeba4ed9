//! Scratch memory of a program. A vector has its place as long as its handle lives; the place of one that is gone is
//! used again. So the memory of a program follows from how it is written, and is measured by writing it once:
//!
//! ```text
//! place of a vector   4 * rows * (words of a row before it) bytes into the memory
//! memory              4 * rows * (most words of a row that are in use at once)
//! ```
//!
//! A device may fuse an operation with the readers of its result and so read its inputs later. It does so within a block,
//! for whose whole length all of its vectors live.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use akunu_program::{Buffer, Slice};

/// Words of a row that vectors begin at multiples of.
const UNIT: usize = 64;

/// Memory for the vectors of so many rows.
#[derive(Clone)]
pub(crate) struct Scratch {
    memory: Buffer,
    rows: u32,
    used: Rc<RefCell<Used>>,
}

/// Words of a row that are in use.
#[derive(Default)]
struct Used {
    places: Vec<Range<usize>>,
    most: usize,
}

/// A vector of each row.
pub(crate) struct Vector {
    slice: Slice,
    place: Range<usize>,
    used: Rc<RefCell<Used>>,
}

impl Scratch {
    /// All of this memory.
    pub fn new(memory: Buffer, rows: u32) -> Scratch {
        Scratch {
            memory,
            rows,
            used: Rc::default(),
        }
    }

    /// Memory that is not there, to measure how much a program takes.
    pub fn measure() -> Scratch {
        let memory = Buffer {
            id: u32::MAX,
            generation: 0,
            len: usize::MAX,
            writable: true,
        };
        Scratch::new(memory, 1)
    }

    /// Bytes of a row that were in use at once, at most.
    pub fn row_bytes(&self) -> usize {
        size_of::<f32>() * self.used.borrow().most
    }

    /// A vector of so many f32 for each row, in the first gap.
    pub fn take(&self, width: u32) -> Vector {
        let width = (width as usize).next_multiple_of(UNIT);
        let mut used = self.used.borrow_mut();
        let mut start = 0;
        for place in &used.places {
            if start + width <= place.start {
                break;
            }
            start = place.end;
        }
        let place = start..start + width;
        let at = used.places.partition_point(|other| other.start < start);
        used.places.insert(at, place.clone());
        used.most = used.most.max(place.end);
        Vector {
            slice: Slice {
                buffer: self.memory,
                offset: size_of::<f32>() * self.rows as usize * start,
            },
            place,
            used: Rc::clone(&self.used),
        }
    }
}

impl Vector {
    pub fn slice(&self) -> Slice {
        self.slice
    }
}

impl Drop for Vector {
    fn drop(&mut self) {
        let mut used = self.used.borrow_mut();
        used.places.retain(|place| *place != self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails when two vectors that live at once share bytes, or when the place of one that is gone is not used again.
    #[test]
    fn vectors_share_places_only_when_one_is_gone() {
        let scratch = Scratch::new(Scratch::measure().memory, 10);
        let offset = |vector: &Vector| vector.slice().offset;
        let [a, b, c] = [100, 64, 200].map(|width| scratch.take(width));
        assert_eq!([&a, &b, &c].map(offset), [0, 4 * 10 * 128, 4 * 10 * 192]);
        drop(b);
        let wide = scratch.take(65);
        assert_eq!(
            offset(&wide),
            4 * 10 * (192 + 256),
            "it does not fit the gap"
        );
        assert_eq!(offset(&scratch.take(1)), 4 * 10 * 128);
        drop((a, c));
        assert_eq!(offset(&scratch.take(448)), 0);
        assert_eq!(scratch.row_bytes(), 4 * (192 + 256 + 128));
    }
}
