//! Recorded calls, read as a GPU reads them.
//!
//! An encoder is a state machine: what is bound stays bound, and a dispatch sees whatever is bound at
//! that moment. A forgotten call therefore shows up as a stale binding of an earlier dispatch.

use std::collections::BTreeMap;

use super::recorder::Call;

/// What a binding holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A buffer from an offset on.
    Buffer {
        /// Its number.
        buffer: u32,
        /// Byte offset.
        offset: usize,
    },
    /// Inline bytes.
    Bytes(Vec<u8>),
}

/// A dispatch with all that it sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedLaunch {
    /// The pipeline's number.
    pub pipeline: u32,
    /// What is bound, by index.
    pub bound: BTreeMap<u8, Bound>,
    /// Bytes of dynamic threadgroup memory.
    pub threadgroup_bytes: u32,
    /// Threadgroups.
    pub grid: [u32; 3],
    /// Threads of each.
    pub threads: [u32; 3],
}

/// What a GPU does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a kernel, at any time between the barriers around it.
    Launch(ReplayedLaunch),
    /// Waits for all launches before it.
    Barrier,
}

/// Calls that no encoder accepts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// A dispatch before any pipeline was set.
    #[error("call {0} dispatches without a pipeline")]
    NoPipeline(usize),
    /// A call after the end.
    #[error("call {0} comes after the encoder was ended")]
    AfterEnd(usize),
    /// The encoder was never ended.
    #[error("the encoder was not ended")]
    NotEnded,
    /// More inline bytes than Metal takes.
    #[error("call {0} sets 4 KB or more inline")]
    LongBytes(usize),
    /// Threadgroup memory that is not a multiple of 16.
    #[error("call {0} sets threadgroup memory that is not a multiple of 16")]
    UnevenThreadgroupMemory(usize),
}

/// The steps that these calls make a GPU do.
///
/// # Errors
/// When an encoder would not accept the calls.
pub fn replay(calls: &[Call]) -> Result<Vec<Step>, ReplayError> {
    const INLINE_LIMIT: usize = 4096;
    let mut steps = Vec::new();
    let mut pipeline = None;
    let mut bound = BTreeMap::new();
    let mut threadgroup_bytes = 0;
    let mut ended = false;
    for (at, call) in calls.iter().enumerate() {
        if ended {
            return Err(ReplayError::AfterEnd(at));
        }
        match call {
            Call::SetPipeline(number) => pipeline = Some(*number),
            &Call::SetBuffer {
                index,
                buffer,
                offset,
            } => {
                bound.insert(index, Bound::Buffer { buffer, offset });
            }
            Call::SetBytes { bytes, .. } if bytes.len() >= INLINE_LIMIT => {
                return Err(ReplayError::LongBytes(at));
            }
            Call::SetBytes { index, bytes } => {
                bound.insert(*index, Bound::Bytes(bytes.clone()));
            }
            Call::SetThreadgroupMemory(bytes) if !bytes.is_multiple_of(16) => {
                return Err(ReplayError::UnevenThreadgroupMemory(at));
            }
            Call::SetThreadgroupMemory(bytes) => threadgroup_bytes = *bytes,
            Call::Barrier => steps.push(Step::Barrier),
            &Call::Dispatch { grid, threads } => steps.push(Step::Launch(ReplayedLaunch {
                pipeline: pipeline.ok_or(ReplayError::NoPipeline(at))?,
                bound: bound.clone(),
                threadgroup_bytes,
                grid,
                threads,
            })),
            Call::End => ended = true,
        }
    }
    if ended {
        Ok(steps)
    } else {
        Err(ReplayError::NotEnded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO: Call = Call::Dispatch {
        grid: [1, 1, 1],
        threads: [32, 1, 1],
    };

    #[test]
    fn what_is_bound_stays_bound() {
        let bytes = |n| Call::SetBytes {
            index: 3,
            bytes: vec![n],
        };
        let calls = [
            Call::SetPipeline(5),
            bytes(1),
            GO,
            Call::Barrier,
            bytes(2),
            Call::SetPipeline(6),
            GO,
            GO,
            Call::End,
        ];
        let steps = replay(&calls).unwrap();
        let seen: Vec<_> = steps
            .iter()
            .map(|step| match step {
                Step::Barrier => None,
                Step::Launch(launch) => Some((launch.pipeline, launch.bound[&3].clone())),
            })
            .collect();
        let launch = |pipeline, n| Some((pipeline, Bound::Bytes(vec![n])));
        assert_eq!(seen, [launch(5, 1), None, launch(6, 2), launch(6, 2)]);
    }

    #[test]
    fn calls_that_metal_refuses_are_refused() {
        let set = Call::SetPipeline(0);
        let long = Call::SetBytes {
            index: 0,
            bytes: vec![0; 4096],
        };
        let cases = [
            (vec![GO, Call::End], ReplayError::NoPipeline(0)),
            (vec![set.clone(), GO], ReplayError::NotEnded),
            (vec![set, Call::End, GO], ReplayError::AfterEnd(2)),
            (vec![long, Call::End], ReplayError::LongBytes(0)),
            (
                vec![Call::SetThreadgroupMemory(24), Call::End],
                ReplayError::UnevenThreadgroupMemory(0),
            ),
        ];
        for (calls, error) in cases {
            assert_eq!(replay(&calls), Err(error));
        }
    }
}
