//! How exact the numbers of attention are, on each level of instructions that this machine has.

use akunu_cpu::Isa;
use akunu_kernels::case::nmse;
use akunu_kernels::twin_device::TwinDevice;
use akunu_kernels::{Constant, Constants};
use akunu_types::params::Row;

use crate::cache::{Cache, HEAD_DIM, N_HEADS, device, fast_levels};

/// Keys and values as halves and in 8 bits.
fn formats() -> [Constants; 2] {
    let q8 = Constants::none().with_bool(Constant::KvQ8, true);
    [Constants::none(), q8]
}

/// Rows that see parts of a block of keys, whole blocks and several runs.
fn singles() -> Vec<Row> {
    let places = [
        (0, 0),
        (1, 14),
        (2, 16),
        (0, 63),
        (1, 64),
        (3, 130),
        (2, 511),
    ];
    places
        .map(|(sequence, position)| Row::at(sequence, position))
        .to_vec()
}

/// Products of floats and of digits of bytes have errors of some 1e-7, 1e-14 of the power. A number that had 16 bits, or two
/// digits, would have 1e-10.
#[test]
fn single_rows_are_as_exact_as_floats() {
    for constants in formats() {
        for head_dim in [64, 96, 128, 256] {
            let cache = Cache::of_heads(head_dim, 6, &constants);
            let wanted: Vec<Vec<f32>> = singles().iter().map(|row| cache.exact(row)).collect();
            for isa in fast_levels() {
                let found = cache.attend(&mut device(isa, 1), &singles(), &constants);
                for ((row, found), wanted) in singles().iter().zip(&found).zip(&wanted) {
                    let error = nmse(found, wanted);
                    assert!(error < 1e-12, "{isa}, {head_dim}, {row:?}: {error:e}");
                }
            }
        }
    }
}

/// A query of zeros gives the mean of the values.
#[test]
fn a_query_of_zeros_gives_the_mean_of_the_values() {
    for constants in formats() {
        let cache = Cache::new(6, &constants);
        let zeros = vec![0.0; cache.queries(&singles()).len()];
        let mut twin = TwinDevice::new();
        let wanted = cache
            .attend_with(&mut twin, &singles(), &zeros, &constants)
            .concat();
        for isa in fast_levels() {
            let mut device = device(isa, 1);
            let found = cache
                .attend_with(&mut device, &singles(), &zeros, &constants)
                .concat();
            let error = nmse(&found, &wanted);
            assert!(error < 1e-12, "{isa}: {error:e}");
        }
    }
}

/// One element of a query that is not a number, wherever it is, makes the output of its head none, and leaves the others as
/// they are: a fault in a model must not look like an answer. So it is for single rows and prompts, with a soft cap too.
#[test]
fn a_query_that_is_not_a_number_gives_none() {
    let prompt: Vec<Row> = (64..70).map(|position| Row::at(1, position)).collect();
    let capped = |plain: &Constants| plain.clone().with_f32(Constant::Softcap, 5.0);
    for constants in formats()
        .iter()
        .flat_map(|plain| [plain.clone(), capped(plain)])
    {
        let cache = Cache::new(6, &constants);
        for rows in [&[Row::at(0, 40)][..], &[Row::at(2, 300)], &prompt] {
            for isa in fast_levels() {
                check_nan(&cache, rows, isa, &constants);
            }
        }
    }
}

/// The first row, with each element of a head in turn, of one head after the other.
fn check_nan(cache: &Cache, rows: &[Row], isa: Isa, constants: &Constants) {
    let mut device = device(isa, 1);
    let wanted = cache.attend(&mut device, rows, constants);
    let head_dim = HEAD_DIM as usize;
    for element in 0..head_dim {
        let head = element % N_HEADS as usize * head_dim;
        let mut queries = cache.queries(rows);
        queries[head + element] = f32::NAN;
        let mut found = cache.attend_with(&mut device, rows, &queries, constants);
        let what = format!(
            "{isa}, {constants:?}, {} rows, element {element}",
            rows.len()
        );
        let of_head = &mut found[0][head..][..head_dim];
        assert!(of_head.iter().all(|x| x.is_nan()), "{what}: {of_head:?}");
        of_head.copy_from_slice(&wanted[0][head..][..head_dim]);
        assert_eq!(found, wanted, "{what}");
    }
}
