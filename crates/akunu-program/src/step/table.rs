//! The host's copy of the row table and the page tables, and the proof that a step stays within them.

use std::ops::Range;

use akunu_types::params::Row;

use super::error::RowError;
use super::room::Room;
use super::states::States;
use super::tree;
use super::{Counts, PageMap, SequenceSlots, StepMemory};
use crate::buffer::Slice;

/// Stands where a sequence has no page.
const NO_PAGE: u32 = u32::MAX;

/// The pages of all sequences, for one kind of layers.
struct Tables {
    map: PageMap,
    /// (n_sequences, table_stride).
    pages: Vec<u32>,
    /// How many places of the table have each page.
    owners: Vec<u32>,
    /// Places that have not been uploaded to the device.
    changed: Vec<usize>,
}

/// The rows of the next step and the pages of all sequences.
pub struct RowTable {
    memory: StepMemory,
    tables: Vec<Tables>,
    states: States,
    rows: Vec<Row>,
    tokens: Vec<u32>,
    outputs: Vec<u32>,
    n_singles: u32,
    /// Whether the device has other rows than these.
    is_changed: bool,
    /// The step in which each sequence was last seen, for the check.
    seen: Vec<u64>,
    n_checks: u64,
}

/// A step that was checked: all that a device needs to run it, and the only thing it runs.
pub struct Checked<'a> {
    table: &'a RowTable,
    steps: u32,
    /// Whether the pages of the rows were looked at.
    has_pages: bool,
    /// Whether the texts of the rows were looked at.
    has_texts: bool,
    /// The slots of a sequence that were looked at instead, for a program that moves them.
    slots: Option<SequenceSlots>,
}

impl RowTable {
    /// A table over these buffers, without rows and pages.
    pub fn new(memory: StepMemory, maps: &[PageMap]) -> RowTable {
        let tables = maps.iter().map(|&map| Tables {
            map,
            pages: vec![NO_PAGE; (map.n_sequences * map.table_stride) as usize],
            owners: vec![0; map.n_pages as usize],
            changed: Vec::new(),
        });
        RowTable {
            memory,
            tables: tables.collect(),
            states: States::default(),
            rows: Vec::with_capacity(memory.row_capacity as usize),
            tokens: Vec::with_capacity(memory.row_capacity as usize),
            outputs: Vec::with_capacity(memory.row_capacity as usize),
            n_singles: 0,
            is_changed: true,
            seen: vec![0; memory.n_sequences as usize],
            n_checks: 0,
        }
    }

    /// The same with so many blocks of states.
    pub fn with_states(self, n_blocks: u32) -> RowTable {
        let states = States::new(n_blocks);
        RowTable { states, ..self }
    }

    /// The buffers that the table is uploaded to.
    pub fn memory(&self) -> &StepMemory {
        &self.memory
    }

    /// Where the pages of each kind of layers are found.
    pub fn maps(&self) -> Vec<PageMap> {
        self.tables.iter().map(|tables| tables.map).collect()
    }

    /// Gives a page to a sequence, or takes it away: the pages are those of the kind `map`.
    pub fn set_page(&mut self, map: usize, sequence: u32, index: u32, page: Option<u32>) {
        let tables = &mut self.tables[map];
        if index >= tables.map.table_stride || sequence >= tables.map.n_sequences {
            // There is no such place: whoever uses it is refused by the check.
            return;
        }
        let at = (sequence * tables.map.table_stride + index) as usize;
        let page = page.unwrap_or(NO_PAGE);
        let before = std::mem::replace(&mut tables.pages[at], page);
        if let Some(owners) = tables.owners.get_mut(before as usize) {
            *owners -= 1;
        }
        if let Some(owners) = tables.owners.get_mut(page as usize) {
            *owners += 1;
        }
        // Nobody looks at a place without a page.
        if page != NO_PAGE {
            tables.changed.push(at);
        }
    }

    /// The page of a sequence.
    pub fn page(&self, map: usize, sequence: u32, index: u32) -> Option<u32> {
        let tables = &self.tables[map];
        let at = (sequence * tables.map.table_stride + index) as usize;
        tables
            .pages
            .get(at)
            .copied()
            .filter(|&page| page != NO_PAGE)
    }

    /// Begins another step: no rows.
    pub fn clear_rows(&mut self) {
        self.rows.clear();
        self.tokens.clear();
        self.outputs.clear();
        self.n_singles = 0;
        self.is_changed = true;
    }

