//! Layers with a state: what a row gives depends on the rows before it, not on the steps in which they came.

use akunu_cpu::Isa;
use akunu_kernels::KernelId;
use akunu_kernels::case::{Case, Rng};
use akunu_types::params::{DeltaRuleParams, Row, ShortConvParams, SsdParams};

use crate::table::{Tested, device, run};

/// Tokens of a text.
const N_TOKENS: usize = 8000;

/// What a layer reads: numbers of each row, or of all.
enum Input {
    OfRow(Vec<f32>),
    OfLayer(Vec<f32>),
}

use Input::{OfLayer, OfRow};

/// A layer, and a text that it reads.
struct Layer {
    kernel: KernelId,
    /// A case with the params of so many rows, and no data.
    case: fn(u32) -> Case,
    inputs: Vec<Input>,
    state: usize,
    result: usize,
}

impl Layer {
    /// The results of all tokens, in steps of as many rows.
    fn results(&self, tested: &mut Tested, steps: impl Iterator<Item = usize>) -> Vec<f32> {
        let mut state = vec![0.0; self.state];
        let mut results = Vec::new();
        let mut done = 0;
        for step in steps {
            let rows = done..N_TOKENS.min(done + step);
            if rows.is_empty() {
                break;
            }
            let mut case = (self.case)(rows.len() as u32);
            for input in &self.inputs {
                case = match input {
                    OfLayer(numbers) => case.bind(numbers),
                    OfRow(numbers) => {
                        let width = numbers.len() / N_TOKENS;
                        case.bind(&numbers[rows.start * width..rows.end * width])
                    }
                };
            }
            let table = rows.clone().map(|at| {
                let from = if at == 0 { Row::NO_STATE } else { 0 };
                Row::at(2, at as u32).with_states(from, 0)
            });
            case = case.bind(&table.collect::<Vec<Row>>());
            let of_rows = rows.len() * self.result;
            case = case.bind(&state).bind(&vec![f32::NAN; of_rows]);
            let found = run(&mut tested.device, self.kernel, &case);
            let [.., new_state, result] = &found[..] else {
                unreachable!("a layer has a state and a result");
            };
            state = floats(new_state, self.state);
            results.extend(floats(result, of_rows));
            done = rows.end;
        }
        results
    }
}

fn floats(bytes: &[u8], n: usize) -> Vec<f32> {
    let numbers = bytes.chunks_exact(4).take(n);
    let number = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    numbers.map(number).collect()
}

const DIM: usize = 32;

/// One head. Shares of the state that are kept, and of the error that is corrected, are near 0 and near 1.
fn delta_rule() -> Layer {
    let mut rng = Rng::new(8);
    Layer {
        kernel: KernelId::DeltaRule,
        case: |n_rows| {
            let params = DeltaRuleParams {
                n_rows,
                key_heads: 1,
                value_heads: 1,
                head_dim: DIM as u32,
                n_blocks: 1,
                eps: 1e-6,
                ..Default::default()
            };
            Case::new("delta rule", &params, 0.0)
        },
        inputs: vec![
            OfRow(rng.floats(N_TOKENS * 3 * DIM, 1.0)),
            OfRow(rng.floats(N_TOKENS, 12.0)),
            OfRow(rng.floats(N_TOKENS, 12.0)),
            OfLayer(vec![-1.5]),
            OfLayer(vec![-6.0]),
        ],
        state: DIM * DIM,
        result: DIM,
    }
}

/// Two heads of one group.
fn ssd() -> Layer {
    let mut rng = Rng::new(9);
    Layer {
        kernel: KernelId::Ssd,
        case: |n_rows| {
            let params = SsdParams {
                n_rows,
                heads: 2,
                head_dim: 6,
                groups: 1,
                state_size: DIM as u32,
                n_blocks: 1,
                dt_stride: 2,
                ..Default::default()
            };
            Case::new("Mamba-2", &params, 0.0)
        },
        inputs: vec![
            OfRow(rng.floats(N_TOKENS * (12 + 2 * DIM), 1.0)),
            OfRow(rng.floats(N_TOKENS * 2, 8.0)),
            OfLayer(vec![-6.0, 0.5]),
            OfLayer(vec![-0.01, -3.0]),
            OfLayer(vec![1.0, -0.5]),
        ],
        state: 12 * DIM,
        result: 12,
    }
}

