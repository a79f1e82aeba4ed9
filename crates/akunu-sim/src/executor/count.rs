//! Counts what a kernel does to memory, as a GPU would see it.
//!
//! A library that was compiled for counting reports each load and store ([`access`]). Threads run one after another here;
//! on a GPU the 32 lanes of a SIMD group run an instruction together. So accesses are put together again: those of one
//! instruction, between the same two meeting points, for the same number of times, are one access of the SIMD group. Its
//! cost is
//!
//! * in `device` memory, the lines of 128 bytes that it touches: they come from a cache of the size that an M1 has before its
//!   memory, and from memory where that has them not (any more);
//! * in threadgroup memory, the cycles that 32 banks of 4 bytes need: as many as the bank with the most different words.

use std::cell::Cell;
use std::collections::HashMap;

use super::abi::SIMD_WIDTH;
use super::cache::Cache;

/// What one launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Load instructions of SIMD groups from device memory.
    pub device_loads: u64,
    /// Store instructions of SIMD groups to device memory.
    pub device_stores: u64,
    /// Bytes that lanes asked for in those loads.
    pub bytes_asked: u64,
    /// Bytes that came from memory, in whole lines.
    pub bytes_read: u64,
    /// Bytes that went to memory, in whole lines.
    pub bytes_written: u64,
    /// Accesses of SIMD groups to threadgroup memory.
    pub shared_accesses: u64,
    /// Cycles of the banks for those.
    pub bank_cycles: u64,
    /// Cycles if the words of each were spread over all banks.
    pub least_bank_cycles: u64,
    /// Barriers that threadgroups waited at.
    pub barriers: u64,
    /// Threadgroups.
    pub threadgroups: u64,
    /// Lanes that did not take part in an access of their SIMD group.
    pub idle_lanes: u64,
}

impl Counts {
    /// Bytes that moved between the GPU and its memory.
    pub fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }

    /// Cycles of an access to threadgroup memory for each that it needs at least.
    pub fn conflicts(&self) -> f64 {
        if self.least_bank_cycles == 0 {
            return 1.0;
        }
        self.bank_cycles as f64 / self.least_bank_cycles as f64
    }

    /// The share of lanes that did not take part in the accesses of their SIMD groups.
    pub fn idle_share(&self) -> f64 {
        let accesses = self.device_loads + self.device_stores + self.shared_accesses;
        self.idle_lanes as f64 / (accesses * SIMD_WIDTH as u64).max(1) as f64
    }
}

/// One access of a SIMD group, as far as its lanes have made it.
struct Access {
    /// The address of each lane; 0 for one that takes no part.
    addresses: [usize; SIMD_WIDTH],
    bytes: usize,
    is_store: bool,
    is_shared: bool,
}

/// What makes accesses of several lanes one: the SIMD group, the meetings before it, the instruction, and how often that was
/// run since.
type Place = (u32, u32, usize, u32);

/// Counts the launches of one host thread.
pub struct Recorder {
    /// Device memory: from each address up to one.
    buffers: Vec<(usize, usize)>,
    /// Threadgroup memory.
    shared: (usize, usize),
    /// How often a thread has run an instruction since its last meeting.
    times: HashMap<(u32, usize), (u32, u32)>,
    places: HashMap<Place, usize>,
    accesses: Vec<Access>,
    cache: Cache,
    counts: Counts,
}

impl Recorder {
    /// A recorder for device memory that lies here, behind a cache of this many bytes.
    pub fn new(buffers: Vec<(usize, usize)>, cache_bytes: u64) -> Recorder {
        Recorder {
            buffers,
            shared: (0, 0),
            times: HashMap::new(),
            places: HashMap::new(),
            accesses: Vec::new(),
            cache: Cache::new(cache_bytes),
            counts: Counts::default(),
        }
    }

    /// A threadgroup begins, whose memory lies here.
    pub fn begin_threadgroup(&mut self, shared: (usize, usize)) {
        self.shared = shared;
        self.counts.threadgroups += 1;
    }

    /// A threadgroup has ended: adds what it did.
    pub fn end_threadgroup(&mut self) {
        self.times.clear();
        self.places.clear();
        for access in std::mem::take(&mut self.accesses) {
            self.add(&access);
        }
    }

    /// All counts.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn record(&mut self, at: LaneAt, access: LaneAccess) {
        let within = |range: &(usize, usize)| (range.0..range.1).contains(&access.address);
        let is_shared = within(&self.shared);
        if !is_shared && !self.buffers.iter().any(within) {
            return;
        }
        let times = self.times.entry((at.thread, access.instruction));
        let (meetings, time) = times.or_insert((at.meetings, 0));
        if *meetings != at.meetings {
            (*meetings, *time) = (at.meetings, 0);
        }
        let place = (at.simd_group, at.meetings, access.instruction, *time);
        *time += 1;
        let accesses = &mut self.accesses;
        let index = *self.places.entry(place).or_insert_with(|| {
            accesses.push(Access {
                addresses: [0; SIMD_WIDTH],
                bytes: access.bytes,
                is_store: access.is_store,
                is_shared,
            });
            accesses.len() - 1
        });
        self.accesses[index].addresses[at.lane as usize] = access.address;
    }

    fn add(&mut self, access: &Access) {
        let lanes = access.addresses.iter().filter(|&&address| address != 0);
        let n_lanes = lanes.clone().count() as u64;
        let counts = &mut self.counts;
        counts.idle_lanes += SIMD_WIDTH as u64 - n_lanes;
        if access.is_shared {
            let (cycles, least) = bank_cycles(lanes, access.bytes);
            counts.shared_accesses += 1;
            counts.bank_cycles += cycles;
            counts.least_bank_cycles += least;
            return;
        }
        if access.is_store {
            counts.device_stores += 1;
        } else {
            counts.device_loads += 1;
            counts.bytes_asked += n_lanes * access.bytes as u64;
        }
        let accesses = lanes.map(|&address| address..address + access.bytes);
        self.cache.touch(accesses, access.is_store);
        (counts.bytes_read, counts.bytes_written) = self.cache.traffic();
    }
}

