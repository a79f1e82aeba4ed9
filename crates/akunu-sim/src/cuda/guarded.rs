//! A buffer of the GPU between two guards, which show what was written beside it.

use super::CudaError;
use super::gpu::{Gpu, Memory};

/// Bytes of a guard: the alignment of every binding is kept.
const GUARD: usize = 256;
/// What a guard holds.
const FILLING: u8 = 0xa5;

/// Whether buffers stand between guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guards {
    /// 256 known bytes on either side, compared after each launch.
    Bytes,
    /// None: an allocation has exactly the bytes of its binding, so that `compute-sanitizer` sees
    /// every access behind it, reads too.
    None,
}

impl Guards {
    const fn len(self) -> usize {
        match self {
            Guards::Bytes => GUARD,
            Guards::None => 0,
        }
    }
}

/// A binding's memory.
pub(super) struct Guarded<'g> {
    memory: Memory<'g>,
    guard: usize,
}

impl<'g> Guarded<'g> {
    /// Memory that holds `bytes`, between guards where they are wanted.
    pub(super) fn new(gpu: &'g Gpu, bytes: &[u8], guards: Guards) -> Result<Self, CudaError> {
        let guard = guards.len();
        let memory = gpu.upload(&surround(bytes, guard))?;
        Ok(Guarded { memory, guard })
    }

    /// The address of the first byte behind the guard.
    pub(super) fn address(&self) -> u64 {
        self.memory.address() + self.guard as u64
    }

    /// What it holds now, and where a guard was changed: bytes from the beginning when negative,
    /// else behind the end.
    pub(super) fn download(&self) -> Result<(Vec<u8>, Option<isize>), CudaError> {
        let mut bytes = self.memory.download()?;
        let behind = bytes.split_off(bytes.len() - self.guard);
        let contents = bytes.split_off(self.guard);
        Ok((contents, broken(&bytes, &behind)))
    }
}

fn surround(bytes: &[u8], guard: usize) -> Vec<u8> {
    let filling = vec![FILLING; guard];
    [filling.as_slice(), bytes, &filling].concat()
}

fn broken(before: &[u8], behind: &[u8]) -> Option<isize> {
    let changed = |&byte: &u8| byte != FILLING;
    let near = before.iter().rev().position(changed);
    near.map(|distance| -(distance as isize) - 1).or_else(|| {
        behind
            .iter()
            .position(changed)
            .map(|distance| distance as isize)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a write beside a binding is not seen, or is placed on the wrong side.
    #[test]
    fn a_changed_guard_is_located() {
        let whole = surround(&[1, 2, 3], GUARD);
        let (before, behind) = (&whole[..GUARD], &whole[GUARD + 3..]);
        assert_eq!(broken(before, behind), None);
        let mut changed = whole.clone();
        changed[GUARD + 3 + 4] = 0;
        assert_eq!(broken(before, &changed[GUARD + 3..]), Some(4));
        changed[GUARD - 1] = 0;
        assert_eq!(broken(&changed[..GUARD], behind), Some(-1));
    }

    /// The sanitizer sees an access behind a binding only if the allocation ends with it.
    #[test]
    fn without_guards_nothing_is_added() {
        assert_eq!(surround(&[1, 2, 3], Guards::None.len()), [1, 2, 3]);
        assert_eq!(broken(&[], &[]), None);
    }
}
