//! The arguments of a twin: params, constants, and a typed view of each binding.

use akunu_program::AlignedBytes;
use akunu_types::SharedStruct;
use bytemuck::{AnyBitPattern, NoUninit, Pod};

use crate::constant::Constants;
use crate::table::{Access, Args, Binding};

/// A binding as a twin sees it: exactly the bytes that the kernel requires.
#[derive(Debug)]
pub enum TwinBinding<'a> {
    /// Borrowed, for reading.
    Read(&'a [u8]),
    /// A copy that the twin changes and the executor stores back.
    Write(AlignedBytes),
}

/// A binding that is not there, or has fewer bytes than the launch touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("binding {index} has {found} bytes, and the launch needs {required}")]
pub struct ShortBinding {
    /// The binding's index.
    pub index: u8,
    /// Its bytes.
    pub found: usize,
    /// Bytes that the launch reads or writes.
    pub required: usize,
}

/// One execution of a kernel's specification.
#[derive(Debug)]
pub struct Twin<'a> {
    args: Args<'a>,
    indices: Vec<u8>,
    bindings: Vec<TwinBinding<'a>>,
}

impl<'a> Twin<'a> {
    /// Prepares an execution. `whole` gives the bytes bound at each place of `bindings`, which must be at least `required`.
    pub(crate) fn new(
        args: Args<'a>,
        bindings: &[Binding],
        required: &[usize],
        whole: &[&'a [u8]],
    ) -> Result<Twin<'a>, ShortBinding> {
        let places = bindings.iter().zip(required).enumerate();
        let bound = places.map(|(place, (binding, &required))| {
            let bytes = whole.get(place).copied().unwrap_or_default();
            let bytes = bytes.get(..required).ok_or(ShortBinding {
                index: binding.index,
                found: bytes.len(),
                required,
            })?;
            Ok(match binding.access {
                Access::Read => TwinBinding::Read(bytes),
                Access::Write | Access::ReadWrite => {
                    TwinBinding::Write(AlignedBytes::copy_of(bytes))
                }
            })
        });
        Ok(Twin {
            args,
            indices: bindings.iter().map(|binding| binding.index).collect(),
            bindings: bound.collect::<Result<_, _>>()?,
        })
    }

    /// What was written: the place of each written binding, and its bytes.
    pub(crate) fn written(self) -> Vec<(usize, AlignedBytes)> {
        let bindings = self.bindings.into_iter().enumerate();
        bindings
            .filter_map(|(at, binding)| match binding {
                TwinBinding::Read(_) => None,
                TwinBinding::Write(bytes) => Some((at, bytes)),
            })
            .collect()
    }

    /// The weight format, the raw params and the constants.
    pub fn args(&self) -> Args<'a> {
        self.args
    }

    /// The params as their struct.
    pub fn params<P: SharedStruct>(&self) -> P {
        self.args.params()
    }

    /// The function constants.
    pub fn constants(&self) -> &'a Constants {
        self.args.constants
    }

    /// The elements of a binding that the kernel only reads.
    pub fn read<T: AnyBitPattern>(&self, index: u8) -> &'a [T] {
        match self.bindings[self.at(index)] {
            TwinBinding::Read(bytes) => bytemuck::cast_slice(bytes),
            TwinBinding::Write(_) => unreachable!("binding {index} is written: use `write`"),
        }
    }

    /// The elements of a binding that the kernel writes.
    pub fn write<T: Pod>(&mut self, index: u8) -> &mut [T] {
        let at = self.at(index);
        match &mut self.bindings[at] {
            TwinBinding::Write(bytes) => bytemuck::cast_slice_mut(bytes.as_mut()),
            TwinBinding::Read(_) => unreachable!("binding {index} is only read: use `read`"),
        }
    }

    /// A copy of what a written binding holds now, for twins that fill several bindings at once.
    pub fn copy<T: Pod>(&mut self, index: u8) -> Vec<T> {
        self.write::<T>(index).to_vec()
    }

    /// Stores all elements of a written binding.
    pub fn store<T: Pod + NoUninit>(&mut self, index: u8, values: &[T]) {
        self.write::<T>(index).copy_from_slice(values);
    }

    fn at(&self, index: u8) -> usize {
        match self.indices.iter().position(|&has| has == index) {
            Some(at) => at,
            None => unreachable!("the kernel has no binding {index}"),
        }
    }
}
