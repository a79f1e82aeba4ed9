//! A cache that was shifted is the cache of the shortened prompt.

use akunu_kernels::case::{Case, Rng};
use akunu_kernels::{Constants, KernelId};
use akunu_types::params::{AttentionParams, KVCacheShiftParams, RoPEQKVWriteParams};
use half::f16;

const HEADS: (u32, u32) = (4, 2);
const HEAD_DIM: u32 = 64;
const N_SLOTS: u32 = 24;
const N_TOKENS: u32 = 20;
const SHIFT: u32 = 7;

/// The kernels of one pairing.
struct Style {
    write: KernelId,
    shift: KernelId,
}

const STYLES: [Style; 2] = [
    Style {
        write: KernelId::RopeQkvWrite,
        shift: KernelId::KvCacheShift,
    },
    Style {
        write: KernelId::RopeNeoxQkvWrite,
        shift: KernelId::KvCacheShiftNeox,
    },
];

#[derive(Clone)]
struct Caches {
    k: Vec<f16>,
    v: Vec<f16>,
}

impl Caches {
    fn empty() -> Caches {
        let zeros = vec![f16::ZERO; (HEADS.1 * N_SLOTS * HEAD_DIM) as usize];
        Caches {
            k: zeros.clone(),
            v: zeros,
        }
    }
}

/// The projections of each token, as if out of a model.
fn tokens() -> Vec<Vec<f32>> {
    let mut rng = Rng::new(5);
    let elements = ((HEADS.0 + 2 * HEADS.1) * HEAD_DIM) as usize;
    (0..N_TOKENS).map(|_| rng.floats(elements, 1.0)).collect()
}

/// Writes a token at a position; returns its turned query.
fn write_token(style: &Style, caches: &mut Caches, qkv: &[f32], pos: u32) -> Vec<f32> {
    let params = RoPEQKVWriteParams {
        n_kv_heads: HEADS.1,
        head_dim: HEAD_DIM,
        max_seq_len: N_SLOTS,
        pos,
        theta: 10000.0,
        n_heads: HEADS.0,
        k_elem_offset: HEADS.0 * HEAD_DIM,
        v_elem_offset: (HEADS.0 + HEADS.1) * HEAD_DIM,
        freq_scale: 1.0,
        ..Default::default()
    };
    let case = Case::new("write", &params, 0.0)
        .bind(qkv)
        .bind(&caches.k)
        .bind(&caches.v)
        .bind(&[f32::NAN]);
    let written = case.expected(&style.write.row());
    caches.k = bytemuck::cast_slice(written[1].1.as_ref()).to_vec();
    caches.v = bytemuck::cast_slice(written[2].1.as_ref()).to_vec();
    let turned: &[f32] = bytemuck::cast_slice(written[0].1.as_ref());
    turned[..(HEADS.0 * HEAD_DIM) as usize].to_vec()
}

/// `freq_scale` 0 moves the keys without turning them back.
fn shift(style: &Style, caches: &Caches, freq_scale: f32) -> Caches {
    let params = KVCacheShiftParams {
        n_kv_heads: HEADS.1,
        head_dim: HEAD_DIM,
        max_seq_len: N_SLOTS,
        shift: SHIFT,
        new_len: N_TOKENS - 1 - SHIFT,
        theta: 10000.0,
        freq_scale,
        ..Default::default()
    };
    let case = Case::new("shift", &params, 0.0)
        .bind(&caches.k)
        .bind(&caches.v)
        .bind(&[f32::NAN]);
    let written = case.expected(&style.shift.row());
    Caches {
        k: bytemuck::cast_slice(written[0].1.as_ref()).to_vec(),
        v: bytemuck::cast_slice(written[1].1.as_ref()).to_vec(),
    }
}

/// Decodes the last token at a position on top of what the caches hold.
fn decode(style: &Style, mut caches: Caches, pos: u32) -> Vec<f32> {
    let query = write_token(style, &mut caches, &tokens()[N_TOKENS as usize - 1], pos);
    let params = AttentionParams {
        seq_len: 1,
        kv_seq_len: pos + 1,
        head_dim: HEAD_DIM,
        n_heads: HEADS.0,
        n_kv_heads: HEADS.1,
        scale: 1.0,
        kv_stride: N_SLOTS * HEAD_DIM,
        ..Default::default()
    };
    let case = Case::new("attend", &params, 0.0)
        .constants(Constants::none())
        .bind(&query)
        .bind(&caches.k)
        .bind(&caches.v)
        .bind(&vec![0f32; query.len()])
        .bind(&[0u16]);
    let written = case.expected(&KernelId::FlashAttentionDecode.row());
    bytemuck::cast_slice(written[0].1.as_ref()).to_vec()
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max)
}

/// Keys are rounded to half once more by the shift, 2^-11 of values up to 1: scores of 64 terms differ
/// by about a hundredth. Without the turn back they differ by tenths, which the last assert shows.
#[test]
fn shift_then_decode_is_decode_on_the_shifted_prompt() {
    for style in &STYLES {
        let all = tokens();
        let prompt = &all[..N_TOKENS as usize - 1];
        let (mut long, mut short) = (Caches::empty(), Caches::empty());
        for (pos, token) in prompt.iter().enumerate() {
            write_token(style, &mut long, token, pos as u32);
        }
        for (pos, token) in prompt[SHIFT as usize..].iter().enumerate() {
            write_token(style, &mut short, token, pos as u32);
        }
        let pos = N_TOKENS - 1 - SHIFT;
        let expected = decode(style, short, pos);
        let found = decode(style, shift(style, &long, 1.0), pos);
        let naive = decode(style, shift(style, &long, 0.0), pos);
        assert!(largest_difference(&found, &expected) < 0.01);
        assert!(largest_difference(&naive, &expected) > 0.1);
    }
}
