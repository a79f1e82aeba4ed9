//! The inputs of the attention kernels: small, and each with something awkward.
//!
//! What no row may read is a trap: hidden slots and pages hold NaN, unused table entries
//! name pages that do not exist, and idle rows name sequences that do not exist.

use akunu_types::params::{AttentionParams, Row};

use super::mask::Mask;
use crate::case::{Case, Rng};
use crate::constant::{Constant, Constants};
use crate::kernel::pages::{self, Pages};

/// A row that takes no part.
const IDLE: Row = Row {
    sequence: u32::MAX,
    position: u32::MAX,
    slot: u32::MAX,
    length: u32::MAX,
    step: 0,
    flags: 0,
    hidden: u32::MAX,
    states: u32::MAX,
};

/// One attention: pages of 32 slots, rows that lie compactly, and no constant, unless told otherwise.
struct Setting {
    label: &'static str,
    head_dim: u32,
    heads: (u32, u32),
    rows: Vec<Row>,
    page_shift: u32,
    /// Rows before the first of the launch.
    first_row: u32,
    /// Elements between the end of a row and the next.
    row_gap: u32,
    /// Size of queries and keys.
    magnitude: f32,
    /// Whether the kernel holds keys and values of 8 bits, or weights of the softmax, in halves.
    in_halves: bool,
    /// Parts that keys are split into; 0 where they are not.
    n_parts: u32,
    constants: Constants,
}

fn setting(label: &'static str, head_dim: u32, heads: (u32, u32), rows: Vec<Row>) -> Setting {
    Setting {
        label,
        head_dim,
        heads,
        rows,
        page_shift: 5,
        first_row: 0,
        row_gap: 0,
        magnitude: 2.0,
        in_halves: false,
        n_parts: 0,
        constants: Constants::none(),
    }
}

/// A row that sees `length` slots of a sequence, of which the last is its own. Its position is none of attention's business.
fn row(sequence: u32, length: u32) -> Row {
    Row {
        position: u32::MAX,
        length,
        ..Row::at(sequence, length.saturating_sub(1))
    }
}

/// A prompt of tokens and an image, whose rows see all of it.
fn picture(image: std::ops::Range<u32>, n_keys: u32) -> Vec<Row> {
    let mut rows = prompt(n_keys, n_keys);
    for row in &mut rows[image.start as usize..image.end as usize] {
        row.length = image.end;
    }
    rows
}

/// Rows of one sequence in three branches after slot 62, of which the first crosses the end of a page; the second branch has two ends.
fn tree() -> Vec<Row> {
    let hidden = [0, 0, 0, 0b110, 0b1100, 0b1_1010, 0b11_1110];
    let rows = (62..).zip(hidden);
    rows.map(|(slot, hidden)| Row::in_tree(0, slot, hidden))
        .chain([row(1, 33)])
        .collect()
}

/// Rows of sequence 0, of which the last one sees `n_keys` slots and each one before it one less.
fn prompt(n_rows: u32, n_keys: u32) -> Vec<Row> {
    let lengths = (0..n_rows).map(|at| (n_keys + at + 1).saturating_sub(n_rows));
    lengths.map(|length| row(0, length)).collect()
}

impl Setting {
    fn page_shift(self, page_shift: u32) -> Setting {
        Setting { page_shift, ..self }
    }
    fn first_row(self, first_row: u32) -> Setting {
        Setting { first_row, ..self }
    }
    fn row_gap(self, row_gap: u32) -> Setting {
        Setting { row_gap, ..self }
    }
    fn parts(self, n_parts: u32) -> Setting {
        Setting { n_parts, ..self }
    }
    fn magnitude(self, magnitude: f32) -> Setting {
        Setting { magnitude, ..self }
    }
    fn fixed_head(self) -> Setting {
        let constants = self.constants.with_u32(Constant::HeadDim, self.head_dim);
        Setting { constants, ..self }
    }
    fn window(self, keys: u32) -> Setting {
        let constants = self.constants.with_u32(Constant::Window, keys);
        Setting { constants, ..self }
    }
    fn softcap(self, cap: f32) -> Setting {
        let constants = self.constants.with_f32(Constant::Softcap, cap);
        Setting { constants, ..self }
    }
    fn query_rows(self, rows: u32) -> Setting {
        let constants = self.constants.with_u32(Constant::QueryRows, rows);
        Setting { constants, ..self }
    }
    fn q8(self) -> Setting {
        let constants = self.constants.with_bool(Constant::KvQ8, true);
        Setting { constants, ..self }
    }

