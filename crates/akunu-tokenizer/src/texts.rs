//! Many short texts in two blocks of memory.

/// The texts of tokens by id, as bytes: one after the other, and where each ends.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// Room for this many texts of a usual length.
    pub fn with_capacity(n_texts: usize) -> Texts {
        Texts {
            bytes: Vec::with_capacity(8 * n_texts),
            ends: Vec::with_capacity(n_texts),
        }
    }

    /// Gives the next id to a text.
    #[inline]
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Number of texts; ids are below it.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text with this id.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let start = match id.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(id)?)
    }

    /// All texts in the order of ids.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let text = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            text
        })
    }
}
