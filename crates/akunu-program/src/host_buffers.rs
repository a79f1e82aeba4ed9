//! The buffers of a device that lives in host memory: their numbers, and copies in and out.

use crate::buffer::{Buffer, SharedBytes};
use crate::error::DeviceError;

/// Memory of one buffer: the device's own, or shared with the caller.
pub enum HostMemory<M> {
    /// The device's own.
    Owned(M),
    /// Memory that existed before.
    Shared(SharedBytes),
}

impl<M: AsRef<[u8]>> HostMemory<M> {
    fn bytes(&self) -> &[u8] {
        match self {
            HostMemory::Owned(memory) => memory.as_ref(),
            HostMemory::Shared(bytes) => (**bytes).as_ref(),
        }
    }
}

/// All buffers, over memory of the kind `M`. The place of a released one is used again, under another generation, so
/// that its old name stands for nothing.
pub struct HostBuffers<M> {
    places: Vec<(u32, Option<HostMemory<M>>)>,
    free: Vec<u32>,
}

impl<M> Default for HostBuffers<M> {
    fn default() -> Self {
        HostBuffers {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<M: AsRef<[u8]> + AsMut<[u8]>> HostBuffers<M> {
    /// A buffer that can be written.
    pub fn add(&mut self, memory: M) -> Buffer {
        self.push(HostMemory::Owned(memory), true)
    }

    /// A buffer that is only read.
    pub fn add_read_only(&mut self, memory: HostMemory<M>) -> Buffer {
        self.push(memory, false)
    }

    fn push(&mut self, memory: HostMemory<M>, writable: bool) -> Buffer {
        let len = memory.bytes().len();
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

    /// Frees a buffer.
    pub fn release(&mut self, buffer: Buffer) {
        let Some(place) = self.places.get_mut(buffer.id as usize) else {
            return;
        };
        if place.0 == buffer.generation && place.1.take().is_some() {
            place.0 += 1;
            self.free.push(buffer.id);
        }
    }

    /// The memory of a buffer; nothing, if it is not, or no longer, one of ours.
    pub fn memory(&self, buffer: Buffer) -> Option<&HostMemory<M>> {
        let place = self.places.get(buffer.id as usize)?;
        place.1.as_ref().filter(|_| place.0 == buffer.generation)
    }

    /// A buffer's bytes.
    pub fn bytes(&self, buffer: Buffer) -> Result<&[u8], DeviceError> {
        let bytes = self.memory(buffer).map(HostMemory::bytes);
        let ours = bytes.filter(|bytes| bytes.len() == buffer.len);
        ours.ok_or(DeviceError::Foreign {
            what: "buffer",
            id: buffer.id,
        })
    }

    /// Copies host bytes into a buffer.
    pub fn write(&mut self, buffer: Buffer, at: usize, from: &[u8]) -> Result<(), DeviceError> {
        self.bytes(buffer)?;
        let place = self.places.get_mut(buffer.id as usize);
        let (true, Some((_, Some(HostMemory::Owned(memory))))) = (buffer.writable, place) else {
            return Err(DeviceError::ReadOnly { buffer: buffer.id });
        };
        let end = at.saturating_add(from.len());
        let into = memory.as_mut().get_mut(at..end);
        into.ok_or(out_of_range(buffer, at, end))?
            .copy_from_slice(from);
        Ok(())
    }

    /// Copies bytes of a buffer to the host.
    pub fn read(&self, buffer: Buffer, at: usize, into: &mut [u8]) -> Result<(), DeviceError> {
        let end = at.saturating_add(into.len());
        let from = self.bytes(buffer)?.get(at..end);
        into.copy_from_slice(from.ok_or(out_of_range(buffer, at, end))?);
        Ok(())
    }
}

fn out_of_range(buffer: Buffer, offset: usize, end: usize) -> DeviceError {
    DeviceError::OutOfRange {
        buffer: buffer.id,
        offset,
        end,
        len: buffer.len,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::AlignedBytes;
    use std::sync::Arc;

    fn buffers() -> HostBuffers<AlignedBytes> {
        HostBuffers::default()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut buffers = buffers();
        let other = buffers.add(AlignedBytes::zeroed(4));
        let buffer = buffers.add(AlignedBytes::zeroed(4));
        buffers.write(buffer, 1, &[7, 8]).expect("fits");
        assert_eq!(buffers.bytes(buffer).expect("ours"), [0, 7, 8, 0]);
        assert_eq!(buffers.bytes(other).expect("ours"), [0; 4]);
        let mut read = [0; 2];
        buffers.read(buffer, 2, &mut read).expect("fits");
        assert_eq!(read, [8, 0]);
    }

    #[test]
    fn nothing_is_touched_beyond_the_end() {
        let mut buffers = buffers();
        let buffer = buffers.add(AlignedBytes::zeroed(4));
        for at in [3, 5, usize::MAX] {
            let written = buffers.write(buffer, at, &[1, 2]);
            assert!(matches!(
                written,
                Err(DeviceError::OutOfRange { len: 4, .. })
            ));
            let read = buffers.read(buffer, at, &mut [0; 2]);
            assert!(matches!(read, Err(DeviceError::OutOfRange { len: 4, .. })));
        }
    }

    /// Shared memory, and memory of our own that a device has copied from it.
    #[test]
    fn read_only_buffers_are_not_written() {
        let mut buffers = buffers();
        let shared = HostMemory::Shared(Arc::new(vec![1u8, 2]));
        let copy = HostMemory::Owned(AlignedBytes::copy_of(&[1, 2]));
        for memory in [shared, copy] {
            let buffer = buffers.add_read_only(memory);
            let written = buffers.write(buffer, 0, &[9]);
            assert!(matches!(written, Err(DeviceError::ReadOnly { .. })));
            assert_eq!(buffers.bytes(buffer).expect("ours"), [1, 2]);
        }
    }

    #[test]
    fn released_and_foreign_buffers_are_refused() {
        let mut buffers = buffers();
        let buffer = buffers.add(AlignedBytes::zeroed(4));
        let longer = Buffer { len: 5, ..buffer };
        let foreign = buffers.bytes(longer);
        assert!(matches!(foreign, Err(DeviceError::Foreign { .. })));
        buffers.release(buffer);
        let released = buffers.write(buffer, 0, &[]);
        assert!(matches!(released, Err(DeviceError::Foreign { .. })));
    }

    /// A place is used again, and neither an old name nor a second release reaches what lies there now.
    #[test]
    fn places_are_used_again() {
        let mut buffers = buffers();
        let old = buffers.add(AlignedBytes::zeroed(4));
        buffers.release(old);
        let new = buffers.add(AlignedBytes::zeroed(4));
        assert_eq!(new.id, old.id);
        buffers.release(old);
        assert!(buffers.bytes(old).is_err() && buffers.bytes(new).is_ok());
    }
}
