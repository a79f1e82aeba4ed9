//! A sequence that was shifted is that of the shortened prompt; and keys that have much in common lose nothing by being stored in 8
//! bits less that, also when they are shifted.

use akunu_kernels::case::{Case, Rng};
use akunu_kernels::kernel::pages::Pages;
use akunu_kernels::{Constant, Constants, KernelId};
use akunu_program::Pairing;
use akunu_types::KvFormat;
use akunu_types::params::{AttentionParams, KVShiftParams, RopeStoreParams, Row};

const HEADS: (u32, u32) = (4, 2);
const HEAD_DIM: u32 = 64;
const N_TOKENS: u32 = 50;
/// Tokens of the prompt that stay, and that go.
const KEEP: u32 = 3;
const SHIFT: u32 = 7;
const PAGES: Pages = Pages {
    page_shift: 5,
    table_stride: 2,
    n_kv_heads: HEADS.1,
    head_dim: HEAD_DIM,
    n_pages: 3,
    n_sequences: 1,
    format: KvFormat::F16,
};
/// What the slow pairs of all keys have in common.
const COMMON: f32 = 300.0;
const TABLE: [u32; 2] = [2, 0];

/// The kernels of one pairing.
struct Style {
    pairing: Pairing,
    store: KernelId,
    shift: KernelId,
}

const STYLES: [Style; 2] = [
    Style {
        pairing: Pairing::Interleaved,
        store: KernelId::RopeStore,
        shift: KernelId::KvShift,
    },
    Style {
        pairing: Pairing::Halves,
        store: KernelId::RopeNeoxStore,
        shift: KernelId::KvShiftNeox,
    },
];

impl Style {
    /// What all keys have in common: a constant in the pairs that turn by less than 0.02 within the prompt.
    fn common(&self) -> Vec<f32> {
        let mut head = vec![0.0; HEAD_DIM as usize];
        for d in 28..HEAD_DIM as usize / 2 {
            let (a, b) = self.pairing.pair(d, HEAD_DIM as usize);
            (head[a], head[b]) = (COMMON, -COMMON);
        }
        head.repeat(HEADS.1 as usize)
    }
}

/// How keys and values are stored.
struct Stored {
    pages: Pages,
    /// What keys are stored less of.
    centre: Option<Vec<f32>>,
}

impl Stored {
    fn new(format: KvFormat, centre: Option<Vec<f32>>) -> Stored {
        Stored {
            pages: Pages { format, ..PAGES },
            centre,
        }
    }

    fn constants(&self) -> Constants {
        let constants = match self.pages.format {
            KvFormat::F16 => Constants::none(),
            KvFormat::Q8 => Constants::none().with_bool(Constant::KvQ8, true),
        };
        match self.centre {
            Some(_) => constants.with_bool(Constant::KeyCentre, true),
            None => constants,
        }
    }

    /// The centre, or a NaN that nobody reads.
    fn bound_centre(&self) -> &[f32] {
        self.centre.as_deref().unwrap_or(&[f32::NAN])
    }

    fn empty(&self) -> Pools {
        let zeros = vec![0; self.pages.pool_bytes()];
        Pools {
            k: zeros.clone(),
            v: zeros,
        }
    }
}

#[derive(Clone)]
struct Pools {
    k: Vec<u8>,
    v: Vec<u8>,
}

/// The projections of a token.
struct Token {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
}

/// As if out of a model; `common` is added to all keys.
fn tokens(common: Option<&[f32]>) -> Vec<Token> {
    let mut rng = Rng::new(5);
    let mut heads = |n: u32| rng.floats((n * HEAD_DIM) as usize, 1.0);
    let token = |_| Token {
        q: heads(HEADS.0),
        k: heads(HEADS.1),
        v: heads(HEADS.1),
    };
    let mut tokens: Vec<Token> = (0..N_TOKENS).map(token).collect();
    for token in &mut tokens {
        let keys = token.k.iter_mut().zip(common.unwrap_or_default());
        keys.for_each(|(x, c)| *x += c);
    }
    tokens
}