/// Cycles of an access, and the fewest that as many different words need.
fn bank_cycles<'a>(lanes: impl Iterator<Item = &'a usize>, bytes: usize) -> (u64, u64) {
    const BANKS: usize = 32;
    const WORD: usize = 4;
    let mut words: Vec<usize> = lanes
        .flat_map(|address| address / WORD..=(address + bytes - 1) / WORD)
        .collect();
    words.sort_unstable();
    words.dedup();
    let mut banks = [0u64; BANKS];
    for word in &words {
        banks[word % BANKS] += 1;
    }
    let most = banks.into_iter().max().unwrap_or(0);
    (most, words.len().div_ceil(BANKS) as u64)
}

/// Which lane makes an access.
#[derive(Clone, Copy)]
pub struct LaneAt {
    /// Its index in the threadgroup.
    pub thread: u32,
    /// Its SIMD group.
    pub simd_group: u32,
    /// Its index in that.
    pub lane: u32,
    /// How often it has met others.
    pub meetings: u32,
}

/// A load or a store of one lane.
#[derive(Clone, Copy)]
pub struct LaneAccess {
    /// The first byte.
    pub address: usize,
    /// How many.
    pub bytes: usize,
    /// Whether they are written.
    pub is_store: bool,
    /// The address of the instruction.
    pub instruction: usize,
}

thread_local! {
    /// The counter of the launch on this host thread; null if it is not counted.
    static RECORDER: Cell<*mut Recorder> = const { Cell::new(std::ptr::null_mut()) };
}

/// Lets `recorder` count what this host thread runs in `work`.
pub fn recorded<T>(recorder: Option<&mut Recorder>, work: impl FnOnce() -> T) -> T {
    RECORDER.set(recorder.map_or(std::ptr::null_mut(), |recorder| recorder));
    let done = work();
    RECORDER.set(std::ptr::null_mut());
    done
}

/// Calls the counter of this host thread.
pub fn with_recorder(ask: impl FnOnce(&mut Recorder)) {
    // SAFETY: `recorded` sets the pointer while it borrows the recorder, which nothing else on this thread reaches; `ask`
    // runs no kernel, so that there is never a second borrow.
    if let Some(recorder) = unsafe { RECORDER.get().as_mut() } {
        ask(recorder);
    }
}

/// The lane that runs has reached a barrier.
pub fn barrier(lane: LaneAt) {
    if lane.thread == 0 {
        with_recorder(|recorder| recorder.counts.barriers += 1);
    }
}

/// A lane makes an access.
pub fn access(lane: LaneAt, access: LaneAccess) {
    with_recorder(|recorder| recorder.record(lane, access));
}

/// Whether this host thread counts.
pub fn is_counting() -> bool {
    !RECORDER.get().is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(lane: u32, meetings: u32) -> LaneAt {
        LaneAt {
            thread: lane,
            simd_group: 0,
            lane,
            meetings,
        }
    }

    /// Lanes of one threadgroup read 4 bytes each, `stride` bytes apart.
    fn shared(stride: usize) -> Counts {
        let mut recorder = Recorder::new(vec![], 1 << 20);
        recorder.begin_threadgroup((4096, 1 << 20));
        for index in 0..32 {
            let access = LaneAccess {
                address: 4096 + index as usize * stride,
                bytes: 4,
                is_store: false,
                instruction: 7,
            };
            recorder.record(lane(index, 0), access);
        }
        recorder.end_threadgroup();
        recorder.counts()
    }

    /// Breaks when words are spread over other banks than the hardware's, or lanes that read one word count as many.
    #[test]
    fn banks_are_32_words_wide() {
        for (stride, cycles) in [(0, 1), (4, 1), (8, 2), (128, 32), (132, 1), (64, 16)] {
            let counts = shared(stride);
            assert_eq!(counts.shared_accesses, 1, "{stride}");
            assert_eq!(counts.bank_cycles, cycles, "{stride}");
            assert_eq!(counts.least_bank_cycles, 1, "{stride}");
        }
    }

    /// Breaks when the accesses of different rounds of a loop, or before and after a barrier, become one.
    #[test]
    fn an_access_is_an_instruction_of_a_simd_group() {
        let mut recorder = Recorder::new(vec![(4096, 8192)], 1 << 20);
        recorder.begin_threadgroup((0, 0));
        let read = |address| LaneAccess {
            address,
            bytes: 16,
            is_store: false,
            instruction: 7,
        };
        // Lane 1 runs the loop once, lane 0 twice; then they meet.
        recorder.record(lane(0, 0), read(4096));
        recorder.record(lane(0, 0), read(4096 + 512));
        recorder.record(lane(1, 0), read(4096 + 16));
        for index in 0..2 {
            recorder.record(lane(index, 1), read(4096 + 1024 + 16 * index as usize));
        }
        recorder.end_threadgroup();
        let counts = recorder.counts();
        assert_eq!(counts.device_loads, 3);
        assert_eq!(counts.bytes_asked, 5 * 16);
        assert_eq!(counts.bytes_read, 3 * 128);
        assert_eq!(counts.idle_lanes, 30 + 31 + 30);
    }
}
