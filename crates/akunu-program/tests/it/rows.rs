//! The row table: what it refuses to submit, and what it tells the device.

use akunu_program::{
    AlignedBytes, Buffer, Counts, HostBuffers, PageMap, Room, RowError, RowTable, SequenceSlots,
    StepMemory,
};
use akunu_types::params::{Row, SamplingRule};

type Buffers = HostBuffers<AlignedBytes>;

const ROW_CAPACITY: u32 = 8;
const N_SEQUENCES: u32 = 3;
const MAX_STEPS: u32 = 4;
/// Pages of 4 slots, 4 of them for a sequence.
const PAGE_SHIFT: u32 = 2;
const TABLE_STRIDE: u32 = 4;
const CAPACITY: u64 = 16;
const N_PAGES: u32 = 8;

fn memory(buffers: &mut Buffers) -> StepMemory {
    let mut allocate = |n: u32, bytes: usize| buffers.add(AlignedBytes::zeroed(n as usize * bytes));
    StepMemory {
        rows: allocate(ROW_CAPACITY, size_of::<Row>()),
        tokens: allocate(ROW_CAPACITY, 4),
        outputs: allocate(ROW_CAPACITY, 4),
        rules: allocate(N_SEQUENCES, size_of::<SamplingRule>()),
        history: allocate(N_SEQUENCES, 4),
        chosen: allocate(MAX_STEPS * ROW_CAPACITY, 4),
        row_capacity: ROW_CAPACITY,
        n_sequences: N_SEQUENCES,
        history_stride: 1,
        max_steps: MAX_STEPS,
    }
}

fn page_map(buffers: &mut Buffers, window: Option<u32>) -> PageMap {
    let bytes = 4 * (N_SEQUENCES * TABLE_STRIDE) as usize;
    PageMap {
        table: buffers.add(AlignedBytes::zeroed(bytes)),
        table_stride: TABLE_STRIDE,
        page_shift: PAGE_SHIFT,
        n_pages: N_PAGES,
        n_sequences: N_SEQUENCES,
        window,
    }
}

/// A table of layers with this window. Sequence s has page p in place i for each `(s, i, p)`.
fn table_with(window: Option<u32>, pages: &[(u32, u32, u32)]) -> RowTable {
    let mut buffers = Buffers::default();
    let map = page_map(&mut buffers, window);
    let mut table = RowTable::new(memory(&mut buffers), &[map]);
    for &(sequence, index, page) in pages {
        table.set_page(0, sequence, index, Some(page));
    }
    table
}

fn table(pages: &[(u32, u32, u32)]) -> RowTable {
    table_with(None, pages)
}

/// What is said of a step of this single.
fn single(table: &mut RowTable, row: Row, steps: u32) -> Result<(), RowError> {
    singles(table, &[row], steps)
}

fn singles(table: &mut RowTable, rows: &[Row], steps: u32) -> Result<(), RowError> {
    table.clear_rows();
    for &row in rows {
        table.push_single(row, 0);
    }
    table.check(steps).map(|_| ())
}

/// What is said of a step of some singles and a run.
fn run(table: &mut RowTable, before: &[Row], rows: &[Row]) -> Result<(), RowError> {
    table.clear_rows();
    for &row in before {
        table.push_single(row, 0);
    }
    for &row in rows {
        table.push_run(row, 0);
    }
    table.check(1).map(|_| ())
}

#[test]
fn a_page_outside_of_the_pool_is_refused() {
    let refused = |page| single(&mut table(&[(0, 0, page)]), Row::at(0, 1), 1);
    assert_eq!(refused(N_PAGES - 1), Ok(()));
    for page in [N_PAGES, u32::MAX - 1] {
        let (sequence, n_pages) = (0, N_PAGES);
        assert_eq!(
            refused(page),
            Err(RowError::Page {
                sequence,
                page,
                n_pages
            })
        );
    }
    // Page 1 is the row's own, but it sees the other one.
    let refused = single(&mut table(&[(0, 0, 9), (0, 1, 1)]), Row::at(0, 4), 1);
    assert!(
        matches!(refused, Err(RowError::Page { page: 9, .. })),
        "{refused:?}"
    );
}

