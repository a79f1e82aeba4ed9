//! The arguments of a twin: params, constants, and a typed view of each binding.

use akunu_program::AlignedBytes;
use akunu_types::SharedStruct;
use bytemuck::{AnyBitPattern, Pod};

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

    /// The slices of all bindings, one after the other, for the struct that names them.
    pub(crate) fn slices(&mut self) -> Slices<'_, 'a> {
        Slices(self.bindings.iter_mut())
    }
}

/// The bindings of an execution that have not been taken yet.
pub(crate) struct Slices<'t, 'a>(std::slice::IterMut<'t, TwinBinding<'a>>);

impl<'t> Slices<'t, '_> {
    /// The next one, which the kernel reads.
    pub(crate) fn read<T: AnyBitPattern>(&mut self) -> &'t [T] {
        match self.0.next() {
            Some(TwinBinding::Read(bytes)) => bytemuck::cast_slice(bytes),
            _ => unreachable!("the row has the bindings of its declaration"),
        }
    }

    /// The next one, which the kernel writes.
    pub(crate) fn write<T: Pod>(&mut self) -> &'t mut [T] {
        match self.0.next() {
            Some(TwinBinding::Write(bytes)) => bytemuck::cast_slice_mut(bytes.as_mut()),
            _ => unreachable!("the row has the bindings of its declaration"),
        }
    }

    /// The next one, which the kernel reads and writes.
    pub(crate) fn change<T: Pod>(&mut self) -> &'t mut [T] {
        self.write()
    }
}
