//! Rows of real models through the kernels, against what the `gguf` package makes of them.
//!
//! `fixtures/make_real_blocks.py` made the figures. Random blocks cover every bit pattern; these show
//! that files hold their blocks as we think.

use akunu_kernels::plan::Params;
use std::path::Path;

use akunu_gguf::GgufFile;
use akunu_kernels::{ChipConfig, KernelCall, KernelDevice, KernelId, PipelineKey};
use akunu_program::{Device, Room};
use akunu_sim::{Schedule, SimBackend, SimDevice, Simulator};
use akunu_types::params::{EmbeddingParams, GEMMParams};
use akunu_types::{DType, SharedStruct};
use half::f16;
use serde::Deserialize;

/// What the `gguf` package says of some rows of a tensor.
#[derive(Deserialize)]
struct Fixture {
    file: String,
    tensor: String,
    dtype: String,
    first_row: usize,
    cols: usize,
    /// The first values of the first row: the bits of f16.
    values: Vec<u16>,
    /// The product of each row with [`x`].
    products: Vec<f64>,
}

impl Fixture {
    /// The format and the bytes of the rows, from the model's file.
    fn rows(&self) -> (DType, Vec<u8>) {
        let (asset, name) = self.file.split_once('/').expect("asset/file");
        let path = akunu_assets::path(asset, name);
        let file = GgufFile::open(&path).expect("a whole file");
        let view = file.tensor(&self.tensor).expect("the tensor is there");
        let dtype = view.info.dtype;
        assert_eq!(dtype.to_string(), self.dtype);
        assert_eq!(view.info.dims.cols(), self.cols);
        let row = dtype.bytes_of(self.cols).expect("whole blocks");
        let (begin, n_rows) = (self.first_row, self.products.len());
        (dtype, view.bytes[begin * row..][..n_rows * row].to_vec())
    }

    /// `x[i] = (7919 i mod 257 - 128) / 128`: exact in f32.
    fn x(&self) -> Vec<f32> {
        let integers = (0..self.cols).map(|i| (i * 7919 % 257) as f32 - 128.0);
        integers.map(|integer| integer / 128.0).collect()
    }
}

/// Runs a kernel whose last binding is its output.
fn run<P: SharedStruct>(
    device: &mut SimDevice,
    kernel: KernelId,
    params: &P,
    inputs: &[&[u8]],
    output_bytes: usize,
) -> Vec<u8> {
    let mut bindings = Vec::new();
    for bytes in inputs {
        let buffer = device.allocate(bytes.len(), "input").expect("memory");
        device.write(buffer, 0, bytes).expect("it fits");
        bindings.push(buffer.into());
    }
    let output = device.allocate(output_bytes, "output").expect("memory");
    bindings.push(output.into());
    let call = KernelCall {
        key: PipelineKey::plain(kernel),
        params: Params::of(params),
        bindings,
        row_fields: Vec::new(),
        label: "test",
    };
    let plan = device.load_kernels(vec![call], Room::default());
    let plan = plan.expect("it compiles and fits");
    device.run(plan, None).expect("it runs");
    device.unload(plan);
    let mut bytes = vec![0; output_bytes];
    device.read(output, 0, &mut bytes).expect("it is there");
    bytes
}

/// The same bits, but for q6_k: its kernel multiplies in another order, so that a value may fall to
/// the other side of a rounding, one step of f16 away.
fn check_values(device: &mut SimDevice, fixture: &Fixture) {
    let (dtype, rows) = fixture.rows();
    let params = EmbeddingParams {
        num_tokens: 1,
        dim: fixture.cols as u32,
        vocab_size: 1,
        ..Default::default()
    };
    let kernel = KernelId::EmbeddingLookup(dtype);
    let row = &rows[..dtype.bytes_of(fixture.cols).expect("whole blocks")];
    let bytes = run(device, kernel, &params, &[&[0; 4], row], 4 * fixture.cols);
    let found = bytes
        .chunks_exact(4)
        .map(|b| f16::from_f32(bytemuck::pod_read_unaligned(b)));
    let steps = if dtype == DType::Q6_K { 1 } else { 0 };
    for (at, (found, &wanted)) in found.zip(&fixture.values).enumerate() {
        let wanted = f16::from_bits(wanted);
        let distance = found.to_bits().abs_diff(wanted.to_bits());
        let what = format!("{} value {at}: {found}, not {wanted}", fixture.tensor);
        // Zero may have either sign.
        assert!(found == wanted || distance <= steps, "{what}");
    }
}

/// f32 sums of at most 2048 products err by about 1e-6 of their size; a wrong value among them by far
/// more than the 1e-10 of squares that this allows.
fn check_products(device: &mut SimDevice, fixture: &Fixture) {
    let (dtype, rows) = fixture.rows();
    let (n, k) = (fixture.products.len() as u32, fixture.cols as u32);
    let params = GEMMParams {
        M: 1,
        N: n,
        K: k,
        lda: k,
        ldb: k,
        ldc: n,
        alpha: 1.0,
        beta: 0.0,
    };
    let x = fixture.x();
    let inputs = [bytemuck::cast_slice(&x), &rows];
    for kernel in [KernelId::Gemv(dtype), KernelId::SimdGemm(dtype)] {
        let bytes = run(device, kernel, &params, &inputs, 4 * n as usize);
        let found = bytes
            .chunks_exact(4)
            .map(bytemuck::pod_read_unaligned::<f32>);
        let pairs = found.zip(&fixture.products);
        let error: f64 = pairs
            .map(|(y, wanted)| (f64::from(y) - wanted).powi(2))
            .sum();
        let power: f64 = fixture.products.iter().map(|y| y * y).sum();
        let nmse = error / power;
        assert!(nmse < 1e-10, "{kernel:?} {}: NMSE {nmse:e}", fixture.tensor);
    }
}

#[test]
fn rows_of_real_models_are_what_the_gguf_package_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simulator = Simulator::new(&root.join("kernels"), &root.join("target/shaders/sim"))
        .expect("clang is there");
    let mut device = SimDevice::over(
        SimBackend::new(simulator, Schedule::EACH[0]),
        ChipConfig::m1(),
    );
    let json = include_str!("../fixtures/real_blocks.json");
    let fixtures: Vec<Fixture> = serde_json::from_str(json).expect("our own fixture");
    let mut formats: Vec<&str> = fixtures.iter().map(|f| f.dtype.as_str()).collect();
    formats.sort_unstable();
    formats.dedup();
    assert_eq!(formats, ["q4_1", "q4_k", "q5_0", "q6_k", "q8_0"]);
    for fixture in &fixtures {
        check_values(&mut device, fixture);
        check_products(&mut device, fixture);
    }
}