fn short_conv() -> Layer {
    let mut rng = Rng::new(10);
    Layer {
        kernel: KernelId::ShortConv,
        case: |n_rows| {
            let params = ShortConvParams {
                n_rows,
                stride: 20,
                width: 20,
                taps: 4,
                n_blocks: 1,
                has_bias: 1,
                ..Default::default()
            };
            Case::new("convolution", &params, 0.0)
        },
        inputs: vec![
            OfRow(rng.floats(N_TOKENS * 20, 1.0)),
            OfLayer(rng.floats(20 * 4, 1.0)),
            OfLayer(rng.floats(20, 1.0)),
        ],
        state: 3 * 20,
        result: 20,
    }
}

/// Fails when a step begins with another state than the one before it left, or when the rows of a prompt are computed otherwise than
/// single ones.
#[test]
fn steps_do_not_change_a_bit() {
    for layer in [delta_rule(), ssd(), short_conv()] {
        for isa in Isa::available() {
            let mut tested = device(isa, 2, false);
            let whole = layer.results(&mut tested, std::iter::repeat(N_TOKENS));
            let mut rng = Rng::new(3);
            let steps = std::iter::repeat_with(|| match rng.below(3) {
                0 => 1 + rng.below(300) as usize,
                _ => 1,
            });
            let cut = layer.results(&mut tested, steps);
            assert_eq!(whole.len(), cut.len());
            let first = whole
                .iter()
                .zip(&cut)
                .position(|(a, b)| a.to_bits() != b.to_bits());
            assert_eq!(first, None, "{:?}, {isa}", layer.kernel);
        }
    }
}

/// Fails when errors add up over a long text: the same in 64 bits.
#[test]
fn a_long_text_is_exact_to_a_hundred_thousandth() {
    let layer = delta_rule();
    let [
        OfRow(qkv),
        OfRow(beta),
        OfRow(alpha),
        OfLayer(decay),
        OfLayer(dt_bias),
    ] = &layer.inputs[..]
    else {
        unreachable!("the inputs of a delta rule");
    };
    let mut state = [[0.0; DIM]; DIM];
    let mut expected = Vec::new();
    for (at, qkv) in qkv.chunks_exact(3 * DIM).enumerate() {
        let wide: Vec<f64> = qkv.iter().map(|&x| f64::from(x)).collect();
        let [q, k, v] = [0, 1, 2].map(|part| &wide[part * DIM..][..DIM]);
        let length = |x: &[f64]| (x.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
        let (of_q, of_k) = (length(q) * (DIM as f64).sqrt(), length(k));
        let softplus = f64::from(alpha[at] + dt_bias[0]).exp().ln_1p();
        let kept = (f64::from(decay[0]) * softplus).exp();
        let rate = 1.0 / (1.0 + (-f64::from(beta[at])).exp());
        for j in 0..DIM {
            let found: f64 = (0..DIM).map(|i| kept * state[i][j] * k[i] / of_k).sum();
            let missing = rate * (v[j] - found);
            for i in 0..DIM {
                state[i][j] = kept * state[i][j] + k[i] / of_k * missing;
            }
            expected.push((0..DIM).map(|i| state[i][j] * q[i] / of_q).sum::<f64>());
        }
    }
    let largest = expected.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    for isa in Isa::available() {
        let found = layer.results(&mut device(isa, 2, false), std::iter::repeat(512));
        let errors = found
            .iter()
            .zip(&expected)
            .map(|(&a, b)| (f64::from(a) - b).abs());
        let error = errors.fold(0.0, f64::max) / largest;
        assert!(error < 1e-5, "{isa}: {error:e}");
    }
}