    /// Adds the next token of a sequence, which wants its logits. Singles come before the run.
    pub fn push_single(&mut self, row: Row, token: u32) {
        self.outputs.push(self.rows.len() as u32);
        self.push_run(row, token);
        self.n_singles = self.rows.len() as u32;
    }

    /// Adds a token of a sequence that is followed by further ones of the same sequence, and whose logits are not needed.
    pub fn push_silent(&mut self, row: Row, token: u32) {
        self.push_run(row, token);
        self.n_singles = self.rows.len() as u32;
    }

    /// Adds a token of the run.
    pub fn push_run(&mut self, row: Row, token: u32) {
        self.rows.push(row);
        self.tokens.push(token);
        self.is_changed = true;
    }

    /// Wants the logits of a row.
    pub fn push_output(&mut self, row: u32) {
        self.outputs.push(row);
        self.is_changed = true;
    }

    /// Wants the logits of these rows, and of no others.
    pub fn set_outputs(&mut self, rows: impl IntoIterator<Item = u32>) {
        self.outputs.clear();
        self.outputs.extend(rows);
        self.is_changed = true;
    }

    /// The rows of the step.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// How many rows the step has.
    pub fn counts(&self) -> Counts {
        Counts {
            singles: self.n_singles,
            run: self.rows.len() as u32 - self.n_singles,
            outputs: self.outputs.len() as u32,
        }
    }

