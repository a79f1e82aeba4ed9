//! What a report has measured, in place of the assumptions.

use crate::report::{self, Record};
use akunu_kernels::ChipConfig;
use akunu_kernels::chip::{GpuFamily, Thresholds};
use akunu_repo::Failure;
use std::path::Path;

/// A chip as a report shows it.
pub struct Measured {
    /// The chip: what the table knows of it, with what the machine says itself.
    pub chip: ChipConfig,
    /// The share of the memory's published speed that many SIMD groups reach.
    pub share: Option<f64>,
    /// Microseconds of a launch.
    pub launch: Option<f64>,
    /// Microseconds of a barrier.
    pub barrier: Option<f64>,
    /// Measured models: name and milliseconds of a step.
    pub models: Vec<(String, f64)>,
}

/// Reads a report.
pub fn read(path: &Path) -> Result<Measured, Failure> {
    let report = report::read(path)?;
    let machine = report.records().find_map(|record| match record {
        Record::Machine(machine) => Some(machine),
        _ => None,
    });
    let no_machine = || {
        let path = path.display();
        Failure::Found(format!(
            "{path}: it does not say which machine it is of; its part `machine` is missing"
        ))
    };
    let machine = machine.ok_or_else(no_machine)?;
    let known = ChipConfig::by_name_or_m1(&machine.chip);
    let family = family(&machine.family).unwrap_or(known.family);
    let chip = ChipConfig {
        family,
        thresholds: Thresholds::of(family),
        gpu_cores: machine.gpu_cores,
        max_threads: machine.max_threads,
        threadgroup_bytes: machine.threadgroup_bytes,
        bytes_per_second: machine.bytes_per_second.max(1),
        ..known
    };
    let micro = |wanted: &str| {
        report.records().find_map(|record| match record {
            Record::Micro { name, value, .. } if name == wanted => Some(*value),
            _ => None,
        })
    };
    let reads = report.records().filter_map(|record| match record {
        Record::Micro { unit, value, .. } if unit == "GB/s" => Some(*value),
        _ => None,
    });
    let fastest = reads.reduce(f64::max);
    let models = report.records().filter_map(|record| match record {
        Record::Model(of) => Some((of.model.clone(), of.milliseconds)),
        _ => None,
    });
    Ok(Measured {
        share: fastest.map(|read| read * 1e9 / chip.bytes_per_second as f64),
        launch: micro("launch").map(positive),
        barrier: micro("barrier").map(positive),
        models: models.collect(),
        chip,
    })
}

/// A difference of two times that are nearly equal may be below zero.
fn positive(microseconds: f64) -> f64 {
    microseconds.max(0.0)
}

/// The family in the words of a report: `Apple(9)`.
fn family(words: &str) -> Option<GpuFamily> {
    let (maker, number) = words.strip_suffix(')')?.split_once('(')?;
    match maker {
        "Apple" => number.parse().ok().map(GpuFamily::Apple),
        "Nvidia" => number.parse().ok().map(GpuFamily::Nvidia),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_read_as_it_is_written() {
        for of in [GpuFamily::Apple(10), GpuFamily::Nvidia(90)] {
            assert_eq!(family(&format!("{of:?}")), Some(of));
        }
        assert_eq!(family("Apple"), None);
        assert_eq!(family("Other(3)"), None);
    }
}