/// What is said of a step of these rows of sequence 0, which are a tree.
fn tree(window: Option<u32>, rows: &[Row]) -> Result<(), RowError> {
    let pages = [(0, 0, 3), (0, 1, 4), (0, 2, 5), (0, 3, 6)];
    singles(&mut table_with(window, &pages), rows, 1)
}

/// Slots 4 to 8: `a b c`, and the branch `d e` after `a`.
const TREE: [Row; 5] = [
    Row::at(0, 4),
    Row::at(0, 5),
    Row::at(0, 6),
    Row::in_tree(0, 7, 0b110),
    Row::in_tree(0, 8, 0b1100),
];

fn with(at: usize, row: Row) -> [Row; 5] {
    let mut rows = TREE;
    rows[at] = row;
    rows
}

/// Fails when a row could see what is not of its branch, or turn by a position that is not its own.
#[test]
fn a_tree_that_is_none_is_refused() {
    assert_eq!(tree(None, &TREE), Ok(()));
    // A second branch of the branch, and one that begins before the first row.
    let more = [
        Row::in_tree(0, 9, 0b1_1010),
        Row::in_tree(0, 10, 0b111_1110),
    ];
    assert_eq!(tree(None, &[&TREE[..], &more].concat()), Ok(()));
    let bad = [
        // e sees d, but c too, which d does not see.
        (4, Row::in_tree(0, 8, 0b1000), "its parent"),
        // e hides a, which is before its parent.
        (4, Row::in_tree(0, 8, 0b1_1100), "its parent"),
        // A row without a mask sees the branch beside it.
        (4, Row::at(0, 8), "its parent"),
        // Slot 3 was there before the step.
        (3, Row::in_tree(0, 7, 0b1_0110), "no row before it"),
        // Its own slot, and one that is none.
        (3, Row::in_tree(0, 7, 0b111), "no row before it"),
        (3, Row::in_tree(0, 7, 1 << 31), "no row before it"),
        // RoPE would turn it to where it is stored.
        (
            3,
            Row {
                position: 7,
                ..TREE[3]
            },
            "position",
        ),
        (
            3,
            Row {
                length: 7,
                ..TREE[3]
            },
            "own slot",
        ),
    ];
    for (at, row, wanted) in bad {
        match tree(None, &with(at, row)) {
            Err(RowError::Tree { why, .. }) => assert!(why.contains(wanted), "{row:?}: {why}"),
            other => panic!("{row:?}: {other:?}"),
        }
    }
}

/// Fails when a child may come before its parent, or when two rows share a slot.
#[test]
fn rows_of_a_tree_come_in_ascending_slots() {
    let order = |row| Err(RowError::Order { row, sequence: 0 });
    let mut rows = TREE;
    rows.swap(3, 4);
    assert_eq!(tree(None, &rows), order(4));
    // d in the slot of c.
    assert_eq!(tree(None, &with(3, Row::in_tree(0, 6, 0b10))), order(3));
}

/// Fails when a window loses keys to a branch that it does not show, or when rows of a tree move on.
#[test]
fn a_tree_fits_its_windows_and_has_one_round() {
    assert_eq!(tree(Some(3), &TREE), Ok(()));
    assert!(matches!(
        tree(Some(1), &TREE),
        Err(RowError::Tree { row: 4, .. })
    ));
    let pages = [(0, 0, 3), (0, 1, 4), (0, 2, 5), (0, 3, 6)];
    let mut table = table(&pages);
    let refused = run(&mut table, &[], &TREE);
    assert!(
        matches!(refused, Err(RowError::Tree { row: 3, .. })),
        "{refused:?}"
    );
    // Several rows of one sequence never move on.
    let refused = singles(&mut table, &TREE, 2);
    assert!(
        matches!(refused, Err(RowError::Order { .. })),
        "{refused:?}"
    );
    let alone = singles(&mut table, &[Row::in_tree(0, 7, 0b10)], 2);
    assert!(
        matches!(alone, Err(RowError::Tree { row: 0, .. })),
        "{alone:?}"
    );
}

