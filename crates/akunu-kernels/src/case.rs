//! Test cases of kernels: inputs, and how far an executor may be from the twin.

#[cfg(feature = "testing")]
mod on_device;
mod sizes;

#[cfg(feature = "testing")]
pub use on_device::{CaseError, Cases, Outcome, run_exactly_on, run_on};
pub use sizes::{SIZES, Size};

use akunu_program::AlignedBytes;
use akunu_types::SharedStruct;

use crate::constant::Constants;
use crate::kernel::pages::Pages;
use crate::plan::Params;
use crate::table::{Access, Element, KernelRow};
use crate::twin::Twin;

/// One set of inputs of a kernel.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is awkward about it.
    pub label: String,
    /// The params of the launch.
    pub params: Params,
    /// The function constants.
    pub constants: Constants,
    /// What each binding holds before the launch, in the order of the row's bindings.
    pub data: Vec<AlignedBytes>,
    /// Largest allowed normalised mean square error of each written binding of floats:
    /// `Σ(twin - other)² / Σ twin²`. Integers always agree exactly.
    pub nmse: f64,
    /// What the bindings of halves that are read and changed are pools of, where they are: their numbers are compared, however
    /// they are stored. Halves that are overwritten are plain numbers.
    pub pools: Option<Pages>,
}

impl Case {
    /// A case whose output must be within `nmse` of the twin.
    pub fn new<P: SharedStruct>(label: impl Into<String>, params: &P, nmse: f64) -> Case {
        Case {
            label: label.into(),
            params: Params::of(params),
            constants: Constants::none(),
            data: Vec::new(),
            nmse,
            pools: None,
        }
    }

    /// Sets another tolerance.
    pub fn tolerance(self, nmse: f64) -> Case {
        Case { nmse, ..self }
    }

    /// Says that the halves that are read and changed are pools of keys and values.
    pub fn pools(self, pages: Pages) -> Case {
        let pools = Some(pages);
        Case { pools, ..self }
    }

    /// Sets the function constants.
    pub fn constants(self, constants: Constants) -> Case {
        Case { constants, ..self }
    }

    /// Adds the next binding's contents.
    pub fn bind<T: bytemuck::NoUninit>(mut self, values: &[T]) -> Case {
        self.data.push(AlignedBytes::from_values(values));
        self
    }

    /// The result of the twin: the place of each written binding, and its bytes.
    pub fn expected(&self, row: &KernelRow) -> Vec<(usize, AlignedBytes)> {
        let whole: Vec<&[u8]> = self.data.iter().map(AsRef::as_ref).collect();
        let args = row.args(self.params.as_bytes(), &self.constants);
        Twin::new(row, args, &whole).run(row)
    }
}

/// How an executor's output differs from the twin's.
#[derive(Debug, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum Mismatch {
    /// An integer, or the place of a NaN or an infinity, differs.
    #[error("binding {binding}, element {element}: {found} instead of {expected}")]
    Element {
        /// The binding's name.
        binding: &'static str,
        /// Which element.
        element: usize,
        /// The twin's value.
        expected: f64,
        /// The value of the tested executor.
        found: f64,
    },
    /// The error of a whole binding is too large.
    #[error(
        "binding {binding}: NMSE {nmse:.3e}, allowed {allowed:.1e}; worst at element {element}: {found} instead of {expected}"
    )]
    Nmse {
        /// The binding's name.
        binding: &'static str,
        /// What was measured.
        nmse: f64,
        /// What the case allows.
        allowed: f64,
        /// The element that differs most.
        element: usize,
        /// The twin's value there.
        expected: f64,
        /// The value of the tested executor.
        found: f64,
    },
}

