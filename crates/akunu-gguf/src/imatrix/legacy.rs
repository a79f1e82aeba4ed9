//! The older form of a file, `.dat`. All integers are i32, all numbers f32, little-endian:
//!
//! ```text
//! n_entries
//! each entry:  length of the name, name, n_calls, n_values, n_values × (mean of x² × n_calls)
//! optional:    n_chunks, length of the text's name, name
//! ```
//!
//! An entry does not say how many matrices its tensor has, only how many values there are in all, and
//! all of them have one count.

use super::{Entry, ImatrixProblem, ImportanceMatrix};

/// Parses the bytes of a file.
pub(super) fn read(bytes: &[u8]) -> Result<ImportanceMatrix, ImatrixProblem> {
    let mut cursor = Cursor { bytes, at: 0 };
    let n_entries = cursor.length("the number of entries")?;
    let mut matrix = ImportanceMatrix::default();
    for _ in 0..n_entries {
        let name = cursor.string("the name of an entry")?;
        let calls = cursor.integer("the calls of an entry")?;
        let n = cursor.length("the number of values")?;
        let sums = cursor.floats(n)?;
        // Values without a number of calls are means already.
        let counts = vec![f64::from(calls.max(1))];
        matrix.entries.insert(name, Entry { sums, counts });
    }
    if cursor.at < bytes.len() {
        matrix.n_chunks = cursor.length("the number of chunks")? as u32;
        matrix.datasets.push(cursor.string("the name of the text")?);
    }
    Ok(matrix)
}

/// The bytes, and how many of them were read.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize, what: &'static str) -> Result<&'a [u8], ImatrixProblem> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(taken) = rest.get(..n) else {
            return Err(ImatrixProblem::Legacy { what, at: self.at });
        };
        self.at += n;
        Ok(taken)
    }

    fn integer(&mut self, what: &'static str) -> Result<i32, ImatrixProblem> {
        let bytes = self.take(4, what)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |all, &byte| all << 8 | i32::from(byte)))
    }

    /// An integer that counts something.
    fn length(&mut self, what: &'static str) -> Result<usize, ImatrixProblem> {
        let at = self.at;
        let length = self.integer(what)?;
        usize::try_from(length).map_err(|_| ImatrixProblem::Legacy { what, at })
    }

    fn string(&mut self, what: &'static str) -> Result<String, ImatrixProblem> {
        let n = self.length(what)?;
        let at = self.at;
        let bytes = self.take(n, what)?.to_vec();
        String::from_utf8(bytes).map_err(|_| ImatrixProblem::Legacy { what, at })
    }

    fn floats(&mut self, n: usize) -> Result<Vec<f64>, ImatrixProblem> {
        let what = "the values of an entry";
        let bytes = self.take(n.saturating_mul(4), what)?;
        let (words, _) = bytes.as_chunks::<4>();
        let values = words
            .iter()
            .map(|word| f64::from(f32::from_le_bytes(*word)));
        Ok(values.collect())
    }
}
