//! The inputs of the attention kernels: small, and each with something awkward.

use akunu_types::params::AttentionParams;

use crate::case::{Case, Rng};
use crate::constant::{Constant, Constants};

/// One attention. Queries lie head by head, keys compactly, unless told otherwise.
struct Setting {
    label: &'static str,
    head_dim: u32,
    heads: (u32, u32),
    n_queries: u32,
    n_keys: u32,
    /// Slots of the cache, where they are not as many as keys.
    n_slots: Option<u32>,
    /// Elements between the heads of one query and those of the next, where queries lie row by row.
    row_gap: Option<u32>,
    /// Size of queries and keys.
    magnitude: f32,
    tree: &'static [u16],
    constants: Constants,
}

fn setting(label: &'static str, head_dim: u32, heads: (u32, u32), n_queries: u32) -> Setting {
    Setting {
        label,
        head_dim,
        heads,
        n_queries,
        n_keys: n_queries,
        n_slots: None,
        row_gap: None,
        magnitude: 2.0,
        tree: &[],
        constants: Constants::none(),
    }
}

impl Setting {
    fn keys(self, n_keys: u32) -> Setting {
        Setting { n_keys, ..self }
    }
    fn slots(self, n_slots: u32) -> Setting {
        Setting {
            n_slots: Some(n_slots),
            ..self
        }
    }
    fn row_gap(self, gap: u32) -> Setting {
        Setting {
            row_gap: Some(gap),
            ..self
        }
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
    fn non_causal(self) -> Setting {
        let constants = self.constants.with_bool(Constant::NonCausal, true);
        Setting { constants, ..self }
    }
    fn query_rows(self, rows: u32) -> Setting {
        let constants = self.constants.with_u32(Constant::QueryRows, rows);
        Setting { constants, ..self }
    }
    fn tree(self, tree: &'static [u16]) -> Setting {
        let constants = self.constants.with_bool(Constant::TreeMask, true);
        Setting {
            constants,
            tree,
            ..self
        }
    }

    /// Sums in another order and an exponential good to two units in the last place: 1e-6 of each
    /// output, 1e-12 squared. The error of a score is that part of its size and becomes one of its
    /// weight: with a size of a hundred, 1e-5, 1e-10 squared.
    fn case(self) -> Case {
        let (n_heads, n_kv_heads) = self.heads;
        let mut rng = Rng::new(u64::from(self.head_dim * 7 + self.n_keys));
        let row = n_heads * self.head_dim;
        let params = AttentionParams {
            seq_len: self.n_queries,
            kv_seq_len: self.n_keys,
            head_dim: self.head_dim,
            n_heads,
            n_kv_heads,
            scale: 1.0 / (self.head_dim as f32).sqrt(),
            kv_stride: self.n_slots.map_or(0, |n_slots| n_slots * self.head_dim),
            q_stride: self.row_gap.map_or(0, |gap| row + gap),
        };
        let queries = (self.n_queries * (row + self.row_gap.unwrap_or(0))) as usize;
        let n_slots = self.n_slots.unwrap_or(self.n_keys);
        let cache = (n_kv_heads * n_slots * self.head_dim) as usize;
        let label = format!(
            "{}: head_dim {}, heads {n_heads}/{n_kv_heads}, {} queries, {} keys",
            self.label, self.head_dim, self.n_queries, self.n_keys
        );
        let nmse = if self.magnitude > 10.0 { 1e-8 } else { 1e-10 };
        let unread: &[u16] = &[0];
        let tree = if self.tree.is_empty() {
            unread
        } else {
            self.tree
        };
        Case::new(label, &params, nmse)
            .constants(self.constants)
            .bind(&rng.floats(queries, self.magnitude))
            .bind(&rng.halves(cache, self.magnitude))
            .bind(&rng.halves(cache, 1.0))
            .bind(&vec![f32::NAN; queries])
            .bind(tree)
    }
}

/// Settings for the kernels that take a query at a time.
fn query_settings() -> Vec<Setting> {
    vec![
        setting("one key", 64, (3, 1), 1).slots(8),
        setting("no cache stride", 80, (4, 4), 1).keys(31),
        setting("soft cap", 96, (4, 1), 1)
            .keys(32)
            .slots(40)
            .softcap(5.0)
            .fixed_head(),
        setting("window", 128, (8, 1), 1)
            .keys(33)
            .slots(64)
            .window(7),
        setting("ring and window", 256, (2, 1), 1)
            .keys(50)
            .slots(20)
            .window(16),
        setting("ring alone", 64, (2, 2), 1)
            .keys(100)
            .slots(33)
            .fixed_head(),
        setting("rows with a gap", 32, (2, 2), 5)
            .keys(9)
            .slots(16)
            .row_gap(8),
        setting("nothing to see", 64, (2, 1), 3).keys(2),
        setting("no key at all", 8, (1, 1), 1).keys(0).slots(4),
        setting("cross attention", 64, (1, 1), 3)
            .keys(40)
            .non_causal()
            .row_gap(0),
        setting("tree", 64, (3, 1), 4)
            .keys(37)
            .slots(40)
            .tree(&[1, 3, 5, 11]),
        setting("large", 64, (1, 1), 1).keys(70).magnitude(40.0),
        setting("tiny", 80, (1, 1), 1).keys(35).magnitude(1e-4),
    ]
}

/// Cases of the decode kernels.
pub fn decode() -> Vec<Case> {
    let mut settings = query_settings();
    settings.push(
        setting("long", 64, (1, 1), 1)
            .keys(1000)
            .slots(1024)
            .fixed_head(),
    );
    settings.into_iter().map(Setting::case).collect()
}

/// Cases of the parallel decode kernel.
pub fn parallel() -> Vec<Case> {
    let mut settings = query_settings();
    settings.push(
        setting("long", 128, (1, 1), 1)
            .keys(1000)
            .slots(1024)
            .fixed_head(),
    );
    settings.push(setting("very long", 64, (1, 1), 1).keys(5000));
    settings.into_iter().map(Setting::case).collect()
}

/// Settings for both prefill kernels.
fn prefill_settings() -> Vec<Setting> {
    vec![
        setting("one query", 64, (1, 1), 1),
        setting("causal", 64, (3, 1), 17),
        setting("offset, rows with a gap", 80, (2, 2), 5)
            .keys(33)
            .slots(48)
            .row_gap(8),
        setting("window", 96, (4, 1), 40)
            .keys(70)
            .slots(96)
            .window(20)
            .fixed_head()
            .row_gap(0),
        setting("cross attention", 128, (1, 1), 9)
            .keys(100)
            .non_causal(),
        setting("ring and window", 64, (2, 1), 10)
            .keys(60)
            .slots(48)
            .window(30)
            .row_gap(0),
        setting("small ring", 64, (1, 1), 4).keys(90).slots(20),
        setting("tree", 64, (1, 1), 6)
            .keys(40)
            .tree(&[1, 3, 5, 9, 19, 37]),
        setting("nothing to see", 64, (2, 1), 5).keys(3),
        setting("soft cap", 32, (1, 1), 33).softcap(3.0),
        setting("large", 64, (1, 1), 8).keys(64).magnitude(40.0),
        setting("GQA 8", 64, (8, 1), 3)
            .keys(31)
            .slots(31)
            .row_gap(0),
    ]
}

/// Cases of the first prefill kernel.
pub fn prefill() -> Vec<Case> {
    let mut settings = prefill_settings();
    settings.push(
        setting("large head", 256, (2, 1), 8)
            .keys(41)
            .slots(64)
            .fixed_head(),
    );
    settings.push(
        setting("16 rows", 64, (1, 1), 19)
            .keys(70)
            .slots(80)
            .query_rows(16),
    );
    settings.push(
        setting("16 rows, whole head", 128, (1, 1), 20)
            .query_rows(16)
            .fixed_head(),
    );
    settings.push(setting("long", 64, (1, 1), 2).keys(1000).slots(1000));
    settings.into_iter().map(Setting::case).collect()
}

/// Cases of the second prefill kernel.
pub fn prefill_v2() -> Vec<Case> {
    let mut settings = prefill_settings();
    settings.push(
        setting("two blocks", 128, (1, 1), 45)
            .keys(50)
            .slots(64)
            .fixed_head(),
    );
    settings.push(setting("long", 64, (1, 1), 2).keys(1000).slots(1000));
    settings.into_iter().map(Setting::case).collect()
}