    /// The slots that some row sees, and those of other branches between them, each with its sequence.
    fn used(&self) -> Vec<(u32, u32)> {
        let mask = Mask::new(&self.constants);
        let seen = |row: &Row| {
            let (sequence, keys) = (row.sequence, mask.seen(row).keys);
            let length = keys.end as u32
                + if row.is_active() {
                    row.hidden.count_ones()
                } else {
                    0
                };
            (keys.start as u32..length).map(move |slot| (sequence, slot))
        };
        let mut used: Vec<(u32, u32)> = self.rows.iter().flat_map(seen).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Room for the used slots, with an entry of the table and some pages too many.
    fn pages(&self, used: &[(u32, u32)]) -> Pages {
        let last = used.iter().map(|(_, slot)| slot >> self.page_shift).max();
        let n_sequences = used.last().map_or(1, |(sequence, _)| sequence + 1);
        let mut in_use: Vec<(u32, u32)> = (used.iter())
            .map(|(sequence, slot)| (*sequence, slot >> self.page_shift))
            .collect();
        in_use.dedup();
        Pages {
            page_shift: self.page_shift,
            table_stride: last.unwrap_or(0) + 2,
            n_kv_heads: self.heads.1,
            head_dim: self.head_dim,
            n_pages: in_use.len() as u32 + 2,
            n_sequences,
            format: pages::format(&self.constants),
        }
    }

    /// Sums in another order and an exponential good to two units in the last place: 1e-6 of each
    /// output, 1e-12 squared. The error of a score is that part of its size and becomes one of its
    /// weight: with a size of a hundred, 1e-5, 1e-10 squared. A key or a value that is rounded to a half is
    /// wrong by up to 2^-12 of it, and with 8 bits it was not a half before: 6e-8 squared, and in a score of
    /// 4 four times as much, 1e-6 squared.
    fn case(self) -> Case {
        let (n_heads, n_kv_heads) = self.heads;
        let used = self.used();
        let pages = self.pages(&used);
        let mut rng = Rng::new(u64::from(self.head_dim * 7 + pages.n_pages));
        let elements = n_heads * self.head_dim;
        let n_rows = self.rows.len() as u32;
        let params = AttentionParams {
            n_rows,
            first_row: self.first_row,
            n_heads,
            n_kv_heads,
            head_dim: self.head_dim,
            q_stride: if self.row_gap == 0 {
                0
            } else {
                elements + self.row_gap
            },
            page_shift: pages.page_shift,
            table_stride: pages.table_stride,
            n_pages: pages.n_pages,
            n_sequences: pages.n_sequences,
            scale: 1.0 / (self.head_dim as f32).sqrt(),
            n_parts: self.n_parts,
        };
        let n_queries = ((self.first_row + n_rows) * (elements + self.row_gap)) as usize;
        let label = format!(
            "{}: head_dim {}, heads {n_heads}/{n_kv_heads}, {n_rows} rows from {}, {} slots in pages of {}, {}",
            self.label,
            self.head_dim,
            self.first_row,
            used.len(),
            1 << self.page_shift,
            pages.format.name()
        );
        let table = pages.case_table(&mut rng, &used);
        let keys = pool(&pages, &table, &used, &mut rng, self.magnitude);
        let values = pool(&pages, &table, &used, &mut rng, 1.0);
        let nmse = match (self.in_halves, self.magnitude > 10.0) {
            (true, _) => 1e-6,
            (false, true) => 1e-8,
            (false, false) => 1e-10,
        };
        let mut rows = vec![IDLE; self.first_row as usize];
        rows.extend(&self.rows);
        let outputs = match self.n_parts {
            0 => n_queries,
            parts => (n_rows * elements * parts) as usize,
        };
        let case = Case::new(label, &params, nmse)
            .constants(self.constants)
            .bind(&rng.floats(n_queries, self.magnitude))
            .bind(&keys)
            .bind(&values)
            .bind(&vec![f32::NAN; outputs])
            .bind(&rows)
            .bind(&table);
        match self.n_parts {
            0 => case,
            parts => case.bind(&vec![f32::NAN; (n_rows * n_heads * parts) as usize]),
        }
    }
}

/// Numbers in the used slots, and in those before them that share a tile of 32 slots; NaN in all others.
fn pool(
    pages: &Pages,
    table: &[u32],
    used: &[(u32, u32)],
    rng: &mut Rng,
    magnitude: f32,
) -> Vec<u8> {
    // Halves of these bytes are NaN, whether they are numbers or scales.
    let mut pool = vec![0xFF; pages.pool_bytes()];
    for &(sequence, slot) in used {
        for slot in slot / 32 * 32..=slot {
            for head in 0..pages.n_kv_heads as usize {
                let at = pages.slot_at(table, sequence, slot as usize, head);
                if pages.load(&pool, at)[0].is_nan() {
                    let numbers = rng.floats(pages.head_dim as usize, magnitude);
                    pages.store(&mut pool, at, &numbers);
                }
            }
        }
    }
    pool
}

/// Settings for the kernels that take a row at a time: rows of any sequences.
fn decode_settings() -> Vec<Setting> {
    vec![
        setting("one key", 64, (3, 1), vec![row(0, 1)]),
        setting("a page less one", 80, (4, 4), vec![row(0, 31)]),
        setting("soft cap, one page", 96, (4, 1), vec![row(0, 32)])
            .softcap(5.0)
            .fixed_head(),
        setting("window", 128, (8, 1), vec![row(0, 33)]).window(7),
        setting(
            "windows that begin inside a page",
            256,
            (2, 1),
            vec![row(1, 150), row(0, 40), row(2, 3)],
        )
        .page_shift(6)
        .window(16),
        setting(
            "sequences of all lengths, idle rows between them",
            64,
            (4, 1),
            vec![row(2, 100), IDLE, row(0, 1), row(1, 64), IDLE, row(3, 65)],
        )
        .fixed_head(),
        setting(
            "rows with a gap, not from the first",
            32,
            (6, 2),
            vec![row(0, 9), row(1, 70), row(0, 10)],
        )
        .first_row(2)
        .row_gap(8),
        setting(
            "nothing to see",
            64,
            (2, 1),
            vec![row(0, 0), IDLE, row(0, 1)],
        ),
        setting("only idle rows", 8, (1, 1), vec![IDLE, IDLE]),
        setting("all rows see all keys", 64, (1, 1), vec![row(0, 40); 3]),
        setting("a tree of guesses", 64, (4, 2), tree()),
        setting("a tree of guesses, window", 80, (2, 1), tree()).window(40),
        setting("a tree of guesses", 96, (3, 1), tree())
            .q8()
            .fixed_head(),
        setting("large", 64, (1, 1), vec![row(0, 70)]).magnitude(40.0),
        setting("tiny", 80, (1, 1), vec![row(0, 35)]).magnitude(1e-4),
        setting("one key", 64, (3, 1), vec![row(0, 1)]).q8(),
        setting("soft cap, one page", 96, (4, 1), vec![row(0, 32)])
            .q8()
            .softcap(5.0)
            .fixed_head(),
        setting("windows", 256, (8, 1), vec![row(1, 150), row(0, 40)])
            .q8()
            .page_shift(6)
            .window(37),
        setting(
            "sequences of all lengths, idle rows between them",
            128,
            (4, 2),
            vec![row(2, 100), IDLE, row(0, 1), row(1, 64), IDLE, row(3, 65)],
        )
        .q8()
        .fixed_head(),
        setting("a gap", 32, (6, 2), vec![row(0, 9), row(1, 70)])
            .q8()
            .first_row(2)
            .row_gap(8),
        setting("tiny", 64, (1, 1), vec![row(0, 35)])
            .q8()
            .magnitude(1e-4),
    ]
}

/// Cases of the decode kernels.
pub fn decode() -> Vec<Case> {
    let mut settings = decode_settings();
    settings.push(
        setting("long", 64, (1, 1), vec![row(0, 1000)])
            .page_shift(6)
            .fixed_head(),
    );
    settings.into_iter().map(Setting::case).collect()
}

/// The same and heads that registers do not hold.
pub fn long_heads() -> Vec<Case> {
    let settings = [
        setting("long head", 512, (4, 2), vec![row(0, 70), row(1, 5)]).page_shift(6),
        setting("long head, window", 512, (2, 1), vec![row(0, 40)])
            .window(9)
            .fixed_head(),
        setting("latent keys", 576, (8, 1), vec![row(0, 70)]).page_shift(6),
        setting("long head", 320, (2, 2), vec![row(0, 33)]).q8(),
    ];
    let mut cases = decode();
    cases.extend(settings.into_iter().map(Setting::case));
    cases
}

/// Cases of the kernel with sinks.
pub fn sinks() -> Vec<Case> {
    let of = |case: Case| {
        let params: AttentionParams = bytemuck::pod_read_unaligned(case.params.as_bytes());
        let n_heads = params.n_heads as usize;
        // Some far above the scores, some far below.
        let sinks = Rng::new(n_heads as u64).floats(n_heads, 12.0);
        case.bind(&sinks)
    };
    long_heads().into_iter().map(of).collect()
}

/// Cases of the kernel that splits keys: fewer and more parts than tiles, and than a threadgroup has.
pub fn split() -> Vec<Case> {
    let parts = [1, 3, 2, 64, 5, 4].into_iter().cycle();
    let mut settings: Vec<Setting> = decode_settings()
        .into_iter()
        .zip(parts)
        .map(|(setting, parts)| setting.parts(parts))
        .collect();
    settings.push(
        setting("long", 64, (1, 1), vec![row(0, 1000), row(1, 70)])
            .page_shift(6)
            .fixed_head()
            .parts(7),
    );
    settings.into_iter().map(Setting::case).collect()
}

/// Settings for both prefill kernels: rows of one sequence.
fn prefill_settings() -> Vec<Setting> {
    let with_idle = |mut rows: Vec<Row>, n_idle: usize| {
        rows.extend(vec![IDLE; n_idle]);
        rows
    };
    vec![
        setting("one row", 64, (1, 1), prompt(1, 1)),
        setting("a prompt", 64, (3, 1), prompt(17, 17)),
        setting("later rows with a gap", 80, (2, 2), prompt(5, 33))
            .first_row(3)
            .row_gap(8),
        setting("window", 96, (4, 1), prompt(40, 70))
            .window(20)
            .fixed_head(),
        setting(
            "a window that begins inside a page",
            64,
            (2, 1),
            prompt(10, 150),
        )
        .page_shift(6)
        .window(30),
        setting("all rows see all keys", 128, (1, 1), vec![row(0, 100); 9]),
        setting(
            "idle rows at the end",
            64,
            (2, 1),
            with_idle(prompt(6, 64), 37),
        )
        .page_shift(6),
        setting("only idle rows", 32, (1, 1), with_idle(Vec::new(), 3)),
        setting("the second of two sequences", 64, (1, 1), {
            let mut rows = prompt(4, 90);
            rows.iter_mut().for_each(|row| row.sequence = 1);
            rows
        }),
        setting("an image", 64, (2, 1), picture(5..41, 50)),
        setting("an image and a window", 64, (2, 1), picture(33..53, 60)).window(20),
        setting("lengths in any order", 64, (3, 1), {
            let lengths = [70, 3, 0, 33, 32, 1, 64, 65, 31, 2];
            lengths.map(|length| row(0, length)).into()
        })
        .page_shift(6),
        setting("nothing to see", 64, (2, 1), prompt(5, 3)),
        setting("soft cap", 32, (1, 1), prompt(33, 33)).softcap(3.0),
        setting("large", 64, (1, 1), prompt(8, 64)).magnitude(40.0),
        setting("GQA 8", 64, (8, 1), prompt(3, 31)),
        setting("a prompt", 64, (3, 1), prompt(17, 17)).q8(),
        setting("window", 96, (4, 1), prompt(40, 150))
            .q8()
            .page_shift(6)
            .window(20)
            .fixed_head(),
        setting("later rows with a gap", 32, (2, 2), prompt(5, 33))
            .q8()
            .first_row(3)
            .row_gap(8),
        setting(
            "idle rows at the end",
            128,
            (8, 2),
            with_idle(prompt(6, 64), 37),
        )
        .q8(),
    ]
}

/// Cases of the first prefill kernel.
pub fn prefill() -> Vec<Case> {
    let mut settings = prefill_settings();
    settings.push(setting("large head", 256, (2, 1), prompt(8, 41)).fixed_head());
    settings.push(setting("large head", 256, (2, 1), prompt(9, 41)).q8());
    settings.push(setting("16 rows", 64, (1, 1), prompt(19, 70)).query_rows(16));
    settings.push(
        setting("16 rows, whole head", 128, (1, 1), prompt(20, 20))
            .query_rows(16)
            .fixed_head(),
    );
    settings.push(setting("long", 64, (1, 1), prompt(2, 1000)).page_shift(6));
    settings.into_iter().map(Setting::case).collect()
}

/// Cases of the prefill kernel on tensor cores: one and two blocks of 64 rows, tiles that all rows see.
pub fn tensor() -> Vec<Case> {
    let mut settings = prefill_settings();
    settings.push(setting("two blocks", 128, (1, 1), prompt(70, 200)).fixed_head());
    settings.push(setting("two blocks", 32, (2, 1), prompt(65, 90)).q8());
    settings.push(setting("long", 64, (1, 1), prompt(2, 1000)).page_shift(6));
    let case = |setting: Setting| {
        Setting {
            in_halves: true,
            ..setting
        }
        .case()
    };
    settings.into_iter().map(case).collect()
}

/// Cases of the second prefill kernel.
pub fn prefill_v2() -> Vec<Case> {
    let mut settings = prefill_settings();
    settings.push(setting("two blocks", 128, (1, 1), prompt(45, 50)).fixed_head());
    settings.push(setting("two blocks", 128, (2, 1), prompt(45, 50)).q8());
    settings.push(setting("long", 64, (1, 1), prompt(2, 1000)).page_shift(6));
    let is_q8 = |setting: &Setting| setting.constants.bool(Constant::KvQ8);
    let case = |setting: Setting| {
        Setting {
            in_halves: is_q8(&setting),
            ..setting
        }
        .case()
    };
    settings.into_iter().map(case).collect()
}
