//! The parts of a report.

use super::target::Which;
use akunu_kernels::table::Family;
use std::fmt;
use std::str::FromStr;

/// A part, which runs in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Machine,
    Pipelines,
    Cases(Family),
    Micro,
    Products,
    Attention,
    Models,
    Program,
}

/// A part that is to run.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    pub part: Part,
    /// With Metal's validation of calls and memory accesses.
    pub validated: bool,
}

/// What the command line says about a part.
#[derive(Clone, Debug)]
pub struct Given {
    /// Only kernels whose name contains this.
    pub filter: String,
    /// Only what comes after this.
    pub after: Option<String>,
    /// Few formats, small shapes and few cases.
    pub is_small: bool,
}

const FAMILIES: [Family; 14] = [
    Family::Activation,
    Family::Attention,
    Family::Common,
    Family::Convert,
    Family::Embedding,
    Family::Experts,
    Family::Fused,
    Family::KvCache,
    Family::Matmul,
    Family::Norm,
    Family::Nvidia,
    Family::Rope,
    Family::Sampling,
    Family::State,
];

/// All parts for a device. What may bring the machine down is last.
pub fn planned(which: Which) -> Vec<Planned> {
    let as_it_is = |part| Planned {
        part,
        validated: false,
    };
    let families = FAMILIES.iter().filter(|family| which.has(**family));
    let cases = families.map(|&family| Part::Cases(family));
    let mut parts = vec![as_it_is(Part::Machine), as_it_is(Part::Pipelines)];
    parts.extend(cases.clone().map(as_it_is));
    for part in [
        Part::Program,
        Part::Micro,
        Part::Attention,
        Part::Products,
        Part::Models,
    ] {
        parts.push(as_it_is(part));
    }
    if which.has_validation() {
        parts.extend(cases.map(|part| Planned {
            part,
            validated: true,
        }));
    }
    parts
}

impl Planned {
    /// The part's name in the file.
    pub fn name(&self) -> String {
        self.part.to_string()
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Machine => "machine",
            Part::Pipelines => "pipelines",
            Part::Cases(family) => return write!(f, "cases-{}", family.folder()),
            Part::Micro => "micro",
            Part::Products => "products",
            Part::Attention => "attention",
            Part::Models => "models",
            Part::Program => "program",
        })
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(name: &str) -> Result<Part, String> {
        let cases = FAMILIES.map(Part::Cases);
        let others = [
            Part::Machine,
            Part::Pipelines,
            Part::Micro,
            Part::Products,
            Part::Attention,
            Part::Models,
            Part::Program,
        ];
        let mut all = cases.into_iter().chain(others);
        let found = all.find(|part| part.to_string() == name);
        found.ok_or_else(|| format!("there is no part `{name}`"))
    }
}

impl Given {
    /// Of these names, in order, those that are wanted: with the filter, and after the one that ended the process before.
    pub fn wanted<T>(&self, all: Vec<T>, name: impl Fn(&T) -> String) -> Vec<T> {
        let position = |after: &String| all.iter().position(|it| name(it) == *after);
        let first = self
            .after
            .as_ref()
            .and_then(position)
            .map_or(0, |at| at + 1);
        let rest = all.into_iter().skip(first);
        rest.filter(|it| name(it).contains(&self.filter)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a part of a report cannot be started by its name.
    #[test]
    fn every_part_is_found_by_its_name() {
        for which in [Which::Metal, Which::Cuda, Which::Sim] {
            for planned in planned(which) {
                assert_eq!(planned.name().parse(), Ok(planned.part));
            }
        }
        assert!("cases-bogus".parse::<Part>().is_err());
    }

    /// Breaks when the kernels of another maker are tried on a Mac, or a Mac has no run with validation.
    #[test]
    fn a_mac_runs_its_kernels_twice_and_no_others() {
        let of = |which| {
            let parts = planned(which).into_iter();
            parts.filter(|planned| planned.part == Part::Cases(Family::Matmul))
        };
        assert_eq!(of(Which::Metal).count(), 2);
        assert_eq!(of(Which::Sim).count(), 1);
        let is_nvidia = |planned: &Planned| planned.part == Part::Cases(Family::Nvidia);
        assert!(!planned(Which::Metal).iter().any(is_nvidia));
        assert!(planned(Which::Cuda).iter().any(is_nvidia));
    }

    #[test]
    fn a_part_goes_on_after_what_crashed() {
        let given = |after: Option<&str>, filter: &str| Given {
            filter: filter.into(),
            after: after.map(str::to_owned),
            is_small: true,
        };
        let names = || vec!["gemv_a", "norm", "gemv_b"];
        let wanted = |given: Given| given.wanted(names(), |name| (*name).to_owned());
        assert_eq!(wanted(given(None, "")), names());
        assert_eq!(wanted(given(None, "gemv")), ["gemv_a", "gemv_b"]);
        assert_eq!(wanted(given(Some("gemv_a"), "")), ["norm", "gemv_b"]);
        assert_eq!(wanted(given(Some("gemv_a"), "gemv")), ["gemv_b"]);
    }
}
