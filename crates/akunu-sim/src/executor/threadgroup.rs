//! Runs the threads of one threadgroup to the end.

use super::abi::{
    Arguments, Constant, Entry, FAULTS, MAX_BINDINGS, OPERATIONS, SIMD_WIDTH, Site, Thread,
};
use super::arena::Arena;
use super::count;
use super::delay::{self, Memories, View};
use super::fibre::{Fibre, Pause, Slots, ThreadState};
use super::schedule::Orders;
use super::stack::ThreadStack;
use super::trap::Trap;
use std::ffi::{CStr, c_void};
use std::rc::Rc;

/// A kernel's shape and bindings, the same for all threadgroups of a launch.
pub struct Job<'a> {
    pub entry: Entry,
    pub buffers: [*mut c_void; MAX_BINDINGS],
    /// Device memory that the kernel may write: from each address up to one.
    pub written: Vec<(usize, usize)>,
    /// (index, bytes) of the threadgroup memory that the host sizes.
    pub threadgroup_bytes: &'a [(u32, usize)],
    /// Most bytes of threadgroup memory, of both kinds.
    pub threadgroup_limit: usize,
    pub threads: [u32; 3],
    pub grid: [u32; 3],
    /// In the order of the file's declarations.
    pub constants: &'a [Constant],
}

/// What went wrong in a threadgroup, before it is given names.
pub struct Failure {
    pub threadgroup: [u32; 3],
    /// The thread to blame, by index in its threadgroup; `None` when it is the whole threadgroup.
    pub thread: Option<u32>,
    pub problem: Problem,
}

/// The kinds of failure.
pub enum Problem {
    /// In words, with file and line.
    Said(String),
    /// An access outside every mapping, for the launch to say which binding was missed.
    Trap(Trap),
}

/// What one host thread needs to run threadgroups.
pub struct Worker {
    stacks: Vec<ThreadStack>,
    arena: Box<Arena>,
}

impl Worker {
    pub fn new() -> Self {
        Worker {
            stacks: Vec::new(),
            arena: Box::new(Arena::new()),
        }
    }

    /// Runs one threadgroup.
    ///
    /// # Safety
    /// `job` must hold a kernel of a loaded library and addresses of live bindings, all that its
    /// signature asks for; `slot` is that library's pointer to the current thread.
    pub unsafe fn run(
        &mut self,
        job: &Job<'_>,
        position: [u32; 3],
        orders: &mut Orders,
        slot: *mut *const Thread,
    ) -> Result<(), Failure> {
        let arguments = Arguments {
            buffers: job.buffers,
            threadgroup: self
                .arena
                .reset(job.threadgroup_bytes, job.threadgroup_limit),
        };
        let threads = job.threads.iter().product::<u32>() as usize;
        let mut slots: Vec<Slots> = (0..threads.div_ceil(SIMD_WIDTH))
            .map(|_| Slots::new())
            .collect();
        let memories = orders.delays_stores().then(|| {
            Rc::new(Memories {
                device: job.written.clone(),
                threadgroup: self.arena.addresses(),
            })
        });
        let view = || memories.clone().map(View::new);
        let arena: *mut Arena = &raw mut *self.arena;
        let reports = memories.is_some() || count::is_counting();
        let mut states: Vec<ThreadState> = (0..threads)
            .map(|index| {
                let thread = Thread {
                    reports_accesses: reports.into(),
                    ..thread(job, position, index as u32)
                };
                let slots = &raw mut slots[index / SIMD_WIDTH];
                ThreadState::new(thread, slots, arena, view())
            })
            .collect();
        let mut fibres = Vec::with_capacity(threads);
        for state in &mut states {
            let stack = match self.stacks.pop() {
                Some(stack) => stack,
                None => ThreadStack::new(fibres.len()).map_err(|error| Failure {
                    threadgroup: position,
                    thread: None,
                    problem: Problem::Said(format!("no memory for a thread's stack: {error}")),
                })?,
            };
            // SAFETY: `states` and `arguments` are declared before `fibres` and neither moves nor grows;
            // the entry is a kernel by contract.
            fibres.push(unsafe { Fibre::new(stack, job.entry, &arguments, state) });
        }
        count::with_recorder(|recorder| recorder.begin_threadgroup(self.arena.addresses()));
        let mut run = Run {
            position,
            fibres,
            pauses: vec![Pause::Done; threads],
            states,
            groups: slots.iter().map(|_| view()).collect(),
            orders,
            slot,
        };
        let result = run.finish();
        count::with_recorder(count::Recorder::end_threadgroup);
        self.stacks
            .extend(run.fibres.into_iter().map(Fibre::into_stack));
        let limit = job.threadgroup_limit;
        result.map_err(|failure| self.explain_memory(failure, limit))?;
        self.check_arena(position, limit)
    }

