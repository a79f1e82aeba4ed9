//! One GPU in use: its context, its streams, its events.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys;

use crate::driver::{Fault, call};

/// The primary context of a GPU, shared by everything of this process that uses it.
pub(crate) struct Context {
    device: sys::CUdevice,
    raw: sys::CUcontext,
}

// SAFETY: a context belongs to no thread; each thread makes it its current one before it calls.
unsafe impl Send for Context {}
// SAFETY: the driver's functions may be called from several threads at once.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn new(ordinal: u32) -> Result<Arc<Context>, Fault> {
        let mut device = 0;
        let mut raw = ptr::null_mut();
        // SAFETY: the driver has started; both pointers are to live variables of the right type.
        unsafe {
            call!(cuDeviceGet(&raw mut device, ordinal as i32))?;
            call!(cuDevicePrimaryCtxRetain(&raw mut raw, device))?;
        }
        Ok(Arc::new(Context { device, raw }))
    }

    /// Makes it the context of this thread, as all other calls expect.
    pub(crate) fn enter(&self) -> Result<(), Fault> {
        // SAFETY: the context is held as long as `self` lives.
        unsafe { call!(cuCtxSetCurrent(self.raw)) }
    }

    /// Bytes of shared memory that a kernel gets if it asks for them.
    pub(crate) fn shared_bytes(&self) -> Result<u32, Fault> {
        let which = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let mut value = 0;
        // SAFETY: the device exists, and the driver writes the value.
        unsafe { call!(cuDeviceGetAttribute(&raw mut value, which, self.device)) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Bytes that are free on the GPU; other processes may use the rest.
    pub(crate) fn free_memory(&self) -> Result<u64, Fault> {
        let (mut free, mut total) = (0, 0);
        self.enter()?;
        // SAFETY: both pointers are to live variables of the right type.
        unsafe { call!(cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok(free as u64)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and nothing of this process uses it through `self` any more.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Work in order.
pub(crate) struct Stream {
    pub(crate) raw: sys::CUstream,
    context: Arc<Context>,
}

// SAFETY: a stream belongs to no thread.
unsafe impl Send for Stream {}
// SAFETY: the driver's functions may be called from several threads at once.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Stream, Fault> {
        let mut raw = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        context.enter()?;
        // SAFETY: the context is current, and the driver writes the stream.
        unsafe { call!(cuStreamCreate(&raw mut raw, flags)) }?;
        Ok(Stream {
            raw,
            context: Arc::clone(context),
        })
    }

    /// Waits until all of its work has ended.
    pub(crate) fn synchronize(&self) -> Result<(), Fault> {
        // SAFETY: the stream lives.
        unsafe { call!(cuStreamSynchronize(self.raw)) }
    }

    /// Work that follows begins when the event has happened.
    pub(crate) fn wait_for(&self, event: &Event) -> Result<(), Fault> {
        // SAFETY: stream and event live.
        unsafe { call!(cuStreamWaitEvent(self.raw, event.raw, 0)) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the driver frees the stream when its work has ended.
            unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A point in a stream.
pub(crate) struct Event {
    raw: sys::CUevent,
    context: Arc<Context>,
}

// SAFETY: an event belongs to no thread.
unsafe impl Send for Event {}
// SAFETY: the driver's functions may be called from several threads at once.
unsafe impl Sync for Event {}

impl Event {
    pub(crate) fn new(context: &Arc<Context>) -> Result<Event, Fault> {
        let mut raw = ptr::null_mut();
        context.enter()?;
        // SAFETY: the context is current, and the driver writes the event.
        unsafe { call!(cuEventCreate(&raw mut raw, 0)) }?;
        Ok(Event {
            raw,
            context: Arc::clone(context),
        })
    }

    /// Happens when all work of the stream so far has ended.
    pub(crate) fn record(&self, stream: &Stream) -> Result<(), Fault> {
        // SAFETY: event and stream live.
        unsafe { call!(cuEventRecord(self.raw, stream.raw)) }
    }

    /// Waits until it has happened.
    pub(crate) fn synchronize(&self) -> Result<(), Fault> {
        // SAFETY: the event lives.
        unsafe { call!(cuEventSynchronize(self.raw)) }
    }

    /// The time between two events that have happened.
    pub(crate) fn since(&self, start: &Event) -> Result<Duration, Fault> {
        let mut milliseconds = 0f32;
        // SAFETY: both events live, and the driver writes the time.
        unsafe {
            call!(cuEventElapsedTime(
                &raw mut milliseconds,
                start.raw,
                self.raw
            ))
        }?;
        Ok(Duration::try_from_secs_f32(milliseconds / 1e3).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the driver frees the event when it is no longer needed.
            unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}
