//! Adapters: small changes to the products of a model, chosen for each sequence.
//!
//! ```text
//! y = W x + sum over the sequence's adapters of scale * B (A x)
//! ```
//!
//! An adapter is loaded beside a model once, and any number of sequences use it, each with its own scale, several at
//! once in a step. What differs between rows of a step is a factor for each sequence; a row without the adapter has the
//! factor 0. A step without any adapter runs the program of the plain model.

mod load;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::error::EngineError;
use crate::loaded::Loaded;
use crate::pool::Name;

/// An adapter that is loaded beside a model. Clones are cheap; its memory is freed with the last one.
///
/// ```no_run
/// use akunu_engine::{Adapters, SessionOptions};
/// # fn example(model: &akunu_engine::Model) -> Result<(), akunu_engine::EngineError> {
/// let adapter = model.load_adapter("pirate.gguf")?;
/// let mut session = model.session(SessionOptions::default())?;
/// session.set_adapters(&Adapters::none().with(&adapter, 1.0))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Adapter(Arc<Shared>);

struct Shared {
    /// The model that it was made for.
    model: Arc<Loaded>,
    path: PathBuf,
    /// Its place among the adapters of the model.
    slot: usize,
    /// A hash of all that it holds.
    identity: [u8; 32],
    /// While it lives, the device's memory is kept.
    _alive: Arc<()>,
}

/// The matrices of one product, ready for a device.
pub(crate) struct AdapterMatrices {
    /// The weight of the product, by its canonical name.
    pub weight: String,
    pub rank: usize,
    /// (rank, inputs).
    pub a: Vec<f32>,
    /// (outputs, rank), times the adapter's own scale.
    pub b: Vec<f32>,
}

impl Adapter {
    /// The file or folder of the adapter.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl PartialEq for Adapter {
    fn eq(&self, other: &Adapter) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Adapter({})", self.0.path.display())
    }
}

/// The adapters of a sequence, each with its scale.
///
/// ```no_run
/// use akunu_engine::Adapters;
/// # fn example(model: &akunu_engine::Model) -> Result<(), akunu_engine::EngineError> {
/// let (pirate, brief) = (model.load_adapter("pirate.gguf")?, model.load_adapter("brief.gguf")?);
/// let both = Adapters::none().with(&pirate, 1.0).with(&brief, 0.5);
/// assert_eq!(both.iter().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Adapters {
    /// Those with a scale other than 0, by their place among the adapters of the model.
    chosen: Vec<(Adapter, f32)>,
}

impl Adapters {
    /// No adapter: the plain model.
    pub fn none() -> Adapters {
        Adapters::default()
    }

    /// Adds an adapter, or adds to the scale of one that is there: 1 is the adapter as it was trained, 0 has no effect.
    pub fn with(mut self, adapter: &Adapter, scale: f32) -> Adapters {
        match self.chosen.iter_mut().find(|(known, _)| known == adapter) {
            Some((_, sum)) => *sum += scale,
            None => self.chosen.push((adapter.clone(), scale)),
        }
        self.chosen.retain(|(_, scale)| *scale != 0.0);
        self.chosen.sort_by_key(|(adapter, _)| adapter.0.slot);
        self
    }

    /// Whether this is the plain model.
    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// The adapters and their scales.
    pub fn iter(&self) -> impl Iterator<Item = (&Adapter, f32)> {
        self.chosen.iter().map(|(adapter, scale)| (adapter, *scale))
    }

    /// Refuses adapters of another model, and scales that are no numbers.
    pub(crate) fn check(&self, model: &Arc<Loaded>) -> Result<(), EngineError> {
        for (adapter, scale) in self.iter() {
            if !Arc::ptr_eq(&adapter.0.model, model) {
                return Err(EngineError::AdapterModel {
                    adapter: adapter.path().to_path_buf(),
                    model: model.path.clone(),
                });
            }
            if !scale.is_finite() {
                return Err(EngineError::AdapterScale {
                    adapter: adapter.path().to_path_buf(),
                    scale,
                });
            }
        }
        Ok(())
    }

    /// A bit for each of them, by its place among the adapters of the model.
    pub(crate) fn bits(&self) -> u64 {
        let bits = self.chosen.iter().map(|(adapter, _)| 1 << adapter.0.slot);
        bits.fold(0, |all, bit: u64| all | bit)
    }

    /// The scale of the adapter at a place among those of the model; 0 for one that is not used.
    pub(crate) fn scale_at(&self, slot: usize) -> f32 {
        let mut chosen = self.chosen.iter();
        let found = chosen.find(|(adapter, _)| adapter.0.slot == slot);
        found.map_or(0.0, |(_, scale)| *scale)
    }

    /// A hash that identifies these adapters and scales; zeros for the plain model.
    pub(crate) fn identity(&self) -> [u8; 32] {
        if self.is_empty() {
            return [0; 32];
        }
        let of_one = |(adapter, scale): &(Adapter, f32)| (adapter.0.identity, scale.to_bits());
        let mut all: Vec<_> = self.chosen.iter().map(of_one).collect();
        all.sort_unstable();
        let mut hash = Sha256::new();
        for (identity, scale) in all {
            hash.update(identity);
            hash.update(scale.to_le_bytes());
        }
        hash.finalize().into()
    }

    /// What the names of all pages begin with.
    pub(crate) fn name(&self) -> Name {
        let mut name = Name::default();
        let len = name.len();
        name.copy_from_slice(&self.identity()[..len]);
        name
    }
}
