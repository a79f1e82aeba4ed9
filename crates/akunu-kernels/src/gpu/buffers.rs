//! The buffers of a device: numbers, sizes, windows and the memory budget.

use akunu_program::{Buffer, DeviceError, SharedBytes};

use crate::plan::Dispatch;

use super::backend::{Backend, Limits};
use super::windows::Windows;

/// One buffer as the plan knows it: one buffer of the GPU, or several windows over shared memory.
pub(super) struct Memory<B: Backend> {
    parts: Vec<B::Buffer>,
    windows: Windows,
    /// The host's view of shared memory.
    shared: Option<SharedBytes>,
}

/// All buffers. The place of a released one is used again, under another generation.
pub(super) struct Buffers<B: Backend> {
    limits: Limits,
    used: u64,
    places: Vec<(u32, Option<Memory<B>>)>,
    free: Vec<u32>,
}

impl<B: Backend> Buffers<B> {
    pub(super) fn new(limits: Limits) -> Buffers<B> {
        Buffers {
            limits,
            used: 0,
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn allocate(
        &mut self,
        backend: &mut B,
        bytes: usize,
        label: &str,
    ) -> Result<Buffer, DeviceError> {
        self.check_budget(backend, bytes, label)?;
        let no_memory = || DeviceError::Memory {
            bytes,
            label: label.into(),
        };
        if bytes > self.limits.max_buffer {
            return Err(no_memory());
        }
        // A GPU has no empty buffers.
        let part = backend
            .allocate(bytes.max(1), label)
            .ok_or_else(no_memory)?;
        Ok(self.push(Memory {
            parts: vec![part],
            windows: Windows::new(bytes, bytes, self.limits.page, None),
            shared: None,
        }))
    }

    pub(super) fn share(
        &mut self,
        backend: &mut B,
        shared: SharedBytes,
        label: &str,
    ) -> Result<Buffer, DeviceError> {
        let bytes = (*shared).as_ref().len();
        self.check_budget(backend, bytes, label)?;
        let Limits {
            max_buffer, page, ..
        } = self.limits;
        let windows = Windows::new(bytes, max_buffer, page, shared.longest_part());
        let mut parts = Vec::new();
        for range in windows.ranges() {
            let part = match bytes {
                0 => backend.allocate(1, label),
                _ => backend.wrap(&shared, range, label),
            };
            let label = label.to_owned();
            parts.push(part.ok_or(DeviceError::Memory { bytes, label })?);
        }
        Ok(self.push(Memory {
            parts,
            windows,
            shared: Some(shared),
        }))
    }

    /// Bytes of the longest piece of shared memory of `bytes` bytes that windows should overlap by.
    pub(super) fn longest_binding(&self, bytes: usize) -> usize {
        let max = self.limits.max_buffer;
        if bytes <= max { bytes } else { max / 4 }
    }

    /// Takes a buffer out of the list; it lives as long as what is returned.
    pub(super) fn release(&mut self, buffer: Buffer) -> Option<Memory<B>> {
        let place = self.places.get_mut(buffer.id as usize)?;
        if place.0 != buffer.generation {
            return None;
        }
        let memory = place.1.take()?;
        place.0 += 1;
        self.free.push(buffer.id);
        self.used -= memory.windows.len() as u64;
        Some(memory)
    }

    pub(super) fn write(
        &self,
        backend: &mut B,
        buffer: Buffer,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        let memory = self.get(buffer)?;
        if memory.shared.is_some() {
            return Err(DeviceError::ReadOnly { buffer: buffer.id });
        }
        memory.check_range(buffer, offset, bytes.len())?;
        let written = backend.write(&memory.parts[0], offset, bytes);
        written.map_err(|why| DeviceError::Lost { why })
    }

    pub(super) fn read(
        &self,
        backend: &B,
        buffer: Buffer,
        offset: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let memory = self.get(buffer)?;
        memory.check_range(buffer, offset, bytes.len())?;
        match &memory.shared {
            Some(shared) => {
                let end = offset + bytes.len();
                bytes.copy_from_slice(&(**shared).as_ref()[offset..end]);
                Ok(())
            }
            None => backend
                .read(&memory.parts[0], offset, bytes)
                .map_err(|why| DeviceError::Lost { why }),
        }
    }

    /// Where a binding of a dispatch lies.
    pub(super) fn place(
        &self,
        dispatch: &Dispatch,
        binding: usize,
    ) -> Result<(&B::Buffer, usize), DeviceError> {
        let slice = dispatch.bindings[binding];
        let memory = self.get(slice.buffer)?;
        if memory.windows.is_whole() {
            return Ok((&memory.parts[0], slice.offset));
        }
        let bytes = dispatch.extents()[binding].clone();
        let (window, offset) = memory.windows.place(&bytes).ok_or(DeviceError::Cut {
            bytes: bytes.len(),
            max: memory.windows.overlap(),
        })?;
        Ok((&memory.parts[window], offset))
    }

    fn get(&self, buffer: Buffer) -> Result<&Memory<B>, DeviceError> {
        let place = self.places.get(buffer.id as usize);
        let ours = place.filter(|(generation, _)| *generation == buffer.generation);
        let memory = ours.and_then(|(_, memory)| memory.as_ref());
        memory.ok_or(DeviceError::Foreign {
            what: "buffer",
            id: buffer.id,
        })
    }

    fn push(&mut self, memory: Memory<B>) -> Buffer {
        let len = memory.windows.len();
        let writable = memory.shared.is_none();
        self.used += len as u64;
        let id = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() as u32 - 1
        });
        let place = &mut self.places[id as usize];
        place.1 = Some(memory);
        Buffer {
            id,
            generation: place.0,
            len,
            writable,
        }
    }

    /// Bytes that further buffers may take.
    pub(super) fn room(&self, backend: &B) -> u64 {
        let own = self.limits.budget.saturating_sub(self.used);
        own.min(backend.headroom())
    }

    fn check_budget(&self, backend: &B, bytes: usize, label: &str) -> Result<(), DeviceError> {
        let room = self.room(backend);
        if bytes as u64 <= room {
            return Ok(());
        }
        let (used, budget) = (self.used, self.used.saturating_add(room));
        Err(DeviceError::Budget {
            label: label.into(),
            bytes: bytes as u64,
            used,
            budget,
        })
    }
}

impl<B: Backend> Memory<B> {
    fn check_range(&self, buffer: Buffer, offset: usize, n: usize) -> Result<(), DeviceError> {
        let (len, end) = (self.windows.len(), offset.saturating_add(n));
        if end <= len {
            return Ok(());
        }
        Err(DeviceError::OutOfRange {
            buffer: buffer.id,
            offset,
            end,
            len,
        })
    }
}
