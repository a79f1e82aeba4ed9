//! The rows of a record in their order, and medians and cells for tables.

use crate::median::median;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A row of a record: the rounds of both programs, measured in one way.
pub trait Row: Serialize + DeserializeOwned {
    /// How many tokens the tests have.
    type Sizes: Clone + PartialEq + Serialize + DeserializeOwned;
    /// Where the row stands among others; one that is measured again has the same place.
    type Place: Ord;

    /// Its place.
    fn place(&self) -> Self::Place;
}

/// Everything that was measured.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Summary<R: Row> {
    pub sizes: R::Sizes,
    pub comparisons: Vec<R>,
}

impl<R: Row> Summary<R> {
    /// Puts a row in its place, instead of an older one that was there.
    pub fn put(&mut self, new: R) {
        self.comparisons.retain(|old| old.place() != new.place());
        self.comparisons.push(new);
        self.comparisons.sort_by_key(R::place);
    }
}

/// The medians of both programs' rounds: ours, the peer's.
pub fn medians<M>(ours: &[M], peer: &[M], value: impl Fn(&M) -> f64) -> (f64, f64) {
    let of = |rounds: &[M]| median(rounds.iter().map(&value).collect()).unwrap_or(f64::NAN);
    (of(ours), of(peer))
}

/// A cell of a table: ours, the peer's, and how many times better ours is.
pub fn cell((ours, peer): (f64, f64), ratio: f64) -> String {
    format!("{} / {}, **{ratio:.2}**", short(ours), short(peer))
}

/// Three digits are enough for a figure that varies by a few percent.
pub fn short(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