/// Stores a token at a position; returns its turned query.
fn store(
    (style, stored): (&Style, &Stored),
    pools: &mut Pools,
    token: &Token,
    position: u32,
) -> Vec<f32> {
    let params = RopeStoreParams {
        n_rows: 1,
        n_heads: HEADS.0,
        n_kv_heads: HEADS.1,
        head_dim: HEAD_DIM,
        page_shift: PAGES.page_shift,
        table_stride: PAGES.table_stride,
        n_pages: PAGES.n_pages,
        n_sequences: PAGES.n_sequences,
        theta: 10000.0,
        freq_scale: 1.0,
        ..Default::default()
    };
    let case = Case::new("store", &params, 0.0)
        .constants(stored.constants())
        .bind(&token.q)
        .bind(&token.k)
        .bind(&token.v)
        .bind(&pools.k)
        .bind(&pools.v)
        .bind(&[Row::at(0, position)])
        .bind(&TABLE)
        .bind(&[f32::NAN])
        .bind(stored.bound_centre());
    let written = case.expected(&style.store.row());
    pools.k = written[1].1.as_ref().to_vec();
    pools.v = written[2].1.as_ref().to_vec();
    bytemuck::cast_slice(written[0].1.as_ref()).to_vec()
}

/// `freq_scale` 0 moves the keys without turning them back.
fn shift((style, stored): (&Style, &Stored), pools: &Pools, freq_scale: f32) -> Pools {
    let params = KVShiftParams {
        sequence: 0,
        n_kv_heads: HEADS.1,
        head_dim: HEAD_DIM,
        keep: KEEP,
        shift: SHIFT,
        new_len: N_TOKENS - 1 - SHIFT - KEEP,
        page_shift: PAGES.page_shift,
        table_stride: PAGES.table_stride,
        n_pages: PAGES.n_pages,
        n_sequences: PAGES.n_sequences,
        theta: 10000.0,
        freq_scale,
    };
    let case = Case::new("shift", &params, 0.0)
        .constants(stored.constants())
        .bind(&pools.k)
        .bind(&pools.v)
        .bind(&TABLE)
        .bind(&[f32::NAN])
        .bind(stored.bound_centre());
    let written = case.expected(&style.shift.row());
    Pools {
        k: written[0].1.as_ref().to_vec(),
        v: written[1].1.as_ref().to_vec(),
    }
}

/// Decodes a token at a position on top of what the pools hold.
fn decode(
    (style, stored): (&Style, &Stored),
    mut pools: Pools,
    last: &Token,
    position: u32,
) -> Vec<f32> {
    let query = store((style, stored), &mut pools, last, position);
    let params = AttentionParams {
        n_rows: 1,
        n_heads: HEADS.0,
        n_kv_heads: HEADS.1,
        head_dim: HEAD_DIM,
        page_shift: PAGES.page_shift,
        table_stride: PAGES.table_stride,
        n_pages: PAGES.n_pages,
        n_sequences: PAGES.n_sequences,
        scale: 1.0,
        ..Default::default()
    };
    let case = Case::new("attend", &params, 0.0)
        .constants(match stored.pages.format {
            KvFormat::F16 => Constants::none(),
            KvFormat::Q8 => Constants::none().with_bool(Constant::KvQ8, true),
        })
        .bind(&query)
        .bind(&pools.k)
        .bind(&pools.v)
        .bind(&vec![0f32; query.len()])
        .bind(&[Row::at(0, position)])
        .bind(&TABLE);
    let written = case.expected(&KernelId::FlashAttentionDecode.row());
    bytemuck::cast_slice(written[0].1.as_ref()).to_vec()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max)
}