/// The squared error of what was found as a share of the power of what was wanted: 1 is as wrong as zeros.
///
/// # Panics
/// If there are more or fewer numbers than wanted.
pub fn nmse(found: &[f32], wanted: &[f32]) -> f64 {
    assert_eq!(found.len(), wanted.len(), "as many numbers as wanted");
    let square = |x: f64| x * x;
    let pairs = found.iter().zip(wanted);
    let error: f64 = pairs
        .map(|(&f, &w)| square(f64::from(f) - f64::from(w)))
        .sum();
    error / wanted.iter().map(|&w| square(f64::from(w))).sum::<f64>()
}

/// What tells a pool from halves of another kind.
const POOL: (Element, Access) = (Element::F16, Access::ReadWrite);

/// Compares one written binding; returns the NMSE.
pub fn compare(
    row: &KernelRow,
    case: &Case,
    at: usize,
    expected: &[u8],
    found: &[u8],
) -> Result<f64, Mismatch> {
    let binding = row.bindings[at];
    debug_assert!(binding.access != Access::Read);
    let values = |bytes: &[u8]| match case.pools {
        Some(pages) if (binding.element, binding.access) == POOL => {
            pages.numbers(bytes).into_iter().map(f64::from).collect()
        }
        _ => values(binding.element, bytes),
    };
    let (expected, found): (Vec<f64>, Vec<f64>) = (values(expected), values(found));
    let exact = !matches!(binding.element, Element::F32 | Element::F16);
    let (mut error, mut power, mut worst) = (0.0, 0.0, (0, 0.0));
    for (element, (&e, &f)) in expected.iter().zip(&found).enumerate() {
        let special = !e.is_finite() || !f.is_finite();
        if (exact || special) && !same(e, f) {
            return Err(Mismatch::Element {
                binding: binding.name,
                element,
                expected: e,
                found: f,
            });
        }
        if special {
            continue;
        }
        error += (e - f) * (e - f);
        power += e * e;
        if (e - f).abs() > worst.1 {
            worst = (element, (e - f).abs());
        }
    }
    let nmse = if error == 0.0 {
        0.0
    } else {
        error / power.max(f64::MIN_POSITIVE)
    };
    if nmse > case.nmse {
        let element = worst.0;
        return Err(Mismatch::Nmse {
            binding: binding.name,
            nmse,
            allowed: case.nmse,
            element,
            expected: expected[element],
            found: found[element],
        });
    }
    Ok(nmse)
}

fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// The elements as numbers.
fn values(element: Element, bytes: &[u8]) -> Vec<f64> {
    let each = |size: usize| bytes.chunks_exact(size);
    match element {
        Element::F32 => each(4)
            .map(|b| bytemuck::pod_read_unaligned::<f32>(b).into())
            .collect(),
        Element::F16 => each(2)
            .map(|b| bytemuck::pod_read_unaligned::<half::f16>(b).into())
            .collect(),
        Element::U32 | Element::Row | Element::Rule => each(4)
            .map(|b| bytemuck::pod_read_unaligned::<u32>(b).into())
            .collect(),
        Element::U16 => each(2)
            .map(|b| bytemuck::pod_read_unaligned::<u16>(b).into())
            .collect(),
        Element::Weight => bytes.iter().map(|&b| b.into()).collect(),
    }
}

/// A small generator of repeatable numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    pub const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0 .. n`.
    pub fn below(&mut self, n: u32) -> u32 {
        (self.bits() % u64::from(n)) as u32
    }

    /// A number in -1 .. 1.
    pub fn unit(&mut self) -> f32 {
        ((self.bits() >> 40) as f32 / (1u64 << 23) as f32) - 1.0
    }

    /// `n` numbers in `-scale .. scale`.
    pub fn floats(&mut self, n: usize, scale: f32) -> Vec<f32> {
        (0..n).map(|_| self.unit() * scale).collect()
    }

    /// `n` halves in `-scale .. scale`.
    pub fn halves(&mut self, n: usize, scale: f32) -> Vec<half::f16> {
        (0..n)
            .map(|_| half::f16::from_f32(self.unit() * scale))
            .collect()
    }

    /// `n` random bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| self.bits() as u8).collect()
    }
}