#[test]
fn a_slot_without_a_page_is_refused() {
    let missing = |sequence, slot| Err(RowError::Missing { sequence, slot });
    let mut table = table(&[(1, 0, 3), (2, 1, 4)]);
    assert_eq!(single(&mut table, Row::at(1, 3), 1), Ok(()));
    assert_eq!(single(&mut table, Row::at(1, 4), 1), missing(1, 4));
    assert_eq!(
        single(&mut table, Row::at(1, 3), 2),
        missing(1, 4),
        "in the second round"
    );
    assert_eq!(
        single(&mut table, Row::at(2, 4), 1),
        missing(2, 0),
        "it sees slot 0"
    );
    assert_eq!(single(&mut table, Row::at(0, 0), 1), missing(0, 0));
    let longer = Row {
        length: 5,
        ..Row::at(1, 0)
    };
    assert_eq!(
        single(&mut table, longer, 1),
        missing(1, 4),
        "it sees more than itself"
    );
    let others = [Row::at(1, 0), Row::at(2, 4)];
    assert_eq!(
        singles(&mut table, &others, 1),
        missing(2, 0),
        "not the first row"
    );
    let idle = Row {
        flags: 0,
        ..Row::at(0, 9)
    };
    assert_eq!(
        single(&mut table, idle, 1),
        Ok(()),
        "an idle row looks at nothing"
    );
}

/// A window needs only the pages that it reaches.
#[test]
fn what_a_window_does_not_reach_needs_no_page() {
    let mut table = table_with(Some(4), &[(0, 1, 3), (0, 2, 4)]);
    assert_eq!(single(&mut table, Row::at(0, 7), 1), Ok(()));
    let missing = RowError::Missing {
        sequence: 0,
        slot: 0,
    };
    assert_eq!(single(&mut table, Row::at(0, 6), 1), Err(missing));
    assert_eq!(single(&mut table, Row::at(0, 8), 4), Ok(()));
    table.set_page(0, 0, 1, None);
    let missing = RowError::Missing {
        sequence: 0,
        slot: 4,
    };
    assert_eq!(single(&mut table, Row::at(0, 8), 1), Err(missing));
    assert_eq!(single(&mut table, Row::at(0, 11), 1), Ok(()));
}

/// Of a run that leaves slots out, every row sees those between.
#[test]
fn a_run_with_a_gap_sees_what_lies_in_it() {
    let missing = |slot| Err(RowError::Missing { sequence: 0, slot });
    let mut table = table(&[(0, 0, 0), (0, 2, 2)]);
    assert_eq!(
        run(&mut table, &[], &[Row::at(0, 0), Row::at(0, 8)]),
        missing(4)
    );
    table.set_page(0, 0, 1, Some(1));
    assert_eq!(
        run(&mut table, &[], &[Row::at(0, 0), Row::at(0, 8)]),
        Ok(())
    );
    // A later row that sees less than the first one, but from further back.
    let mut table = table_with(Some(4), &[(0, 1, 1), (0, 2, 2)]);
    let back = Row {
        length: 1,
        ..Row::at(0, 9)
    };
    assert_eq!(run(&mut table, &[], &[Row::at(0, 8), back]), missing(0));
}

#[test]
fn a_slot_beyond_the_capacity_is_refused() {
    let pages: Vec<_> = (0..TABLE_STRIDE).map(|index| (0, index, index)).collect();
    let mut table = table(&pages);
    let beyond = |slot| {
        let (sequence, capacity) = (0, CAPACITY);
        Err(RowError::Beyond {
            sequence,
            slot,
            capacity,
        })
    };
    assert_eq!(single(&mut table, Row::at(0, 15), 1), Ok(()));
    assert_eq!(single(&mut table, Row::at(0, 16), 1), beyond(16));
    assert_eq!(single(&mut table, Row::at(0, 14), 2), Ok(()));
    assert_eq!(
        single(&mut table, Row::at(0, 14), 3),
        beyond(16),
        "in the last round"
    );
    let far = Row {
        slot: u32::MAX,
        ..Row::at(0, 1)
    };
    assert_eq!(single(&mut table, far, 1), beyond(u32::MAX.into()));
    assert_eq!(single(&mut table, far, 2), beyond(1 << 32));
    let long = Row {
        length: u32::MAX,
        ..Row::at(0, 1)
    };
    assert_eq!(single(&mut table, long, 3), beyond(1 << 32));
    let rows: Vec<Row> = (12..17).map(|slot| Row::at(0, slot)).collect();
    assert_eq!(run(&mut table, &[], &rows), beyond(16), "the last of a run");
}

