//! The state of a runtime, and how it grows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use akunu_arch::ImageSight;
use akunu_program::{Device, RowTable};

use super::adapter_set::AdapterSet;
use super::chain::{Chain, ChainId, Chosen};
use super::kind::Programs;
use super::memory::Memory;
use super::told::Told;
use crate::cache::Cache;
use crate::error::EngineError;
use crate::loaded::Loaded;
use crate::pool::Pool;
use crate::sequence::Sequence;
use crate::speculation::{Costs, TextPool};

/// Rows of a step where nobody asks for more.
const DEFAULT_ROWS: u32 = 512;
/// Seats at first.
const FIRST_SEATS: u32 = 8;

/// Who sits on a seat.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seat {
    /// The sequence; 0 for nobody.
    pub owner: u64,
    /// The last step that it was used in.
    pub last_used: u64,
    /// What is recorded about its tokens.
    pub told: Told,
}

/// The device with all that lies on it, besides the weights.
pub(crate) struct Runtime {
    pub(super) model: Arc<Loaded>,
    pub(super) device: Box<dyn Device>,
    pub(super) memory: Memory,
    pub(super) table: RowTable,
    pub(super) pools: Vec<Pool>,
    /// The blocks of states.
    pub(super) states: Pool,
    pub(super) seats: Vec<Seat>,
    pub(super) programs: Programs,
    /// Maximum number of positions of a pool, if it is limited.
    pub(super) max_positions: Option<u32>,
    pub(super) n_sequences_made: u64,
    /// Counts the steps: who stepped last knows whether the rows are still its own.
    pub(super) step: u64,
    /// Counts the submissions that write logits.
    pub(super) n_with_outputs: u64,
    /// Chains that were started and have not been read, in their order.
    pub(super) chains: VecDeque<Chain>,
    /// Chains that were read before their owners asked for them, or why they failed.
    pub(super) kept_chains: HashMap<ChainId, Result<Chosen, Arc<String>>>,
    pub(super) n_chains: u64,
    /// Times of steps.
    pub(super) costs: Costs,
    /// What sequences have said, for guesses. It is looked at while others step.
    pub(super) texts: Arc<Mutex<TextPool>>,
    /// Whose logits lie in the first row: the sequence, and how many tokens it had.
    pub(super) logits_of: Option<(u64, usize)>,
    /// Whether somebody in this step asks for log probabilities.
    pub(super) is_scored: bool,
    /// Where pages and states are kept beyond this process.
    pub(super) cache: Option<Cache>,
    /// Whether heads turn by the factors of long-rope for long sessions.
    pub(super) turns_long: bool,
    pub(super) adapters: AdapterSet,
    /// A bit for each adapter that somebody in this step has.
    pub(super) active_adapters: u64,
    /// Whether this step has rows of an image.
    pub(super) has_images: bool,
}

impl Runtime {
    /// A runtime without sequences.
    pub fn new(model: Arc<Loaded>, mut device: Box<dyn Device>) -> Result<Runtime, EngineError> {
        let memory = Memory::allocate(&model, FIRST_SEATS, DEFAULT_ROWS, device.as_mut())?;
        Ok(Runtime {
            table: memory.table(),
            states: Pool::new(0),
            pools: memory.maps.iter().map(|_| Pool::new(0)).collect(),
            seats: vec![Seat::default(); FIRST_SEATS as usize],
            programs: Programs::default(),
            max_positions: None,
            n_sequences_made: 0,
            step: 0,
            n_with_outputs: 0,
            chains: VecDeque::new(),
            kept_chains: HashMap::new(),
            n_chains: 0,
            costs: Costs::default(),
            texts: Arc::default(),
            logits_of: None,
            is_scored: false,
            cache: None,
            turns_long: false,
            adapters: AdapterSet::default(),
            active_adapters: 0,
            has_images: false,
            memory,
            model,
            device,
        })
    }

    /// Logits of a row.
    pub fn vocab_size(&self) -> u32 {
        self.model.config.vocab_size
    }

    /// The device.
    pub fn device(&mut self) -> &mut dyn Device {
        self.device.as_mut()
    }

    /// Whether submissions return before they have ended.
    pub fn runs_ahead(&self) -> bool {
        self.device.runs_ahead()
    }

    /// Rows up to which a step gives each of them the very bits that it gives a single row.
    pub fn exact_rows(&self) -> usize {
        self.device.exact_rows()
    }

    /// The device's name and what it runs on.
    pub fn describe(&self) -> (&'static str, String) {
        (self.device.name(), self.device.description())
    }

    /// Limits the pools to as many positions.
    pub fn limit_pool(&mut self, positions: u32) {
        self.max_positions = Some(positions);
    }

    /// Pages that some sequence owns, of all kinds, and blocks of states.
    pub fn n_owned_pages(&self) -> u32 {
        let pools = self.pools.iter().chain([&self.states]);
        pools.map(Pool::n_owned).sum()
    }

    /// Bytes of the buffers that all sessions share.
    pub fn shared_bytes(&self) -> u64 {
        self.memory.shared_bytes()
    }

    /// Bytes of scratch memory for steps of this many rows.
    pub fn scratch_bytes(&self, rows: u32) -> u64 {
        self.memory.scratch_bytes(rows)
    }

    /// What steps cost by their rows.
    pub fn costs(&mut self) -> &mut Costs {
        &mut self.costs
    }

    /// What sequences have said.
    pub fn text_pool(&self) -> Arc<Mutex<TextPool>> {
        Arc::clone(&self.texts)
    }

    /// How many programs are loaded: loading one takes time that later steps do not take.
    pub fn n_programs(&self) -> usize {
        self.programs.loaded.len()
    }

    /// A sequence without tokens.
    pub fn new_sequence(&mut self) -> Sequence {
        self.sweep_adapters();
        self.n_sequences_made += 1;
        let mut sequence = Sequence::new(self.n_sequences_made, self.memory.maps.len());
        let images = self.model.config.images;
        sequence.has_whole_images = images.is_some_and(|images| images.sight == ImageSight::Whole);
        sequence
    }

    /// A step may have this many rows at least.
    pub fn want_rows(&mut self, rows: u32) -> Result<(), EngineError> {
        if rows > self.memory.step.row_capacity {
            let seats = self.seats.len() as u32;
            self.resize(seats, rows)?;
        }
        Ok(())
    }

    /// A sequence may have this many slots at least.
    pub fn want_slots(&mut self, slots: u32) -> Result<(), EngineError> {
        if self
            .memory
            .grow_slots(&self.model, slots, self.device.as_mut())?
        {
            self.forget_seats();
        }
        Ok(())
    }

    /// Makes the scratch memory and the tables anew.
    pub(super) fn resize(&mut self, seats: u32, rows: u32) -> Result<(), EngineError> {
        self.keep_chains();
        let device = self.device.as_mut();
        self.memory.resize(&self.model, seats, rows, device)?;
        self.seats.resize(seats as usize, Seat::default());
        self.forget_seats();
        self.fit_adapters()?;
        Ok(())
    }

    /// The tables have been made anew, or nobody knows what is in them: whoever steps sits down again.
    pub(super) fn forget_seats(&mut self) {
        self.programs.unload_all(self.device.as_mut());
        self.table = self.memory.table();
        self.seats.fill(Seat::default());
        self.logits_of = None;
        self.step += 1;
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.programs.unload_all(self.device.as_mut());
        self.adapters.release(self.device.as_mut());
        self.memory.release(self.device.as_mut());
    }
}