    fn explain_memory(&self, mut failure: Failure, limit: usize) -> Failure {
        if self.arena.used() > limit {
            failure.problem = Problem::Said(format!(
                "{} bytes of threadgroup memory, {limit} are allowed",
                self.arena.used()
            ));
        }
        failure
    }

    fn check_arena(&self, position: [u32; 3], limit: usize) -> Result<(), Failure> {
        if !self.arena.guards_broken() && self.arena.used() <= limit {
            return Ok(());
        }
        let failure = Failure {
            threadgroup: position,
            thread: None,
            problem: Problem::Said("threadgroup memory was written outside its arrays".to_owned()),
        };
        Err(self.explain_memory(failure, limit))
    }
}

fn thread(job: &Job<'_>, threadgroup: [u32; 3], index: u32) -> Thread {
    let [x, y, z] = job.threads;
    let inside = [index % x, index / x % y, index / x / y];
    let count = x * y * z;
    let simdgroup = index / SIMD_WIDTH as u32;
    let lanes = (count - simdgroup * SIMD_WIDTH as u32).min(SIMD_WIDTH as u32);
    Thread {
        position_in_grid: std::array::from_fn(|d| threadgroup[d] * job.threads[d] + inside[d]),
        position_in_threadgroup: inside,
        threadgroup_position: threadgroup,
        threads_per_threadgroup: job.threads,
        threadgroups_per_grid: job.grid,
        index,
        lane: index % SIMD_WIDTH as u32,
        simdgroup,
        simdgroups: count.div_ceil(SIMD_WIDTH as u32),
        active_lanes: u32::MAX >> (SIMD_WIDTH as u32 - lanes),
        reports_accesses: 0,
        constants: job.constants.as_ptr(),
    }
}

/// A threadgroup that is being run.
struct Run<'a> {
    position: [u32; 3],
    fibres: Vec<Fibre>,
    /// Where each thread stopped last.
    pauses: Vec<Pause>,
    states: Vec<ThreadState>,
    /// For each SIMD group, its stores that the others do not see.
    groups: Vec<Option<View>>,
    orders: &'a mut Orders,
    slot: *mut *const Thread,
}