#[test]
fn a_page_with_two_owners_is_read_and_never_written() {
    let shared = |sequence, page| {
        let owners = 2;
        Err(RowError::Shared {
            sequence,
            page,
            owners,
        })
    };
    // Both begin with page 5; what follows is their own.
    let mut table = table(&[(0, 0, 5), (1, 0, 5), (0, 1, 6), (1, 1, 7)]);
    assert_eq!(single(&mut table, Row::at(0, 3), 1), shared(0, 5));
    let both = [Row::at(0, 4), Row::at(1, 4)];
    assert_eq!(singles(&mut table, &both, 4), Ok(()), "they only read it");
    let from = |first| [first, first + 1].map(|slot| Row::at(1, slot));
    assert_eq!(run(&mut table, &[], &from(3)), shared(1, 5));
    assert_eq!(run(&mut table, &[Row::at(0, 4)], &from(4)), Ok(()));
    table.set_page(0, 0, 0, None);
    assert_eq!(
        single(&mut table, Row::at(1, 3), 1),
        Ok(()),
        "one owner is left"
    );
    // A later round comes to a page that another sequence has.
    table.set_page(0, 2, 3, Some(7));
    assert_eq!(single(&mut table, Row::at(1, 3), 1), Ok(()));
    assert_eq!(single(&mut table, Row::at(1, 3), 2), shared(1, 7));
    // A page twice in one sequence: two slots would be one.
    table.set_page(0, 2, 0, Some(1));
    table.set_page(0, 2, 1, Some(1));
    assert_eq!(single(&mut table, Row::at(2, 1), 1), shared(2, 1));
}

#[test]
fn a_sequence_that_does_not_exist_is_refused() {
    let mut table = table(&[(0, 0, 0)]);
    let idle = Row {
        flags: 0,
        ..Row::at(N_SEQUENCES, 0)
    };
    for row in [Row::at(N_SEQUENCES, 0), Row::at(u32::MAX, 0), idle] {
        let refused = RowError::Sequence {
            row: 1,
            sequence: row.sequence,
            n_sequences: N_SEQUENCES,
        };
        assert_eq!(singles(&mut table, &[Row::at(0, 0), row], 1), Err(refused));
    }
}

#[test]
fn two_rows_for_one_slot_and_rows_out_of_order_are_refused() {
    let mut table = table(&[(0, 0, 0), (1, 0, 1), (2, 0, 2)]);
    let order = |row, sequence| Err(RowError::Order { row, sequence });
    let at = Row::at;
    assert_eq!(singles(&mut table, &[at(0, 0), at(0, 0)], 1), order(1, 0));
    assert_eq!(
        singles(&mut table, &[at(0, 0), at(0, 1)], 2),
        order(1, 0),
        "they move on together"
    );
    assert_eq!(
        singles(&mut table, &[at(0, 0), at(0, 1), at(1, 0)], 1),
        Ok(()),
        "in one round a sequence may have several rows"
    );
    assert_eq!(
        singles(&mut table, &[at(0, 0), at(1, 0), at(0, 1)], 1),
        order(2, 0),
        "but nobody else between them"
    );
    assert_eq!(run(&mut table, &[], &[at(0, 1), at(0, 1)]), order(1, 0));
    assert_eq!(
        run(&mut table, &[], &[at(0, 1), at(0, 2), at(0, 0)]),
        order(2, 0)
    );
    assert_eq!(
        run(&mut table, &[at(1, 0)], &[at(1, 1), at(1, 2)]),
        order(1, 1),
        "of a single"
    );
    assert_eq!(
        run(&mut table, &[], &[at(0, 0), at(1, 0), at(0, 1)]),
        order(2, 0)
    );
    assert_eq!(
        run(
            &mut table,
            &[at(1, 0), at(2, 0)],
            &[at(0, 0), at(0, 1), at(0, 3)]
        ),
        Ok(())
    );
    // The check of one step says nothing about the next.
    assert_eq!(single(&mut table, at(1, 0), 1), Ok(()));
    assert_eq!(single(&mut table, at(1, 0), 1), Ok(()));
    let idle = Row {
        flags: 0,
        ..at(1, 0)
    };
    assert_eq!(singles(&mut table, &[at(1, 0), idle], 1), Ok(()));
}

