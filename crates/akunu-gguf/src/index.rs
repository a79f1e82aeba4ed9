//! Look-up by name in a list that keeps its own order.

/// The positions of a list's items, sorted by name.
#[derive(Debug, Default)]
pub(crate) struct NameIndex {
    sorted: Vec<usize>,
}

impl NameIndex {
    /// Sorts the items by name; the error is a name that occurs twice.
    pub(crate) fn build<T>(items: &[T], name: impl Fn(&T) -> &str) -> Result<NameIndex, String> {
        let mut sorted: Vec<usize> = (0..items.len()).collect();
        sorted.sort_unstable_by_key(|&at| name(&items[at]));
        for pair in sorted.windows(2) {
            let first = name(&items[pair[0]]);
            if first == name(&items[pair[1]]) {
                return Err(first.to_string());
            }
        }
        Ok(NameIndex { sorted })
    }

    /// The position of the item with this name in the list that the index was built for.
    pub(crate) fn find<T>(
        &self,
        items: &[T],
        name: impl Fn(&T) -> &str,
        wanted: &str,
    ) -> Option<usize> {
        let at = self
            .sorted
            .binary_search_by(|&at| name(&items[at]).cmp(wanted))
            .ok()?;
        Some(self.sorted[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_positions_and_reports_a_name_that_occurs_twice() {
        let names = ["c", "a", "b"];
        let index = NameIndex::build(&names, |name| name).unwrap();
        assert_eq!(index.find(&names, |name| name, "a"), Some(1));
        assert_eq!(index.find(&names, |name| name, "d"), None);
        let twice = NameIndex::build(&["x", "y", "x"], |name| name);
        assert_eq!(twice.unwrap_err(), "x");
    }
}
