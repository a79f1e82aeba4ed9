//! What an executor gave, against the twin.

use akunu_program::AlignedBytes;

use super::inputs::Case;
use crate::table::{Access, Element, KernelRow};

impl Case {
    /// The result of the twin: the place of each written binding, and its bytes.
    pub fn expected(&self, row: &KernelRow) -> Vec<(usize, AlignedBytes)> {
        let whole: Vec<&[u8]> = self.data.iter().map(AsRef::as_ref).collect();
        let args = row.args(self.params.as_bytes(), &self.constants);
        match row.run_twin(args, &whole) {
            Ok(written) => written,
            Err(short) => unreachable!("{}: a case has all its bytes: {short}", row.name()),
        }
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