#[test]
fn outputs_that_do_not_exist_are_refused() {
    let mut table = table(&[(0, 0, 0)]);
    table.push_run(Row::at(0, 0), 0);
    table.push_run(Row::at(0, 1), 0);
    table.push_output(1);
    assert!(table.check(1).is_ok());
    table.push_output(2);
    let refused = RowError::Output { row: 2, rows: 2 };
    assert_eq!(table.check(1).map(|_| ()), Err(refused));
    assert_eq!(table.check_outputs().map(|_| ()), Err(refused));
}

#[test]
fn too_many_rows_outputs_and_rounds_are_refused() {
    let mut table = table(&[(0, 0, 0), (0, 1, 1), (0, 2, 2)]);
    let room = |what, found, room| Err(RowError::Room { what, found, room });
    let rows: Vec<Row> = (0..=ROW_CAPACITY).map(|slot| Row::at(0, slot)).collect();
    assert_eq!(run(&mut table, &[], &rows[1..]), Ok(()));
    assert_eq!(
        run(&mut table, &[], &rows),
        room("rows", ROW_CAPACITY + 1, ROW_CAPACITY)
    );
    assert_eq!(single(&mut table, rows[0], MAX_STEPS), Ok(()));
    assert_eq!(
        single(&mut table, rows[0], MAX_STEPS + 1),
        room("rounds", MAX_STEPS + 1, MAX_STEPS)
    );
    table.set_outputs([0; ROW_CAPACITY as usize + 1]);
    let refused = table.check(1).map(|_| ());
    assert_eq!(refused, room("outputs", ROW_CAPACITY + 1, ROW_CAPACITY));
}

/// Slots that a program moves: all of them are written to.
#[test]
fn moved_slots_must_be_there_and_their_sequences_own() {
    let mut table = table(&[(0, 0, 5), (1, 0, 5), (0, 1, 6), (0, 2, 7)]);
    table.push_single(Row::at(0, 4), 0);
    let mut refused = |sequence, slots| table.check_sequence(sequence, slots).map(|_| ());
    assert_eq!(refused(0, 4..12), Ok(()));
    let (sequence, page, owners) = (0, 5, 2);
    assert_eq!(
        refused(0, 3..12),
        Err(RowError::Shared {
            sequence,
            page,
            owners
        })
    );
    assert_eq!(
        refused(0, 4..13),
        Err(RowError::Missing { sequence, slot: 12 })
    );
    let (slot, capacity) = (16, CAPACITY);
    assert_eq!(
        refused(0, 15..17),
        Err(RowError::Missing { sequence, slot: 12 })
    );
    assert_eq!(
        refused(0, 16..17),
        Err(RowError::Beyond {
            sequence,
            slot,
            capacity
        })
    );
    let (row, sequence, n_sequences) = (0, N_SEQUENCES, N_SEQUENCES);
    let unknown = RowError::Sequence {
        row,
        sequence,
        n_sequences,
    };
    assert_eq!(refused(N_SEQUENCES, 0..1), Err(unknown));
    // Such a program has no rows.
    let step = table.check_sequence(0, 4..12).expect("its own");
    assert_eq!(step.counts(), Counts::default());
}

/// A plan that does nothing, with room for two singles and a run of three.
/// What is said of these rows as texts.
fn texts(rows: &[Row]) -> Result<(), RowError> {
    let mut table = table(&[]);
    rows.iter().for_each(|&row| table.push_silent(row, 7));
    table.check_texts().map(drop)
}