    /// Proves that `steps` rounds of these rows, each one further on than the one before, stay within their pages, and
    /// write to no page that another sequence has.
    pub fn check(&mut self, steps: u32) -> Result<Checked<'_>, RowError> {
        self.check_counts(steps)?;
        let windows = self.tables.iter().filter_map(|tables| tables.map.window);
        tree::Trees {
            singles: &self.rows[..self.n_singles as usize],
            run: &self.rows[self.n_singles as usize..],
            steps,
            window: windows.min(),
        }
        .check()?;
        self.states.check(&self.rows)?;
        self.check_ahead()?;
        let mut last: Option<Row> = None;
        for row in self.rows.iter().filter(|row| row.is_active()) {
            // Of rows that follow each other, what is seen was looked at with the first; only what is written is new.
            let is_next = last.is_some_and(|last| {
                last.sequence == row.sequence
                    && last.slot.checked_add(1) == Some(row.slot)
                    && last.length <= row.length
            });
            for tables in &self.tables {
                tables.check(row, steps, is_next)?;
            }
            last = Some(*row);
        }
        Ok(Checked {
            table: self,
            steps,
            has_pages: true,
            has_texts: false,
            slots: None,
        })
    }

    /// The same for a program that reads no keys and values.
    pub fn check_outputs(&mut self) -> Result<Checked<'_>, RowError> {
        self.check_counts(1)?;
        Ok(Checked {
            table: self,
            steps: 1,
            has_pages: false,
            has_texts: false,
            slots: None,
        })
    }

    /// Proves that the rows are whole texts, one after the other: for a program whose rows attend to all others of their
    /// text, and at no pages.
    pub fn check_texts(&mut self) -> Result<Checked<'_>, RowError> {
        self.check_counts(1)?;
        let mut rest = &self.rows[..];
        while let Some(&first) = rest.first() {
            let at = (self.rows.len() - rest.len()) as u32;
            let length = first.length as usize;
            let Some((text, after)) = rest.split_at_checked(length).filter(|_| length > 0) else {
                return Err(RowError::Text { row: at });
            };
            let is_number = |(row, position): (&Row, u32)| {
                let whole = (row.sequence, row.length) == (first.sequence, first.length);
                row.is_active() && whole && row.position == position
            };
            if let Some(wrong) = text.iter().zip(0..).position(|row| !is_number(row)) {
                let row = at + wrong as u32;
                return Err(RowError::Text { row });
            }
            rest = after;
        }
        Ok(Checked {
            table: self,
            steps: 1,
            has_pages: false,
            has_texts: true,
            slots: None,
        })
    }

    fn check_counts(&mut self, steps: u32) -> Result<(), RowError> {
        let (counts, room) = (self.counts(), self.memory.row_capacity);
        let limits = [
            ("rows", counts.rows(), room),
            ("outputs", counts.outputs, room),
            ("rounds", steps, self.memory.max_steps),
        ];
        for (what, found, room) in limits {
            if found > room {
                return Err(RowError::Room { what, found, room });
            }
        }
        let rows = counts.rows();
        if let Some(&row) = self.outputs.iter().find(|&&row| row >= rows) {
            return Err(RowError::Output { row, rows });
        }
        self.check_order(steps)
    }

    /// Proves that these slots of a sequence are there and its own, for a program that moves them.
    pub fn check_sequence(
        &mut self,
        sequence: u32,
        slots: Range<u32>,
    ) -> Result<Checked<'_>, RowError> {
        let n_sequences = self.memory.n_sequences;
        if sequence >= n_sequences {
            let row = 0;
            return Err(RowError::Sequence {
                row,
                sequence,
                n_sequences,
            });
        }
        for tables in &self.tables {
            let first = tables.map.page_of(slots.start) << tables.map.page_shift;
            for slot in (first..slots.end).step_by(1 << tables.map.page_shift) {
                tables.check_written(sequence, slot)?;
            }
        }
        self.clear_rows();
        Ok(Checked {
            table: self,
            steps: 1,
            has_pages: false,
            has_texts: false,
            slots: Some(SequenceSlots { sequence, slots }),
        })
    }

    /// Every sequence has one row, or rows in ascending slots one after another. In several rounds only the run may have
    /// those: singles move on, and would write where the next one of their sequence has written.
    fn check_order(&mut self, steps: u32) -> Result<(), RowError> {
        self.n_checks += 1;
        let mut last: Option<Row> = None;
        for (at, row) in self.rows.iter().enumerate() {
            let (sequence, at) = (row.sequence, at as u32);
            let Some(seen) = self.seen.get_mut(sequence as usize) else {
                let n_sequences = self.memory.n_sequences;
                return Err(RowError::Sequence {
                    row: at,
                    sequence,
                    n_sequences,
                });
            };
            if !row.is_active() {
                continue;
            }
            let was_seen = std::mem::replace(seen, self.n_checks) == self.n_checks;
            let may_continue = at > self.n_singles || (at < self.n_singles && steps <= 1);
            let continues = may_continue
                && last.is_some_and(|last| last.sequence == sequence && last.slot < row.slot);
            if was_seen && !continues {
                return Err(RowError::Order { row: at, sequence });
            }
            last = Some(*row);
        }
        Ok(())
    }

    /// Proves that what a row of an image sees behind its own slot is stored in this step: the rows of the run up to there follow
    /// it.
    fn check_ahead(&self) -> Result<(), RowError> {
        let run = self.rows.get(self.n_singles as usize..).unwrap_or_default();
        let last = run.iter().rev().find(|row| row.is_active());
        for (row, ahead) in (0..).zip(&self.rows).filter(|(_, row)| row.is_of_image()) {
            let end = ahead.slot.saturating_add(1);
            let stored =
                last.filter(|last| row >= self.n_singles && last.sequence == ahead.sequence);
            let stored = stored.map_or(end, |last| last.slot.saturating_add(1));
            if ahead.length > stored.max(end) {
                return Err(RowError::Ahead {
                    row,
                    sequence: ahead.sequence,
                    slot: ahead.length - 1,
                });
            }
        }
        Ok(())
    }

    /// Takes note that a checked step was submitted: the device knows these rows, and has moved the singles on if its
    /// program does so.
    pub fn submitted(&mut self, steps: u32, is_advanced: bool) {
        self.is_changed = false;
        for tables in &mut self.tables {
            tables.changed.clear();
        }
        if !is_advanced {
            return;
        }
        let singles = &mut self.rows[..self.n_singles as usize];
        for row in singles.iter_mut().filter(|row| row.is_active()) {
            row.advance(steps);
        }
    }

    /// Marks the device's copy as unknown, so that everything is uploaded again.
    pub fn distrust(&mut self) {
        self.is_changed = true;
        for tables in &mut self.tables {
            let places = tables.pages.iter().enumerate();
            let set = places.filter(|(_, page)| **page != NO_PAGE);
            tables.changed = set.map(|(at, _)| at).collect();
        }
    }
}

impl Tables {
    /// Whether all pages are there that a row sees or writes to in `steps` rounds.
    fn check(&self, row: &Row, steps: u32, is_next: bool) -> Result<(), RowError> {
        let map = &self.map;
        let rounds = u64::from(steps.max(1));
        let (slot, length) = (u64::from(row.slot), u64::from(row.length));
        let end = length.max(slot + 1) + rounds - 1;
        if end > map.capacity() {
            return Err(RowError::Beyond {
                sequence: row.sequence,
                slot: end - 1,
                capacity: map.capacity(),
            });
        }
        let n_before = length.min(slot + 1) - u64::from(row.hidden.count_ones());
        let window = map.window.map_or(n_before, u64::from);
        let begin = n_before.saturating_sub(window);
        let first = if is_next { slot } else { begin.min(slot) };
        // Within the capacity there are no more pages than a sequence's table has.
        let pages = |first: u64, last: u64| {
            (first >> map.page_shift) as u32..=(last >> map.page_shift) as u32
        };
        for index in pages(first, end - 1) {
            self.check_page(row.sequence, index)?;
        }
        for index in pages(slot, slot + rounds - 1) {
            self.check_owned(row.sequence, index)?;
        }
        Ok(())
    }

