//! What attention gives a row depends on the row alone: not on the number of threads, on who else is in the batch, or
//! on the size of a page. Bits are compared, so that a chat goes on the same way whoever else is served.

use akunu_cpu::Isa;
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{Constant, Constants};
use akunu_types::params::Row;

use crate::cache::{Cache, N_SEQUENCES, N_SLOTS, device, fast_levels};

const PAGE_SHIFTS: [u32; 3] = [5, 6, 8];

/// A prompt, rows of all sequences at different places, two of which are one sequence's, and an idle row.
fn mixed() -> Vec<Row> {
    let idle = Row {
        flags: 0,
        ..Row::at(9, 77)
    };
    let prompt = (100..137).map(|position| Row::at(1, position));
    let short = (200..203).map(|position| Row::at(0, position));
    let singles = [(0, 0), (2, 511), (3, 127), (2, 36), (0, 128), (3, 300)];
    let singles = singles.map(|(sequence, position)| Row::at(sequence, position));
    (singles.into_iter().chain([idle]))
        .chain(prompt)
        .chain(short)
        .collect()
}

/// Everything and a window, in both formats.
fn masks() -> [Constants; 4] {
    let none = Constants::none();
    let q8 = none.clone().with_bool(Constant::KvQ8, true);
    let window = |constants: &Constants| constants.clone().with_u32(Constant::Window, 150);
    [window(&none), window(&q8), none, q8]
}

/// Prompts and single rows in one dispatch, on any number of threads and with any size of page.
#[test]
fn threads_and_pages_do_not_change_a_bit() {
    for constants in masks() {
        let mut twin = TwinDevice::new();
        let expected = Cache::new(5, &constants).attend(&mut twin, &mixed(), &constants);
        for isa in fast_levels() {
            let one = Cache::new(5, &constants).attend(&mut device(isa, 1), &mixed(), &constants);
            let error = nmse(&one.concat(), &expected.concat());
            assert!(error < 1e-9, "{isa}: {error:e}");
            for threads in 1..=4 {
                let mut device = device(isa, threads);
                for page_shift in PAGE_SHIFTS {
                    let cache = Cache::new(page_shift, &constants);
                    let found = cache.attend(&mut device, &mixed(), &constants);
                    assert_eq!(one, found, "{isa} × {threads}, pages of 2^{page_shift}");
                }
            }
        }
    }
}

/// A row alone, and in a batch with all others.
#[test]
fn a_batch_does_not_change_a_bit_of_a_row() {
    for constants in masks() {
        let cache = Cache::new(6, &constants);
        for isa in fast_levels() {
            let mut device = device(isa, 2);
            let together = cache.attend(&mut device, &mixed(), &constants);
            for (row, expected) in mixed().iter().zip(&together) {
                let is_of_prompt = row.sequence == 1;
                if !is_of_prompt {
                    let alone = cache.attend(&mut device, &[*row], &constants);
                    assert_eq!(&alone[0], expected, "{isa}, {row:?}");
                }
            }
            let prompt: Vec<Row> = mixed()
                .into_iter()
                .filter(|row| row.sequence == 1)
                .collect();
            let alone = cache.attend(&mut device, &prompt, &constants);
            let first = mixed()
                .iter()
                .position(|row| row.sequence == 1)
                .expect("one");
            assert_eq!(alone, together[first..][..prompt.len()], "{isa}");
        }
    }
}

/// A row of a tree gives the bits of a row of a text without the other branches. Fails when its keys are cut or summed
/// otherwise, wherever the tree lies among blocks, runs and pages.
#[test]
fn other_branches_do_not_change_a_bit_of_a_row() {
    for constants in masks() {
        for (base, page_shift) in [(10, 5), (61, 5), (94, 6), (126, 5), (190, 8), (253, 6)] {
            // Slots: base, then a branch of three, one of two, and one after its first.
            let hidden = [0b1110_u32, 0b1_1100, 0b11_1010];
            let kept = [[0, 4, 0], [0, 4, 5], [0, 4, 6]];
            let tree = Cache::new(page_shift, &constants);
            for ((row, hidden), kept) in (4..).zip(hidden).zip(kept) {
                let row = Row::in_tree(1, base + row, hidden);
                let kept = &kept[..(row.position + 1 - base) as usize];
                let mut text = Cache::new(page_shift, &constants);
                let from: Vec<usize> = kept.iter().map(|at| base as usize + at).collect();
                text.move_slots(1, &from, base as usize);
                for isa in Isa::available() {
                    let mut device = device(isa, 2);
                    let found = tree.attend(&mut device, &[row.alone()], &constants);
                    let alone = Row::at(1, row.position).alone();
                    let wanted = text.attend(&mut device, &[alone], &constants);
                    assert_eq!(found, wanted, "{isa}, {row:?}, pages of 2^{page_shift}");
                }
            }
        }
    }
}

/// More long rows than the sums of have room: they are done in rounds, and no round may disturb another.
#[test]
fn more_long_rows_than_fit_at_once() {
    let constants = Constants::none();
    let cache = Cache::new(6, &constants);
    let rows: Vec<Row> = (0..35)
        .map(|i| Row::at(i % N_SEQUENCES, N_SLOTS - 1 - i))
        .collect();
    for isa in fast_levels() {
        let mut device = device(isa, 3);
        let together = cache.attend(&mut device, &rows, &constants);
        for (row, expected) in rows.iter().zip(&together) {
            let alone = cache.attend(&mut device, &[*row], &constants);
            assert_eq!(&alone[0], expected, "{isa}, {row:?}");
        }
    }
}