/// The attention of an encoder reads `length` rows from `position` rows before a row on: each of these would read rows
/// that are not there, or those of somebody else.
#[test]
fn rows_that_are_no_whole_texts_are_refused() {
    let text = |sequence, length| (0..length).map(move |at| Row::of_text(sequence, at, length));
    let good: Vec<Row> = text(0, 3).chain(text(2, 1)).chain(text(1, 2)).collect();
    assert_eq!(texts(&good), Ok(()));
    assert_eq!(texts(&[]), Ok(()));
    let wrong = |at: usize, change: fn(&mut Row)| {
        let mut rows = good.clone();
        change(&mut rows[at]);
        texts(&rows)
    };
    let refused = |row| Err(RowError::Text { row });
    assert_eq!(wrong(0, |row| row.position = 1), refused(0));
    assert_eq!(wrong(3, |row| row.length = 4), refused(3));
    assert_eq!(wrong(3, |row| row.length = 0), refused(3));
    assert_eq!(wrong(1, |row| row.flags = 0), refused(1));
    assert_eq!(wrong(2, |row| row.length = 2), refused(2));
    assert_eq!(wrong(5, |row| row.position = 0), refused(5));
    assert_eq!(texts(&good[..2]), refused(0));
}

/// A plan whose rows look at their texts takes no step in which nobody has looked at those.
#[test]
fn a_plan_that_reads_texts_admits_only_a_check_of_them() {
    let mut buffers = Buffers::default();
    let step = memory(&mut buffers);
    let plan = Room {
        step: Some(step),
        counts: Counts {
            singles: 2,
            run: 0,
            outputs: 1,
        },
        reads_texts: true,
        ..Room::default()
    };
    let mut table = RowTable::new(step, &[]);
    table.push_silent(Row::of_text(0, 0, 2), 7);
    table.push_silent(Row::of_text(0, 1, 2), 7);
    let outputs = table.check_outputs().expect("nothing is wrong");
    assert_eq!(plan.admit(Some(&outputs)), Err(RowError::Foreign));
    let counts = table.counts();
    let checked = table.check_texts().expect("a whole text");
    assert_eq!(plan.admit(Some(&checked)), Ok((counts, 1)));
}

fn plan(step: Option<StepMemory>, pages: &[PageMap], advances: bool) -> Room {
    plan_that_moves(step, pages, advances, None)
}

fn plan_that_moves(
    step: Option<StepMemory>,
    pages: &[PageMap],
    advances: bool,
    moved: Option<SequenceSlots>,
) -> Room {
    Room {
        step,
        counts: Counts {
            singles: 2,
            run: 3,
            outputs: 2,
        },
        advances,
        pages: pages.to_vec(),
        states: None,
        moved,
        reads_texts: false,
    }
}

#[test]
fn a_plan_admits_only_steps_that_were_checked_for_it() {
    let mut table = table(&[(0, 0, 0), (1, 0, 1), (2, 0, 2)]);
    let (memory, maps) = (*table.memory(), table.maps());
    table.push_single(Row::at(0, 0), 0);
    let counts = table.counts();
    let admitted = plan(Some(memory), &maps, true).admit(Some(&table.check(3).expect("fits")));
    assert_eq!(admitted, Ok((counts, 3)));

    let one = table.check(1).expect("fits");
    let other = StepMemory {
        rows: Buffer {
            generation: 1,
            ..memory.rows
        },
        ..memory
    };
    for foreign in [Some(other), None] {
        let refused = plan(foreign, &[], false).admit(Some(&one));
        assert_eq!(refused, Err(RowError::Foreign));
    }
    assert_eq!(
        plan(Some(memory), &[], false).admit(None),
        Err(RowError::Foreign)
    );
    let room = plan(None, &[], false).counts;
    assert_eq!(plan(None, &[], false).admit(None), Ok((room, 1)));

    let unpaged = table.check_outputs().expect("fits");
    assert_eq!(
        plan(Some(memory), &maps, true).admit(Some(&unpaged)),
        Err(RowError::Foreign)
    );
    assert_eq!(
        plan(Some(memory), &[], true).admit(Some(&unpaged)),
        Ok((counts, 1))
    );

    let still = plan(Some(memory), &maps, false);
    assert!(still.admit(Some(&table.check(1).expect("fits"))).is_ok());
    let chain = still.admit(Some(&table.check(2).expect("fits")));
    assert_eq!(chain, Err(RowError::Still { steps: 2 }));

    // A program that moves rows on has one of each sequence; one that does not may have more.
    let mut table = self::table(&[(0, 0, 0), (1, 0, 1), (2, 0, 2)]);
    for (sequence, position) in [(1, 0), (1, 1)] {
        table.push_single(Row::at(sequence, position), 0);
    }
    let step = table.check(1).expect("fits");
    assert!(still.admit(Some(&step)).is_ok());
    let advances = plan(Some(memory), &maps, true).admit(Some(&step));
    let (row, sequence) = (1, 1);
    assert_eq!(advances, Err(RowError::NotAlone { row, sequence }));

    // Pages that the table has never heard of.
    let unknown = PageMap {
        n_pages: N_PAGES + 1,
        ..maps[0]
    };
    let refused = plan(Some(memory), &[maps[0], unknown], true);
    let refused = refused.admit(Some(&table.check(1).expect("fits")));
    assert_eq!(refused, Err(RowError::Foreign));
}