    fn check_page(&self, sequence: u32, index: u32) -> Result<u32, RowError> {
        let (map, page) = (
            &self.map,
            self.pages[(sequence * self.map.table_stride + index) as usize],
        );
        let n_pages = map.n_pages;
        match page {
            NO_PAGE => Err(RowError::Missing {
                sequence,
                slot: u64::from(index) << map.page_shift,
            }),
            page if page >= n_pages => Err(RowError::Page {
                sequence,
                page,
                n_pages,
            }),
            page => Ok(page),
        }
    }

    fn check_written(&self, sequence: u32, slot: u32) -> Result<(), RowError> {
        let index = self.map.page_of(slot);
        if index >= self.map.table_stride {
            return Err(RowError::Beyond {
                sequence,
                slot: slot.into(),
                capacity: self.map.capacity(),
            });
        }
        self.check_owned(sequence, index)
    }

    fn check_owned(&self, sequence: u32, index: u32) -> Result<(), RowError> {
        let page = self.check_page(sequence, index)?;
        match self.owners[page as usize] {
            1 => Ok(()),
            owners => Err(RowError::Shared {
                sequence,
                page,
                owners,
            }),
        }
    }
}

impl Checked<'_> {
    /// The buffers that it lies in.
    pub fn memory(&self) -> &StepMemory {
        &self.table.memory
    }

    /// How many rows it has.
    pub fn counts(&self) -> Counts {
        self.table.counts()
    }

    /// Proves that every single is the only row of its sequence. Those that are not follow each other, as was checked.
    pub(super) fn have_own_sequences(&self) -> Result<(), RowError> {
        let singles = &self.table.rows[..self.table.n_singles as usize];
        let mut last = None;
        for (row, single) in (0..).zip(singles).filter(|(_, row)| row.is_active()) {
            let sequence = single.sequence;
            if last.replace(sequence) == Some(sequence) {
                return Err(RowError::NotAlone { row, sequence });
            }
        }
        Ok(())
    }

    /// Whether it was checked for a plan that reads these pages or texts and moves these slots.
    pub(super) fn covers(&self, room: &Room) -> bool {
        let pages = &room.pages;
        let knows = |map: &PageMap| self.table.tables.iter().any(|tables| tables.map == *map);
        let is_checked = match (&room.moved, &self.slots) {
            (None, _) => pages.is_empty() || self.has_pages,
            (Some(moved), Some(checked)) => {
                moved.sequence == checked.sequence
                    && checked.slots.start <= moved.slots.start
                    && moved.slots.end <= checked.slots.end
            }
            (Some(_), None) => false,
        };
        let texts_checked = self.has_texts || !room.reads_texts;
        let n_blocks = self.table.states.n_blocks();
        let states_checked = (room.states).is_none_or(|n| self.has_pages && n == n_blocks);
        is_checked && texts_checked && states_checked && pages.iter().all(knows)
    }

    /// How often the program runs.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// What has changed since the last step and must be written to the device: pages, and rows unless the device has
    /// advanced them itself.
    pub fn uploads(&self) -> impl Iterator<Item = (Slice, &[u8])> {
        let pages = self.table.tables.iter().flat_map(|tables| {
            let neighbours = tables.changed.chunk_by(|at, next| at + 1 == *next);
            neighbours.map(|places| {
                let to = Slice {
                    buffer: tables.map.table,
                    offset: 4 * places[0],
                };
                let pages = &tables.pages[places[0]..][..places.len()];
                (to, bytemuck::cast_slice(pages))
            })
        });
        let memory = &self.table.memory;
        let lists: [(Slice, &[u8]); 3] = [
            (memory.rows.into(), bytemuck::cast_slice(&self.table.rows)),
            (
                memory.tokens.into(),
                bytemuck::cast_slice(&self.table.tokens),
            ),
            (
                memory.outputs.into(),
                bytemuck::cast_slice(&self.table.outputs),
            ),
        ];
        let is_changed = self.table.is_changed;
        let lists = lists.into_iter();
        pages.chain(lists.filter(move |(_, bytes)| is_changed && !bytes.is_empty()))
    }
}