/// The output of the last token of all: of a prompt that was shortened, of one that was shifted, and of one that was moved without
/// the turn back.
fn three_ways(style: &Style, stored: &Stored, tokens: &[Token]) -> [Vec<f32>; 3] {
    let of = (style, stored);
    let (last, prompt) = tokens.split_last().expect("there are tokens");
    let (mut long, mut short) = (stored.empty(), stored.empty());
    for (position, token) in prompt.iter().enumerate() {
        store(of, &mut long, token, position as u32);
    }
    let (kept, after) = (&prompt[..KEEP as usize], &prompt[(KEEP + SHIFT) as usize..]);
    for (position, token) in kept.iter().chain(after).enumerate() {
        store(of, &mut short, token, position as u32);
    }
    let position = N_TOKENS - 1 - SHIFT;
    let [shifted, naive] = [1.0, 0.0].map(|freq_scale| shift(of, &long, freq_scale));
    [short, shifted, naive].map(|pools| decode(of, pools, last, position))
}

/// Keys are rounded to half once more by the shift, 2^-11 of values up to 1: scores of 64 terms differ
/// by about a hundredth. Without the turn back they differ by tenths, which the last assert shows.
#[test]
fn shift_then_decode_is_decode_on_the_shifted_prompt() {
    for style in &STYLES {
        let stored = Stored::new(KvFormat::F16, None);
        let [expected, found, naive] = three_ways(style, &stored, &tokens(None));
        assert!(largest_difference(&found, &expected) < 0.01);
        assert!(largest_difference(&naive, &expected) > 0.1);
    }
}

/// Where all keys contain the same large vector, 8 bits less that vector give what 16 bits give, and so they do after a shift:
/// outputs of up to 1 were 0.07 to 0.09 apart, to which the rounding of 300 to half adds its part. The same 8 bits of whole keys
/// give something else, 0.8 to 1.3 apart, and so do keys that were moved without the turn back.
#[test]
fn keys_less_what_they_have_in_common_attend_like_whole_ones() {
    for style in &STYLES {
        let common = style.common();
        let tokens = tokens(Some(&common));
        let [f16, ..] = three_ways(style, &Stored::new(KvFormat::F16, None), &tokens);
        let [whole, ..] = three_ways(style, &Stored::new(KvFormat::Q8, None), &tokens);
        assert!(largest_difference(&whole, &f16) > 0.5);
        let centred = Stored::new(KvFormat::Q8, Some(common));
        let [short, shifted, naive] = three_ways(style, &centred, &tokens);
        for found in [short, shifted] {
            let apart = largest_difference(&found, &f16);
            assert!(apart < 0.15, "{apart}");
        }
        assert!(largest_difference(&naive, &f16) > 0.5);
    }
}

/// The first key, which is not turned: a step is 1/127 of what is common, or of what is not, so that squares of errors are 300²
/// apart in the blocks with something common: nearly all of them. Breaks when a kernel rounds before it subtracts.
#[test]
fn small_elements_beside_a_large_constant_are_kept() {
    for style in &STYLES {
        let common = style.common();
        let token = &tokens(Some(&common))[0];
        let mean_square = |centre: Option<Vec<f32>>| {
            let stored = Stored::new(KvFormat::Q8, centre);
            let mut pools = stored.empty();
            store((style, &stored), &mut pools, token, 0);
            let key = stored
                .pages
                .load(&pools.k, stored.pages.slot_at(&TABLE, 0, 0, 1));
            let head = HEAD_DIM as usize..2 * HEAD_DIM as usize;
            let centre = match &stored.centre {
                Some(centre) => centre[head.clone()].to_vec(),
                None => vec![0.0; HEAD_DIM as usize],
            };
            let errors = key.iter().zip(&centre).zip(&token.k[head]);
            errors.map(|((x, c), k)| (x + c - k).powi(2)).sum::<f32>() / HEAD_DIM as f32
        };
        let (whole, centred) = (mean_square(None), mean_square(Some(common)));
        assert!(
            whole > 1000.0 * centred,
            "{whole:e} and {centred:e}, {:?}",
            style.pairing
        );
    }
}