/// A program that moves slots runs with a check of those slots, and with no other.
#[test]
fn a_plan_that_moves_slots_admits_only_a_check_of_them() {
    let mut table = table(&[(0, 0, 0), (0, 1, 1), (1, 0, 2)]);
    let (memory, maps) = (*table.memory(), table.maps());
    let moved = |sequence, slots| SequenceSlots { sequence, slots };
    let plan = plan_that_moves(Some(memory), &maps, false, Some(moved(0, 2..6)));
    for (sequence, slots, admitted) in [(0, 2..6, true), (0, 0..8, true), (0, 3..6, false)] {
        let step = table.check_sequence(sequence, slots).expect("its own");
        assert_eq!(plan.admit(Some(&step)).is_ok(), admitted);
    }
    let other = table.check_sequence(1, 0..4).expect("its own");
    assert_eq!(plan.admit(Some(&other)), Err(RowError::Foreign));
    let rows = table.check(1).expect("none");
    assert_eq!(plan.admit(Some(&rows)), Err(RowError::Foreign));
}

#[test]
fn a_plan_admits_no_more_rows_than_it_has_room_for() {
    let mut table = table(&[(0, 0, 0), (1, 0, 1), (2, 0, 2)]);
    let plan = plan(Some(*table.memory()), &table.maps(), true);
    let mut refused = |rows: [u32; 2], outputs: u32| {
        table.clear_rows();
        let [n_singles, n_run] = rows;
        for sequence in 0..n_singles {
            table.push_single(Row::at(sequence, 0), 0);
        }
        for slot in 0..n_run {
            table.push_run(Row::at(2, slot), 0);
        }
        table.set_outputs(0..outputs);
        let step = table.check(1).expect("the table has room");
        plan.admit(Some(&step)).map(|_| ())
    };
    let room = |what, found, room| Err(RowError::Room { what, found, room });
    assert_eq!(refused([2, 3], 2), Ok(()));
    assert_eq!(refused([3, 0], 2), room("singles", 3, 2));
    assert_eq!(refused([0, 4], 2), room("rows of a run", 4, 3));
    assert_eq!(refused([2, 2], 3), room("outputs", 3, 2));
}

/// What a step of a table tells the device: the buffer, the offset and how many bytes.
fn told(buffers: &mut Buffers, table: &mut RowTable) -> Vec<(Buffer, usize, usize)> {
    let step = table.check(1).expect("fits");
    let written = step.uploads().map(|(to, bytes)| {
        let fits = buffers.write(to.buffer, to.offset, bytes);
        fits.expect("there is room");
        (to.buffer, to.offset, bytes.len())
    });
    written.collect()
}