impl Run<'_> {
    fn finish(&mut self) -> Result<(), Failure> {
        let mut groups: Vec<u32> = (0..self.fibres.len().div_ceil(SIMD_WIDTH) as u32).collect();
        loop {
            self.orders.arrange(&mut groups);
            for &group in &groups {
                self.run_simdgroup(group as usize)?;
            }
            let first = self.pauses[0];
            if let Some(other) = self.pauses.iter().position(|pause| *pause != first) {
                return Err(self.diverged(0, other, "threadgroup"));
            }
            match first {
                Pause::Barrier { flags, .. } => self.release(flags),
                _ => {
                    self.release(delay::EVERYTHING);
                    return Ok(());
                }
            }
        }
    }

    /// Runs a SIMD group until all its lanes stand at one barrier or have returned.
    fn run_simdgroup(&mut self, group: usize) -> Result<(), Failure> {
        let start = group * SIMD_WIDTH;
        let end = (start + SIMD_WIDTH).min(self.fibres.len());
        let mut order: Vec<u32> = (start as u32..end as u32).collect();
        self.orders.arrange(&mut order);
        if let Some(view) = &mut self.groups[group] {
            view.put_in();
        }
        loop {
            for &index in &order {
                self.step(index as usize)?;
            }
            let first = self.pauses[start];
            if let Some(other) = (start..end).find(|&index| self.pauses[index] != first) {
                return Err(self.diverged(start, other, "SIMD group"));
            }
            match first {
                Pause::Exchange { .. } => {}
                Pause::SimdgroupBarrier { flags, .. } => {
                    self.release_to_group(group, &order, flags)
                }
                _ => break,
            }
            if !self.orders.is_fixed() {
                self.orders.arrange(&mut order);
            }
        }
        if let Some(view) = &mut self.groups[group] {
            view.take_out();
        }
        Ok(())
    }

    /// All threads see what was stored to the memories of these flags. Stores of several threads to one place race, so that
    /// their order is any.
    fn release(&mut self, flags: u32) {
        for view in self.groups.iter_mut().flatten() {
            view.release(flags);
        }
        let mut order: Vec<u32> = (0..self.states.len() as u32).collect();
        self.orders.arrange(&mut order);
        for index in order {
            if let Some(view) = &mut self.states[index as usize].view {
                view.release(flags);
            }
        }
    }

    /// The lanes of a SIMD group see what they have stored to the memories of these flags.
    fn release_to_group(&mut self, group: usize, lanes: &[u32], flags: u32) {
        let Some(of_group) = &mut self.groups[group] else {
            return;
        };
        for &lane in lanes {
            if let Some(view) = &mut self.states[lane as usize].view {
                view.release_to(of_group, flags);
            }
        }
    }

    /// Runs one thread to its next meeting point.
    fn step(&mut self, index: usize) -> Result<(), Failure> {
        if let Some(view) = &mut self.states[index].view {
            view.put_in();
        }
        let state = &raw mut self.states[index];
        // SAFETY: a thread that has returned is not run again: when one has, either all of its SIMD
        // group have, or the launch has failed. The state and the slot are this fibre's and this library's.
        let pause = unsafe { self.fibres[index].run(state, self.slot) };
        self.pauses[index] = pause;
        if let Some(view) = &mut self.states[index].view {
            view.take_out();
        }
        let problem = match pause {
            Pause::Exchange { .. }
            | Pause::SimdgroupBarrier { .. }
            | Pause::Barrier { .. }
            | Pause::Done => return Ok(()),
            Pause::Check { fault, site } => {
                let what = FAULTS.get(fault as usize).unwrap_or(&"a failed check");
                Problem::Said(format!("{what}, {}", place(site)))
            }
            Pause::ThreadgroupMemory => Problem::Said("out of threadgroup memory".to_owned()),
            Pause::Trap(trap) => Problem::Trap(trap),
        };
        Err(Failure {
            threadgroup: self.position,
            thread: Some(index as u32),
            problem,
        })
    }

    fn diverged(&self, one: usize, other: usize, what: &str) -> Failure {
        Failure {
            threadgroup: self.position,
            thread: Some(other as u32),
            problem: Problem::Said(format!(
                "the threads of a {what} do not meet: thread {one} {}, thread {other} {}",
                describe(self.pauses[one]),
                describe(self.pauses[other]),
            )),
        }
    }
}

fn describe(pause: Pause) -> String {
    match pause {
        Pause::Exchange { operation, site } => {
            let name = OPERATIONS
                .get(operation as usize)
                .unwrap_or(&"SIMD operation");
            format!("waits in a {name}, {}", place(site))
        }
        Pause::SimdgroupBarrier { site, .. } => {
            format!("waits at a simdgroup_barrier, {}", place(site))
        }
        Pause::Barrier { site, .. } => format!("waits at a threadgroup_barrier, {}", place(site)),
        _ => "has returned".to_owned(),
    }
}

fn place(site: Site) -> String {
    if site.file.is_null() {
        return format!("line {}", site.line);
    }
    // SAFETY: the compiled code passes zero-terminated literals of a library that stays loaded.
    let file = unsafe { CStr::from_ptr(site.file) };
    format!("{}:{}", file.to_string_lossy(), site.line)
}
