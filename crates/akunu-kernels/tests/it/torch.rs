//! The twins against figures that torch computed (`fixtures/make_torch_fixtures.py`).
//!
//! A twin that is wrong would make every executor wrong with it: these figures are the world's.

use akunu_kernels::case::Case;
use akunu_kernels::{Constant, Constants, KernelId};
use akunu_types::params::{AttentionParams, RMSNormParams, RoPEParams, Row};
use half::f16;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// f32 sums of a few dozen terms against f64.
const TOLERANCE: f32 = 1e-5;

fn fixtures<T: DeserializeOwned>(name: &str) -> Vec<T> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let text = std::fs::read_to_string(format!("{folder}/torch_{name}.json"))
        .expect("the fixture is committed");
    let fixtures: Vec<T> = serde_json::from_str(&text).expect("the script wrote it");
    assert!(!fixtures.is_empty());
    fixtures
}

/// The one output of a kernel's twin.
fn output(kernel: KernelId, case: &Case) -> Vec<f32> {
    let written = case.expected(&kernel.row());
    assert_eq!(written.len(), 1);
    bytemuck::cast_slice(written[0].1.as_ref()).to_vec()
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32], what: &str, tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance, "{what}, {i}: {f} and {e}");
    }
}

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&value| f16::from_f32(value)).collect()
}

#[derive(Deserialize)]
struct Attention {
    name: String,
    n_heads: u32,
    n_kv_heads: u32,
    head_dim: u32,
    n_queries: u32,
    n_keys: u32,
    causal: bool,
    window: u32,
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    o: Vec<f32>,
}

impl Attention {
    /// What each query sees: all keys, or those up to its own.
    fn rows(&self) -> Vec<Row> {
        let length = |query| {
            let unseen = if self.causal {
                self.n_queries - 1 - query
            } else {
                0
            };
            self.n_keys - unseen
        };
        // The last slot that a query sees is its own.
        let row = |query| Row::at(0, length(query) - 1);
        (0..self.n_queries).map(row).collect()
    }

    /// Keys or values (n_kv_heads, n_keys, head_dim) in one page of 32 slots.
    fn page(&self, values: &[f32]) -> Vec<f16> {
        let slots = values.chunks_exact((self.n_keys * self.head_dim) as usize);
        let padding = ((32 - self.n_keys) * self.head_dim) as usize;
        slots
            .flat_map(|head| [halves(head), vec![f16::NAN; padding]].concat())
            .collect()
    }

    /// The fixture has heads of queries, the kernel rows of heads.
    fn rows_of_heads(&self, values: &[f32]) -> Vec<f32> {
        let head_dim = self.head_dim as usize;
        let at = |query: u32, head: u32| (head * self.n_queries + query) as usize * head_dim;
        let of_row =
            |query| (0..self.n_heads).flat_map(move |head| &values[at(query, head)..][..head_dim]);
        (0..self.n_queries).flat_map(of_row).copied().collect()
    }
}

#[test]
fn attention_is_scaled_dot_product_attention() {
    for f in fixtures::<Attention>("attention") {
        let params = AttentionParams {
            n_rows: f.n_queries,
            n_heads: f.n_heads,
            n_kv_heads: f.n_kv_heads,
            head_dim: f.head_dim,
            page_shift: 5,
            table_stride: 1,
            n_pages: 1,
            n_sequences: 1,
            scale: 1.0 / (f.head_dim as f32).sqrt(),
            ..Default::default()
        };
        let case = Case::new(&f.name, &params, 0.0)
            .constants(Constants::none().with_u32(Constant::Window, f.window))
            .bind(&f.rows_of_heads(&f.q))
            .bind(&f.page(&f.k))
            .bind(&f.page(&f.v))
            .bind(&vec![f32::NAN; f.q.len()])
            .bind(&f.rows())
            .bind(&[0u32]);
        let found = output(KernelId::FlashAttentionDecode, &case);
        assert_close(&found, &f.rows_of_heads(&f.o), &f.name, TOLERANCE);
    }
}

#[derive(Deserialize)]
struct Rope {
    name: String,
    style: String,
    head_dim: u32,
    n_heads: u32,
    n_rows: u32,
    position: u32,
    theta: f32,
    scale: f32,
    x: Vec<f32>,
    y: Vec<f32>,
}

#[test]
fn rope_is_rotate_half_or_a_complex_product() {
    for f in fixtures::<Rope>("rope") {
        let params = RoPEParams {
            n_rows: f.n_rows,
            head_dim: f.head_dim,
            n_heads: f.n_heads,
            theta: f.theta,
            freq_scale: f.scale,
            ..Default::default()
        };
        let kernel = match f.style.as_str() {
            "split" => KernelId::RopeNeox,
            _ => KernelId::Rope,
        };
        let positions = f.position..f.position + f.n_rows;
        let rows: Vec<Row> = positions.map(|position| Row::at(0, position)).collect();
        let case = Case::new(&f.name, &params, 0.0)
            .bind(&f.x)
            .bind(&rows)
            .bind(&[0f32]);
        // The angle of position p is exact to p * 2^-23 radians, twice.
        let tolerance = TOLERANCE + f.position as f32 * f.scale * 2.4e-7;
        assert_close(&output(kernel, &case), &f.y, &f.name, tolerance);
    }
}

#[derive(Deserialize)]
struct Rows {
    rows: u32,
    cols: u32,
    #[serde(default)]
    eps: f32,
    x: Vec<f32>,
    #[serde(default)]
    weight: Vec<f32>,
    y: Vec<f32>,
}

#[test]
fn rmsnorm_is_rms_norm() {
    for f in fixtures::<Rows>("rms_norm") {
        let params = RMSNormParams {
            dim: f.cols,
            n_rows: f.rows,
            eps: f.eps,
            ..Default::default()
        };
        let case = Case::new("rms_norm", &params, 0.0)
            .bind(&f.x)
            .bind(&f.weight)
            .bind(&vec![0f32; f.x.len()]);
        let found = output(KernelId::RmsNorm, &case);
        assert_close(&found, &f.y, "rms_norm", TOLERANCE);
    }
}
