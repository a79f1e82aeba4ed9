//! Finds launches that a barrier should keep apart, in what was recorded.
//!
//! This looks at the calls alone: which bytes a launch touches follows from the params and offsets
//! that were bound, not from the plan. It does not share a line with the code that places the
//! barriers, which it checks.

use std::ops::Range;

use crate::pipeline::PipelineKey;

use super::replay::{Bound, ReplayedLaunch, Step};

/// Two launches without a barrier between them, of which one writes what the other touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnorderedPair {
    /// The earlier launch, counted among the launches.
    pub first: usize,
    /// The later launch.
    pub second: usize,
    /// The buffer that both touch.
    pub buffer: u32,
}

struct Touch {
    buffer: u32,
    bytes: Range<usize>,
    is_written: bool,
}

/// Every pair of launches whose order is not certain but matters. `key` gives the pipeline of a number.
pub fn unordered_pairs<'k>(
    steps: &[Step],
    key: impl Fn(u32) -> &'k PipelineKey,
) -> Vec<UnorderedPair> {
    let mut pairs = Vec::new();
    let mut since_barrier: Vec<(usize, Vec<Touch>)> = Vec::new();
    let mut n_launches = 0;
    for step in steps {
        let Step::Launch(launch) = step else {
            since_barrier.clear();
            continue;
        };
        let touches = touches(launch, key(launch.pipeline));
        for (first, earlier) in &since_barrier {
            let clash = earlier
                .iter()
                .find(|a| touches.iter().any(|b| conflict(a, b)));
            if let Some(touch) = clash {
                pairs.push(UnorderedPair {
                    first: *first,
                    second: n_launches,
                    buffer: touch.buffer,
                });
            }
        }
        since_barrier.push((n_launches, touches));
        n_launches += 1;
    }
    pairs
}

fn conflict(a: &Touch, b: &Touch) -> bool {
    let meet = a.bytes.start.max(b.bytes.start) < a.bytes.end.min(b.bytes.end);
    a.buffer == b.buffer && meet && (a.is_written || b.is_written)
}

fn touches(launch: &ReplayedLaunch, key: &PipelineKey) -> Vec<Touch> {
    let row = key.kernel.row();
    let Some(Bound::Bytes(params)) = launch.bound.get(&row.params_index) else {
        return Vec::new();
    };
    let lengths = (row.required)(&row.args(params, &key.constants));
    let mut touches = Vec::new();
    for (binding, length) in row.bindings.iter().zip(lengths) {
        if let Some(&Bound::Buffer { buffer, offset }) = launch.bound.get(&binding.index) {
            touches.push(Touch {
                buffer,
                bytes: offset..offset + length,
                is_written: binding.access.writes(),
            });
        }
    }
    touches
}