#[test]
fn only_what_has_changed_is_written() {
    let mut buffers = Buffers::default();
    let (all, near) = (
        page_map(&mut buffers, None),
        page_map(&mut buffers, Some(4)),
    );
    let memory = memory(&mut buffers);
    let mut table = RowTable::new(memory, &[all, near]);
    for index in 0..2 {
        table.set_page(0, 1, index, Some(index));
    }
    table.set_page(0, 2, 3, Some(7));
    table.set_page(1, 1, 0, Some(3));
    table.push_single(Row::at(1, 2), 17);
    table.push_run(Row::at(1, 3), 18);
    table.clear_rows();
    table.push_single(Row::at(1, 2), 19);
    let rows = [
        (memory.rows, 0, size_of::<Row>()),
        (memory.tokens, 0, 4),
        (memory.outputs, 0, 4),
    ];
    let pages = [
        (all.table, 4 * 4, 8),
        (all.table, 4 * 11, 4),
        (near.table, 4 * 4, 4),
    ];
    let everything = [&pages[..], &rows].concat();
    assert_eq!(told(&mut buffers, &mut table), everything);
    assert_eq!(
        told(&mut buffers, &mut table),
        everything,
        "it was not submitted"
    );
    table.submitted(1, true);
    assert_eq!(
        told(&mut buffers, &mut table),
        [],
        "the device has moved its row on itself"
    );
    table.submitted(1, true);
    table.set_page(1, 1, 1, Some(4));
    assert_eq!(
        told(&mut buffers, &mut table),
        [(near.table, 4 * 5, 4)],
        "a new page"
    );
    table.submitted(1, true);
    table.set_page(0, 2, 3, None);
    assert_eq!(
        told(&mut buffers, &mut table),
        [],
        "nobody looks where no page is"
    );
    table.set_outputs([0]);
    assert_eq!(told(&mut buffers, &mut table), rows);
    table.submitted(1, false);
    table.distrust();
    let pages = [(all.table, 4 * 4, 8), (near.table, 4 * 4, 8)];
    assert_eq!(told(&mut buffers, &mut table), [&pages[..], &rows].concat());
    let mut bytes = [0; 8];
    buffers.read(near.table, 4 * 4, &mut bytes).expect("fits");
    assert_eq!(bytemuck::pod_read_unaligned::<[u32; 2]>(&bytes), [3, 4]);
}

/// Fails when a row of an image may see slots that hold nothing, or what was there before.
#[test]
fn a_row_of_an_image_sees_what_its_step_stores() {
    let pages = [(0, 0, 3), (0, 1, 4)];
    let image = |slot, length| {
        Row {
            length,
            ..Row::at(0, slot)
        }
        .of_image()
    };
    let whole = [Row::at(0, 2), image(3, 6), image(4, 6), image(5, 6)];
    assert_eq!(run(&mut table(&pages), &[], &whole), Ok(()));
    let ahead = |row, slot| {
        let sequence = 0;
        Err(RowError::Ahead {
            row,
            sequence,
            slot,
        })
    };
    assert_eq!(run(&mut table(&pages), &[], &whole[..3]), ahead(1, 5));
    // A single stores nothing for rows after it.
    assert_eq!(single(&mut table(&pages), image(3, 6), 1), ahead(0, 5));
    // The window counts from the row's slot.
    let pages = [(0, 1, 4)];
    let mut windowed = table_with(Some(1), &pages);
    assert_eq!(run(&mut windowed, &[], &[image(4, 6), image(5, 6)]), Ok(()));
    let mut windowed = table_with(Some(2), &pages);
    let refused = run(&mut windowed, &[], &[image(4, 6), image(5, 6)]);
    let (sequence, slot) = (0, 0);
    assert_eq!(refused, Err(RowError::Missing { sequence, slot }));
}

/// Fails when a tree behind an image, whose rows take fewer positions than slots, is refused, or may have other positions.
#[test]
fn a_tree_may_come_after_an_image() {
    let earlier = TREE.map(|row| row.earlier(3));
    assert_eq!(tree(None, &earlier), Ok(()));
    let mut mixed = earlier;
    mixed[4] = TREE[4];
    assert!(matches!(
        tree(None, &mixed),
        Err(RowError::Tree { row: 4, .. })
    ));
}
