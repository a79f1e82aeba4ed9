//! The inputs of a kernel, and how exact it must be.

use akunu_program::AlignedBytes;
use akunu_types::SharedStruct;

use crate::constant::Constants;
use crate::kernel::pages::Pages;
use crate::plan::Params;

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
}
